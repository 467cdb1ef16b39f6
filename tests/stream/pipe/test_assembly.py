"""The pipeline that workers run, with the built-in evaluators on records nobody wants."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.plan import DEFAULT_TASK
from ragtide.evaluators.settings import EncoderSettings
from ragtide.sinks.memory import MemorySink
from ragtide.stream.assembly import assemble
from ragtide.stream.jobs_process import warn_if_encoder_assumed
from ragtide.stream.pipeline import Pipeline
from ragtide.stream.settings.loader import Settings
from tests.stream.pipe.records import clock, record


@pytest.fixture(scope="module")
def fast() -> Pipeline:
    return assemble(Settings(), "fast", clock=clock).pipeline


@pytest.fixture(scope="module")
def model() -> Pipeline:
    encoder = {"backend": "onnx", "model": "all-MiniLM-L6-v2"}
    return assemble(Settings.model_validate({"evaluators": {"encoder": encoder}}), "model", clock=clock).pipeline


@pytest.fixture(params=["fast", pytest.param("model", marks=pytest.mark.onnx)])
def lane(request: pytest.FixtureRequest) -> Pipeline:
    found: Pipeline = request.getfixturevalue(request.param)
    return found


def test_each_lane_gets_its_evaluators_and_fast_loads_no_encoder(
    fast: Pipeline, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def load(settings: EncoderSettings) -> None:
        raise AssertionError("loaded an encoder that nothing needs")

    monkeypatch.setattr("ragtide.stream.assembly.load_encoder", load)
    made = assemble(Settings(), "fast")
    assert {prepared.evaluator.lane for prepared in made.pipeline.plan} == {"fast"}
    assert len(made.pipeline.plan) == len(fast.plan) >= 6
    assert not caplog.messages
    assert assemble(Settings(), "judge").pipeline.plan == ()
    assert caplog.messages == ["lane judge has no evaluator that can run: it reads the topic and scores nothing"]


HOSTILE = {
    "5 MB": "x" * 5_000_000,
    "a million words": "word " * 1_000_000,
    "lone surrogate": "\ud800",
    "nul": "\x00",
    "empty": "",
    "blank": "\n" * 10_000,
    "brackets": "((((" * 1_000,
    "invisible": "\u202e\ufeff\u200d" * 50,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("place", ["answer", "question", "chunk"])
def test_hostile_texts_become_rows_that_a_sink_takes(lane: Pipeline, text: str, place: str) -> None:
    odd = {"contexts": [{"id": "c-1", "text": text}]} if place == "chunk" else {place: text}
    done = lane.process([record(expected=["A string."], **odd), record(trace_id="t-2", offset=1)])
    assert not done.dead
    assert not [key for key in done.outcomes if key[1] == "failed"]
    sink = MemorySink()
    sink.write(done.block)
    assert len(sink.rows("traces")) == (2 if lane.lane == "fast" else 0)
    selecting = [one for one in lane.plan if not one.tasks or DEFAULT_TASK in one.tasks]
    assert len(sink.rows("scores")) == 2 * len(selecting) > 0
    if len(text) > 2_000_000:
        reasons = {row.reason for row in done.block.scores if row.trace_id == "t-1"}
        assert "too_long" in reasons


def test_what_is_off_for_want_of_a_resource_is_told_and_the_rest_works(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("onnxruntime", "torch", "sentence_transformers"):
        monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    made = assemble(Settings(), None, clock=clock)
    assert "ragtide[local]" in made.plan.unavailable["groundedness"]
    assert {prepared.evaluator.lane for prepared in made.pipeline.plan} == {"fast"}
    done = made.pipeline.process([record(expected=["A string."])])
    assert {row.evaluator for row in done.block.scores if row.status == "scored"} >= {"inputs", "operations", "rouge"}
    assert "failed" not in {row.status for row in done.block.scores}
    with pytest.raises(ConfigError, match=r"groundedness.*cannot run.*ragtide\[local\]"):
        assemble(Settings.model_validate({"evaluators": {"enabled": ["groundedness"]}}), None)


def test_a_name_that_no_evaluator_has_is_an_error() -> None:
    with pytest.raises(ConfigError, match="did you mean 'rouge'"):
        assemble(Settings.model_validate({"evaluators": {"enabled": ["rogue"]}}), "fast")


def test_jobs_say_so_where_they_can_only_guess_the_workers_encoder(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("ragtide.evaluators.encoder.model.find_spec", lambda name: None)
    warn_if_encoder_assumed(EncoderSettings(model="all-MiniLM-L6-v2"))
    assert not caplog.records
    warn_if_encoder_assumed(EncoderSettings())
    assert ["set it to the encoder of the workers" in record.getMessage() for record in caplog.records] == [True]


@pytest.mark.onnx
def test_a_lane_takes_a_card_only_where_it_runs_a_model(tmp_path: Path) -> None:
    """In a process of its own: what a process sees of the cards is settled once."""
    program = (
        "import os; from ragtide.stream.assembly import assemble; from ragtide.stream.settings.loader import Settings\n"
        "settings = Settings.model_validate({'evaluators': {'workers_per_card': 1, 'encoder': {'backend': 'onnx'},"
        " 'enabled': ['groundedness', 'rouge']}})\n"
        "for lane in ('fast', 'model'): assemble(settings, lane); print(os.environ['CUDA_VISIBLE_DEVICES'])"
    )
    given = {
        "CUDA_VISIBLE_DEVICES": "none-such-1,none-such-2",
        "TMPDIR": str(tmp_path),
        "PYTHONPATH": ":".join(sys.path),
    }
    ran = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **given}, stdout=subprocess.PIPE, check=True
    )
    assert ran.stdout.split() == [b"none-such-1,none-such-2", b"none-such-1"]
