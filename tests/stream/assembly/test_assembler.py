"""When traces are complete, sent again, forgotten; what a restart knows of them."""

import pytest
from msgspec.structs import replace

from ragtide.evaluators.errors import BadRecord
from ragtide.stream.ingest.otel import LogEvent
from ragtide.stream.settings.otel import OtelSettings
from ragtide.stream.worker.assembly.messages import Sent, encode_sent
from tests.stream.assembly.scene import FAR_MS, OTEL, START_MS, Stage, expected, part, rag_trace
from tests.stream.otel.scene import HOURS, oi, recorded, span

ROOT, *CHILDREN = rag_trace("a")
WHOLE = expected(rag_trace("a"))


def test_a_trace_is_complete_once_its_root_ended_and_it_was_quiet() -> None:
    stage = Stage()
    stage.write(0, "a", part(*CHILDREN))
    stage.write(40, "b", part(*rag_trace("b")))  # quiet, and without a root
    stage.read()
    assert stage.sent == []
    stage.write(41, "a", part(ROOT))
    stage.write(70.9, "c", part(*rag_trace("c")))
    stage.read()
    assert [key for key, _ in stage.sent] == [b"b"]
    stage.write(71, "c", part(*rag_trace("c")))
    stage.read()
    assert stage.traces[b"a"] == WHOLE[b"a"]
    assert stage.results == ["sent", "sent"]


def test_a_trace_without_a_root_is_complete_when_it_was_open_for_long() -> None:
    stage = Stage()
    stage.write(0, "a", part(CHILDREN[1]))
    stage.write(899.9, "x", part(span(9, 8)))
    stage.read()
    assert stage.sent == []
    stage.write(900, "x", part(span(9, 8)))
    stage.read()
    assert stage.traces == expected([CHILDREN[1]])


def test_a_chain_whose_parent_never_comes_is_a_root_unless_there_are_several() -> None:
    inner = [replace(one, parent_id=f"{77:016x}") for one in rag_trace("a")[:1]]
    stage = Stage()
    stage.write(0, "a", part(*inner, *CHILDREN))
    two = [replace(inner[0], trace_id="b", span_id=f"{number:016x}") for number in (1, 5)]
    stage.write(0, "b", part(*two))
    stage.advance(START_MS + 31_000)
    assert [key for key, _ in stage.sent] == [b"a"]
    stage.advance(START_MS + 900_000)
    assert [key for key, _ in stage.sent[1:]] == [f"b:{1:016x}".encode(), f"b:{5:016x}".encode()]


def test_a_trace_whose_middle_is_missing_waits_for_it_and_is_never_sent_in_pieces() -> None:
    chains = [span(n, parent, n, 9, **oi("CHAIN", input__value="q")) for n, parent in ((1, 0), (2, 1), (3, 2), (4, 2))]
    top, middle, *below = [replace(one, trace_id="a") for one in chains]
    stage = Stage()
    stage.write(0, "a", part(top, *below))
    stage.advance(START_MS + 60_000)
    assert stage.sent == []
    stage.write(61, "a", part(middle))
    stage.advance(START_MS + 91_000)
    assert stage.sent == [*expected([top, middle, *below]).items()]


def test_a_late_span_sends_the_trace_again_and_one_that_changes_nothing_does_not() -> None:
    stage = Stage()
    stage.write(0, "a", part(ROOT, *CHILDREN[1:]))
    stage.write(31, "z", part(span(9, 8)))
    stage.read()
    assert stage.traces == expected([ROOT, *CHILDREN[1:]])
    stage.write(100, "a", part(ROOT))
    stage.write(131, "z", part(span(9, 8)))
    stage.read()
    assert stage.results == ["sent", "unchanged"]
    stage.write(200, "a", part(CHILDREN[0]))
    stage.write(231, "z", part(span(9, 8)))
    stage.read()
    assert stage.results == ["sent", "unchanged", "sent_again"]
    assert stage.traces == WHOLE


def test_a_span_that_comes_after_its_trace_was_forgotten_replaces_nothing() -> None:
    stage = Stage()
    stage.write(0, "a", part(ROOT, *CHILDREN[:1]))
    stage.advance(START_MS + 30_000 + 299_999)
    assert stage.assembler.hold == 0
    stage.advance(START_MS + 30_000 + 300_000)
    assert stage.assembler.hold is None
    assert stage.store.memory_bytes == 0
    stage.write(400, "a", part(*CHILDREN[1:]))
    stage.advance()
    assert stage.results == ["sent", "late"]
    assert stage.traces == expected([ROOT, *CHILDREN[:1]])


@pytest.mark.parametrize("parent", ["", f"{77:016x}"], ids=["root", "parent elsewhere"])
def test_a_whole_trace_may_come_long_after_it_ended(parent: str) -> None:
    top = replace(ROOT, parent_id=parent)
    stage = Stage()
    stage.write(86_400, "a", part(top, *CHILDREN))
    stage.advance()
    assert stage.traces == expected([top, *CHILDREN])
    assert stage.results == ["sent"]


def test_a_trace_over_three_days_is_sent_now_and_then_and_holds_no_commit_for_long() -> None:
    stage = Stage()
    for number in range(1, 3 * 24 * 6):
        at = number * 600
        stage.write(at, "a", part(replace(span(number + 9, 1, at, at + 1, **oi("LLM")), trace_id="a")))
        stage.write(at + 1, "x", part(span(9, 8)))
        stage.read()
        hold = stage.assembler.hold
        assert hold is None or stage.log[hold].timestamp_ms > stage.log[-1].timestamp_ms - 1_300_000
    stage.write(259_000, "a", part(ROOT, *CHILDREN))
    stage.advance()
    assert stage.results.count("sent") > 100
    assert b"When does the museum open?" in stage.traces[b"a"]


def test_a_restart_sends_nothing_again_that_was_sent_and_marked() -> None:
    stage = Stage()
    for number in range(20):
        stage.write(number * 20, f"t{number}", part(*rag_trace(f"t{number}")))
        stage.read()
    before = len(stage.sent)
    assert before == 18
    assert 0 < stage.committed < 20, "traces are kept, and so is what they are made of"
    stage.restart()
    stage.read()
    stage.advance()
    assert sorted(key for key, _ in stage.sent) == sorted(f"t{number}".encode() for number in range(20))


def test_a_restart_in_the_middle_of_a_forgotten_trace_does_not_send_its_end_alone() -> None:
    stage = Stage()
    stage.write(0, "a", part(*CHILDREN))
    stage.write(1, "b", part(replace(CHILDREN[0], trace_id="b")))  # stays open
    stage.write(2, "a", part(ROOT))
    stage.write(40, "x", part(span(9, 8)))
    stage.read()
    stage.write(340, "x", part(span(9, 8)))
    stage.read()
    assert stage.traces == WHOLE
    assert stage.committed == 1, "the messages of trace a lie on both sides of it"
    stage.restart()
    stage.advance()
    assert stage.traces[b"a"] == WHOLE[b"a"]
    assert [key for key, _ in stage.sent].count(b"a") == 1


def test_a_crash_between_trace_and_mark_sends_the_same_again() -> None:
    stage = Stage()
    stage.write(0, "a", part(*CHILDREN))
    stage.write(1, "a", part(ROOT))
    stage.write(40, "x", part(span(9, 8)))
    stage.read(dies_at="mark")
    stage.read()
    stage.advance()
    assert stage.sent == [*WHOLE.items()] * 2


def test_a_mark_of_another_reader_settles_what_both_read() -> None:
    stage = Stage()
    stage.write(0, "a", part(ROOT, *CHILDREN))
    stage.write(1, "a", encode_sent(Sent(0, 0, b"d")))
    stage.write(40, "x", part(span(9, 8)))
    stage.read()
    assert stage.sent == []
    stage.write(41, "a", part(CHILDREN[0]))
    stage.write(80, "x", part(span(9, 8)))
    stage.read()
    assert stage.results == ["sent_again"]


def test_time_never_goes_back() -> None:
    stage = Stage()
    stage.write(0, "a", part(ROOT, *CHILDREN))
    stage.write(-5_000, "a", part(CHILDREN[0]))
    stage.write(29, "x", part(span(9, 8)))
    stage.read()
    assert stage.sent == []
    stage.write(30, "x", part(span(9, 8)))
    stage.read()
    assert stage.traces == WHOLE


def test_a_trace_of_too_many_spans_keeps_what_its_fields_come_from() -> None:
    stage = Stage(OtelSettings(max_trace_spans=100))
    for number in range(50):
        noise = [span(1000 + number * 10 + n, 1, 2, 3) for n in range(10)]
        stage.write(number / 10, "a", part(*(replace(one, trace_id="a") for one in noise)))
    stage.write(6, "a", part(ROOT, *CHILDREN))
    stage.read()
    stage.advance()
    assert stage.assembler.left_out >= 500 + 4 - 100
    [(key, value)] = stage.sent
    assert (key, value) == (b"a", WHOLE[b"a"])


def test_a_damaged_part_costs_that_part() -> None:
    stage = Stage()
    stage.write(0, "a", part(ROOT, *CHILDREN))
    stage.write(1, "a", b"\x10\x00\x00\x00\x00\x01broken")
    stage.write(31, "x", part(span(9, 8)))
    stage.read()
    assert stage.traces == WHOLE


def test_a_trace_of_too_many_bytes_loses_the_spans_that_are_too_large() -> None:
    stage = Stage(OtelSettings(max_trace_bytes=1 << 16))
    large = [replace(span(n, 1, 2, 3, x="y" * 40_000), trace_id="a") for n in (7, 8)]
    stage.write(0, "a", part(*large))
    stage.write(1, "a", part(ROOT, *CHILDREN))
    stage.advance()
    assert stage.traces == WHOLE
    assert stage.assembler.left_out == 2


def test_log_records_that_a_trace_of_too_many_bytes_loses_are_counted() -> None:
    stage = Stage(OtelSettings(max_trace_bytes=1 << 16))
    fits, large, of_no_span = (
        LogEvent("a", span_id, "n", attributes={"x": "y" * size})
        for span_id, size in ((ROOT.span_id, 1000), (ROOT.span_id, 70_000), (f"{99:016x}", 10))
    )
    stage.write(0, "a", part(ROOT, *CHILDREN, logs=[fits, large, of_no_span]))
    stage.advance()
    assert stage.traces == expected([ROOT, *CHILDREN], [fits])
    assert stage.assembler.left_out == 2


def test_spans_that_came_twice_are_not_left_out() -> None:
    stage = Stage(OtelSettings(max_trace_spans=100))
    for number in range(30):
        stage.write(number / 10, "a", part(ROOT, *CHILDREN))
    stage.advance()
    assert stage.traces == WHOLE
    assert stage.assembler.left_out == 0


@pytest.mark.parametrize("value", [None, b"", b"{}", b"\x30\x00\x00\x00\x00\x01", b"\x20\x00\x00\x00\x00\x00\xc1"])
def test_a_message_from_elsewhere_is_a_bad_record_and_costs_nothing_else(value: bytes | None) -> None:
    stage = Stage()
    stage.write(0, "a", part(ROOT, *CHILDREN))
    stage.read()
    with pytest.raises(BadRecord):
        stage.assembler.feed(1, START_MS + 31_000, "a", value)
    stage.advance(FAR_MS)
    assert stage.traces == WHOLE


HOSTILE = {
    "cycle": [span(1, 2, **oi("CHAIN", input__value="q")), span(2, 1, **oi("LLM"))],
    "two roots": [span(1, 0, **oi("CHAIN", input__value="q")), span(2, 0, **oi("CHAIN", input__value="r"))],
    "tomorrow": [span(1, 0, 86_400, 86_401, **oi("CHAIN", input__value="q"))],
    "clock jumps": [span(1, 0, 100, 1, **oi("CHAIN", input__value="q")), span(2, 1, -9e5, 9e5, **oi("LLM"))],
    "no times": [replace(span(1, 0, **oi("CHAIN", input__value="q")), start_ns=0, end_ns=0)],
    "last times": [replace(span(1, 0, **oi("CHAIN")), start_ns=2**64 - 1, end_ns=2**64 - 1)],
    "wrong types": [span(1, 0, **oi("CHAIN", input__value=[[{"a": b"\xff"}], 1e300, None], session__id={"a": []}))],
    "10,000 spans": [span(number, number // 2, 0, 1, **oi("TOOL")) for number in range(1, 10_001)],
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_spans_become_what_they_map_to_and_the_next_trace_is_whole(name: str) -> None:
    stage = Stage()
    spans = [replace(one, trace_id="h") for one in HOSTILE[name]]
    for start in range(0, len(spans), 1_000):
        stage.write(start / 1_000, "h", part(*spans[start : start + 1_000]))
    stage.write(15, "a", part(ROOT, *CHILDREN))
    stage.advance()
    assert stage.traces == expected(spans) | WHOLE
    assert stage.assembler.hold is None


def test_texts_come_from_the_prompt_if_the_settings_say_so() -> None:
    spans, _ = recorded("genai_langchain")
    otel = OTEL.model_copy(update={"contexts_from_prompt": "whole"})
    for settings, found in ((OTEL, 0), (otel, 1)):
        stage = Stage(settings)
        stage.write(0, spans[0].trace_id, part(*spans))
        stage.advance()
        [(_, value)] = stage.sent
        assert value.count(b'"contexts_from":"prompt"') == found
        assert value.count(HOURS.encode()) == found


def test_a_mark_that_is_read_late_takes_no_newer_spans_away() -> None:
    """A stage that was away reads an old trace and, long after, its root before the mark of the first is written."""
    stage = Stage()
    stage.write(0, "a", part(*CHILDREN))
    stage.write(OTEL.max_open_s + OTEL.late_s + 1, "a", part(ROOT, *CHILDREN))
    stage.advance()
    assert stage.results == ["sent", "sent"]
    assert stage.traces == WHOLE
    stage.restart()
    stage.advance()
    assert stage.traces == WHOLE
