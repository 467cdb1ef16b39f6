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
                "start": (START + timedelta(seconds=71)).isoformat(),
                "end": (START + timedelta(seconds=116)).isoformat(),
            }
        ],
    }
