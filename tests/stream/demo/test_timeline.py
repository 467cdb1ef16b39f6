import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from ragtide.stream.demo.schedule import Schedule
from ragtide.stream.demo.timeline import Timeline

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return START + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds


def test_faults_are_counted_from_the_first_score_and_written_down(tmp_path: Path) -> None:
    clock, file = Clock(), tmp_path / "timeline.json"
    timeline = Timeline(Schedule(), file, clock.now, clock.monotonic)
    clock.seconds = 40.0
    assert timeline.fault() is None
    assert timeline.elapsed_s is None
    assert not file.exists()
    timeline.begin()
    clock.seconds = 69.0
    assert timeline.fault() is None
    clock.seconds = 71.0
    fault = timeline.fault()
    assert fault is not None
    assert fault.name == "wrong_chunks"
    clock.seconds = 116.0
    assert timeline.fault() is None
    assert json.loads(file.read_text()) == {
        "first_score_at": (START + timedelta(seconds=40)).isoformat(),
        "faults": [
            {
                "fault": "wrong_chunks",
                "title": "after a rebuild of the index the retriever returns wrong chunks",
                "start": (START + timedelta(seconds=71)).isoformat(),
                "end": (START + timedelta(seconds=116)).isoformat(),
            }
        ],
    }


def test_a_fault_stays_on_until_its_first_windows_are_judged_and_the_next_waits(tmp_path: Path) -> None:
    clock = Clock()
    timeline = Timeline(Schedule(), tmp_path / "timeline.json", clock.now, clock.monotonic, shown_after_s=30)
    clearest, other = "context_relevancy_soft.recall_relevancy", "rouge.rouge_l"
    timeline.begin()
    clock.seconds = 31.0
    assert timeline.fault() is not None
    for seconds, judged_s in ((60.0, 40), (80.0, 55), (100.0, 60.9)):
        clock.seconds = seconds
        timeline.judged({clearest: START + timedelta(seconds=judged_s), other: START + timedelta(seconds=99)})
        assert timeline.fault() is not None, seconds
    clock.seconds = 110.0
    timeline.judged({clearest: START + timedelta(seconds=61)})
    assert timeline.fault() is None
    clock.seconds = 169.0  # it ended 35 s late: by the schedule the next would be on from 135 s
    assert timeline.fault() is None
    clock.seconds = 170.5
    fault = timeline.fault()
    assert fault is not None
    assert fault.name == "invented"


def test_a_fault_whose_windows_are_judged_in_time_ends_on_schedule(tmp_path: Path) -> None:
    clock = Clock()
    timeline = Timeline(Schedule(), tmp_path / "timeline.json", clock.now, clock.monotonic, shown_after_s=30)
    timeline.begin()
    clock.seconds = 30.0
    assert timeline.fault() is not None
    clock.seconds = 70.0
    timeline.judged({"context_relevancy_soft.recall_relevancy": START + timedelta(seconds=61)})
    clock.seconds = 74.9
    assert timeline.fault() is not None
    clock.seconds = 75.0
    assert timeline.fault() is None
