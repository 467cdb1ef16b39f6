"""The table of `faults.py` and the limits of `demo.toml`, held against the real application, model and evaluators."""

from collections import Counter
from importlib import resources

import msgspec
import pytest

from benchmarks.demo_faults import Bench
from ragtide.evaluators.outcome import Failed, Scored
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.run import run_all
from ragtide.stream.cli import demo as demo_command
from ragtide.stream.demo.faults import FAULTS
from ragtide.stream.demo.traffic import encode
from ragtide.stream.ingest.decoding import Limits, decode_trace
from ragtide.stream.ingest.records import StoredRecord

pytestmark = pytest.mark.onnx


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench()


def test_every_metric_that_a_fault_moves_is_watched_by_a_rule(bench: Bench) -> None:
    assert {metric for fault in FAULTS.values() for metric in fault.moves} == {
        one.metric for one in bench.shown_metrics
    }


@pytest.mark.parametrize("seed", range(4))
def test_without_a_fault_every_window_is_good(bench: Bench, seed: int) -> None:
    means = bench.means(bench.traces(None, seed))
    assert [(one, means[one.metric]) for one in bench.shown_metrics if not one.good(means[one.metric])] == []
    assert (means["operations.error"], means["operations.empty_answer"], means["operations.empty_contexts"]) == (
        0,
        0,
        0,
    )


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_moves_its_metrics_beyond_their_limits_and_no_others(bench: Bench, name: str) -> None:
    means = bench.means(bench.traces(FAULTS[name], seed=11, count=120))
    moved = {one.metric for one in bench.shown_metrics if not one.good(means[one.metric])}
    assert moved == set(FAULTS[name].moves)


def test_no_evaluator_fails_on_the_traffic_and_every_one_has_something_to_say(bench: Bench) -> None:
    traces = bench.traces(None, seed=3, count=60)
    outcomes = run_all(bench.plan.prepared, traces, Resources(bench.encoder).batch())
    for prepared, row in zip(bench.plan.prepared, outcomes, strict=True):
        kinds = Counter(type(outcome) for outcome in row)
        assert kinds[Failed] == 0, prepared.evaluator.id
        assert kinds[Scored] > 0, prepared.evaluator.id


def test_nothing_in_the_corpus_or_the_questions_looks_like_personal_data(bench: Bench) -> None:
    """Every chunk there is, not only those that a window happens to retrieve."""
    scan = [prepared for prepared in bench.plan.prepared if prepared.evaluator.id == "pii_leakage"]
    trace = bench.traces(None, seed=0, count=1)[0]
    whole = [
        type(trace)(trace_id=passage.id, time=trace.time, app="demo", answer=passage.text) for passage in bench.passages
    ]
    (row,) = run_all(scan, whole, Resources(bench.encoder).batch())
    assert [outcome for outcome in row if not isinstance(outcome, Scored) or outcome.metrics["passes"] != 1.0] == []


def test_the_same_seed_asks_the_same_and_answers_the_same(bench: Bench) -> None:
    once, again = (bench.traces(FAULTS["invented"], seed=5, count=25) for _ in range(2))
    assert [(t.trace_id, t.question, t.answer) for t in once] == [(t.trace_id, t.question, t.answer) for t in again]
    other = bench.traces(FAULTS["invented"], seed=6, count=25)
    assert {t.trace_id for t in once}.isdisjoint(t.trace_id for t in other)


def test_what_is_sent_is_a_canonical_trace(bench: Bench) -> None:
    limits = Limits.of(bench.settings.ingest, bench.settings.retention, timely=True)
    for trace in bench.traces(FAULTS["leaked_email"], seed=2, count=20):
        value = encode(trace)
        assert b"null" not in value
        record = StoredRecord("rag.traces", 1, 7, int(trace.time.timestamp() * 1000), b"k", value)
        read = decode_trace(record, limits).trace
        assert abs((read.time - trace.time).total_seconds()) < 0.001
        assert msgspec.structs.replace(read, time=trace.time, source=None) == trace


def test_the_command_offers_every_fault_and_explains_it() -> None:
    assert tuple(FAULTS) == demo_command.FAULTS
    help_text = demo_command.command.help or ""
    assert all(f"      {name}" in help_text or f"  {name}" in help_text for name in FAULTS)


def test_the_settings_are_packaged() -> None:
    assert (resources.files("ragtide.stream.demo") / "demo.toml").is_file()
