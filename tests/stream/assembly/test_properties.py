"""Any split and order of spans, and any crash, give the same traces."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ragtide.stream.ingest.otel import LogEvent, Span
from tests.stream.assembly.scene import Stage, expected, part, rag_trace
from tests.stream.otel.scene import NAMES, recorded

STEPS = ("send", "mark", "commit", "")
LATEST_S = 250  # after the first span of a trace: within otel.late_s of the moment it is complete
Messages = list[tuple[float, str, list[Span], list[LogEvent]]]


def split(draw: st.DrawFn, spans: Sequence[Span], logs: Sequence[LogEvent], begin_s: float, within_s: int) -> Messages:
    """The spans and log records of one trace in messages, some of them twice, in any order."""
    items: list[Any] = [*spans, *logs]
    again = draw(st.lists(st.sampled_from(items), max_size=2))
    order = draw(st.permutations([*items, *again]))
    cuts = sorted(draw(st.lists(st.integers(1, len(order)), max_size=4)))
    messages: Messages = []
    for start, end in zip([0, *cuts], [*cuts, len(order)], strict=True):
        if items := order[start:end]:
            found = [one for one in items if isinstance(one, Span)], [one for one in items if isinstance(one, LogEvent)]
            messages.append((begin_s + draw(st.integers(0, within_s)), items[0].trace_id, *found))
    return messages


@st.composite
def traffic(draw: st.DrawFn, within_s: int) -> tuple[Messages, dict[bytes, bytes]]:
    """Messages of up to twelve traces by time, and the traces that they become."""
    messages: Messages = []
    wanted: dict[bytes, bytes] = {}
    for number in range(draw(st.integers(1, 12))):
        spans = rag_trace(f"t{number}", f"answer {number}")
        messages += split(draw, spans, (), draw(st.integers(0, 1_500)), within_s)
        wanted |= expected(spans)
    return sorted(messages, key=lambda one: one[0]), wanted


@given(traffic(within_s=29))
@settings(max_examples=200)
def test_any_split_within_the_quiet_time_sends_each_trace_once(found: tuple[Messages, dict[bytes, bytes]]) -> None:
    messages, wanted = found
    stage = Stage()
    for at_s, trace_id, spans, logs in messages:
        stage.write(at_s, trace_id, part(*spans, logs=logs))
    stage.advance()
    assert sorted(stage.sent) == sorted(wanted.items())
    assert (stage.store.memory_bytes, stage.store.disk_bytes) == (0, 0)


@given(st.sampled_from(NAMES), st.data())
@settings(max_examples=60)
def test_any_split_of_recorded_spans_and_logs_becomes_the_recorded_trace(name: str, data: st.DataObject) -> None:
    spans, logs = recorded(name)
    stage = Stage()
    for at_s, trace_id, some_spans, some_logs in sorted(
        data.draw(st.composite(split)(spans, logs, 0, 29)), key=lambda one: one[0]
    ):
        stage.write(at_s, trace_id, part(*some_spans, logs=some_logs))
    stage.advance()
    assert stage.traces == expected(spans, logs)


@given(traffic(within_s=LATEST_S), st.data(), st.sampled_from([1 << 20, 4_000]))
@settings(max_examples=300)
def test_a_crash_at_any_step_ends_in_the_same_traces(
    found: tuple[Messages, dict[bytes, bytes]], data: st.DataObject, memory_bytes: int
) -> None:
    """Late spans send traces again, commits move on, and forgotten traces lie on both sides of them."""
    messages, wanted = found
    stage = Stage(memory_bytes=memory_bytes)
    for at_s, trace_id, spans, logs in messages:
        stage.write(at_s, trace_id, part(*spans, logs=logs))
        if data.draw(st.booleans()):
            stage.read(dies_at=data.draw(st.sampled_from(STEPS)))
        assert stage.store.memory_bytes <= memory_bytes
    stage.advance()
    assert stage.traces == wanted


@given(traffic(within_s=LATEST_S), st.integers(0, 50))
@settings(max_examples=100)
def test_a_replay_from_the_beginning_sends_what_live_sent(found: tuple[Messages, dict[bytes, bytes]], lag: int) -> None:
    """Whether records are read one by one or after a pause: timestamps alone decide."""
    messages, _ = found
    live, replay = Stage(), Stage()
    for number, (at_s, trace_id, spans, logs) in enumerate(messages):
        live.write(at_s, trace_id, part(*spans, logs=logs))
        replay.write(at_s, trace_id, part(*spans, logs=logs))
        if number >= lag:
            live.read()
    live.advance()
    replay.advance()
    assert live.traces == replay.traces
