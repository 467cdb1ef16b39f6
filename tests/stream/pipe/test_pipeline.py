"""Records become rows: the same rows however they are cut and however often they are read, and nothing is lost."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count, pairwise
from typing import Any

from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pydantic import BaseModel

from ragtide.evaluators import registry
from ragtide.evaluators.checks import CountingEncoder
from ragtide.evaluators.encoder.hashing import HashingEncoder
from ragtide.evaluators.outcome import Evidence, Finding, NotApplicable, Outcome, Scored
from ragtide.evaluators.plan import PreparedEvaluator, prepare
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.spec import Evaluator, Lane, Metric, NoParams, Shared, evaluator
from ragtide.sinks.memory import MemorySink
from ragtide.sinks.rows import Block, DirtyRow, ScoreRow, TextRow, TraceRow
from ragtide.stream.ingest.records import StoredRecord, UnreadableBatch
from ragtide.stream.pipeline import Interval, Pipeline
from ragtide.stream.settings.loader import Settings
from tests.stream.pipe.records import AT_MS, clock, record, version


@dataclass(frozen=True)
class Answer:
    answer: str


@evaluator("words", version=3, domain="generation", method="rule", inputs=Answer, metrics=[Metric("n", high=1e9)])
def words(rows: Sequence[Answer], shared: Shared, params: BaseModel) -> Iterable[Outcome]:
    """How many words an answer has; not applicable to an empty one, and it breaks on "boom"."""
    for row in rows:
        if row.answer == "boom":
            raise RuntimeError(row.answer)
        if row.answer:
            found = Evidence("answer", 0, 1, kind="first")
            yield Scored({"n": len(row.answer.split())}, {"kind": "some"}, {"p": 1.0}, (found,), (Finding("f", "x"),))
        else:
            yield NotApplicable("empty_answer")


@evaluator("slow_words", version=1, domain="generation", method="lm", inputs=Answer, metrics=[Metric("n", high=1e9)])
def slow_words(rows: Sequence[Answer], shared: Shared, params: BaseModel) -> Iterable[Outcome]:
    """The same in the model lane."""
    return [Scored({"n": len(row.answer.split())}) for row in rows]


def prepared(made: Evaluator = words, tasks: tuple[str, ...] = ()) -> PreparedEvaluator:
    return PreparedEvaluator(made, NoParams(), f"f-{made.id}", tasks)


def pipeline(
    *plan: PreparedEvaluator,
    lane: Lane | None = "fast",
    settings: Settings | None = None,
    run_id: str = "live",
    **more: Any,
) -> Pipeline:
    marks = (f"m{n}" for n in count())
    return Pipeline(
        plan or (prepared(),),
        Resources(),
        settings or Settings(),
        lane=lane,
        run_id=run_id,
        new_mark=lambda: next(marks),
        **{"clock": clock, **more},
    )


def process(*records: StoredRecord, **how: Any) -> Block:
    return pipeline(**how).process(records).block


def configured(**sections: dict[str, object]) -> Settings:
    return Settings.model_validate(sections)


def test_a_timestamp_beyond_what_tables_hold_stops_nobody() -> None:
    """Microseconds, say, where a producer should give milliseconds."""
    done = pipeline().process([record(timestamp=AT_MS * 1000)])
    assert [letter.reason for letter in done.dead] == ["timestamp_in_the_future"]
    assert [row.time.isoformat() for row in done.block.dead_letters] == ["2105-12-31T23:59:59.999000+00:00"]


def test_the_rows_of_one_trace() -> None:
    done = pipeline().process([record(offset=5, user_id="u", session_id="s", expected=["A string."], thumbs="up")])
    time = datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert done.block.traces == [
        TraceRow(
            *("live", "docs", "prod", time, "t-1", version(5), "s", "u", "question_answering", ""),
            *("small-2", "small", "", "p7", 1.5, 0.2, 0.002, 100, 20, ""),
            *(["c-1"], (), {"tenant": "acme"}, "[]", "{}", "rag.traces", 0, 5, "47945af1699004fa"),
        )
    ]
    assert done.block.texts == [
        TextRow(
            *("live", "docs", "prod", time, "t-1", version(5)),
            *("What does json.dumps return?", "It returns a string.", ["c-1"], ["json.dumps returns a string."]),
            *(("A string.",), "", '{"thumbs":"up"}', done.block.texts[0].rest),
        )
    ]
    evidence = [{"field": "answer", "start": 0, "end": 1, "chunk_id": None, "kind": "first", "score": None}]
    (score,) = done.block.scores
    assert json.loads(score.evidence) == evidence
    assert score._replace(evidence="") == ScoreRow(
        *("live", "docs", "prod", "words", time, "t-1", version(5, 0, 3), "scored", "", {"n": 4}),
        *({"kind": "some"}, {"p": 1.0}, "", ["f"], "f-words", 1.0, "small-2", "p7", {"tenant": "acme"}),
    )
    assert done.block.dirty == [DirtyRow("live", "docs", "prod", "fast", time, "m0")]
    assert (done.decoded, done.newest, done.dead) == (1, time, [])
    assert done.outcomes == {("words", "scored"): 1}


def test_texts_stand_nowhere_but_in_the_texts_row() -> None:
    secret = "only-here"
    block = process(
        record(
            question=f"{secret} q",
            answer=f"{secret} a",
            contexts=[{"id": "c", "text": f"{secret} c", "metadata": {"m": secret}}],
            expected=[secret],
            error={"type": "Timeout", "message": secret},
            attributes={"free": secret},
        )
    )
    assert secret in repr(block.texts)
    assert secret not in repr([block.traces, block.scores, block.dirty, block.dead_letters])


def test_texts_can_be_left_out() -> None:
    block = process(record(), settings=configured(privacy={"store_texts": "off"}))
    assert block.texts == []
    assert len(block.traces) == len(block.scores) == 1


def test_users_are_hashed_with_the_key() -> None:
    def users(key: str) -> list[str]:
        settings = configured(privacy={"hash_users": True, "hash_key": key})
        asked = [record(user_id="ann"), record(trace_id="t-2", user_id="ann"), record(trace_id="t-3")]
        block = process(*asked, settings=settings)
        return [row.user_id for row in block.traces]

    first, again, nobody = users("k")
    # printf ann | openssl dgst -sha256 -hmac k | cut -c -32
    assert first == again == "9266175ac0e5692db793c2ff4b72068c"
    assert nobody == ""
    assert users("other")[0] != first


def test_a_bad_record_is_a_dead_letter_of_the_fast_lane_and_skipped_by_the_others() -> None:
    poison = record(b"not json, secret", offset=9)
    fast = pipeline().process([poison, record()])
    assert [(dead.record, dead.reason, dead.stage) for dead in fast.dead] == [(poison, "not_json", "decode")]
    (row,) = fast.block.dead_letters
    assert (row.topic, row.offset, row.reason, row.size, row.run_id) == ("rag.traces", 9, "not_json", 16, "live")
    assert row.time == datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert "secret" not in repr(row)
    assert not fast.skipped
    model = pipeline(lane="model").process([poison, record()])
    assert model.dead == []
    assert model.block.dead_letters == []
    assert model.skipped == {"not_json": 1}
    assert (fast.decoded, model.decoded) == (1, 1)


def test_a_batch_that_cannot_be_read_is_told_by_that_whatever_its_timestamp() -> None:
    batch = UnreadableBatch("batch_too_large", "the batch of offsets 3 to 7 is too large", 3, 7, 5, "zstd")
    for timestamp in (AT_MS, 0, -1, 1 << 62):
        unreadable = StoredRecord("rag.traces", 0, 7, timestamp, None, b"stored", [batch.header()])
        [dead] = pipeline().process([unreadable]).dead
        assert (dead.reason, dead.detail) == (batch.reason, batch.detail)


def test_only_the_fast_lane_writes_traces_and_each_lane_marks_its_own() -> None:
    block = process(record(), lane="model")
    assert not block.traces
    assert not block.texts
    assert len(block.scores) == 1
    everything = pipeline(prepared(), prepared(slow_words), lane=None, run_id="r").process([record()]).block
    assert len(everything.traces) == 1
    assert [row.lane for row in everything.dirty] == ["fast", "model"]
    assert {row[0] for row in [*everything.traces, *everything.scores, *everything.dirty]} == {"r"}
    fast = pipeline(prepared(), lane="fast").process([record()]).block
    assert [row.lane for row in fast.dirty] == ["fast"]


def test_probes_have_a_run_of_their_own_and_stay_in_a_replay() -> None:
    block = process(record(), record(trace_id="t-2", probe="golden"))
    assert [row.run_id for row in block.traces] == ["live", "probe"]
    assert sorted(row.run_id for row in block.dirty) == ["live", "probe"]
    assert [row.run_id for row in process(record(probe="golden"), run_id="r", lane=None).traces] == ["r"]


def test_of_two_messages_about_a_trace_the_later_stands() -> None:
    first, second = record(offset=1, answer="one"), record(offset=2, answer="one two")
    for order in ([first, second], [second, first]):
        block = process(*order)
        assert [row.version for row in block.traces] == [version(2)]
        assert [row.metrics for row in block.scores] == [{"n": 2}]


def test_the_same_trace_in_another_minute_is_a_row_of_its_own() -> None:
    block = process(record(offset=1), record(offset=2, time=AT_MS + 60_000))
    assert len(block.traces) == 2
    assert len({row.start for row in block.dirty}) == 2


def test_marks_are_of_base_windows() -> None:
    times = [AT_MS, AT_MS + 9_999, AT_MS + 10_000]
    block = process(
        *(record(trace_id=str(time), time=time) for time in times), settings=configured(windows={"base_s": 10})
    )
    assert [row.start.second for row in block.dirty] == [0, 10]
    assert {row.mark_id for row in block.dirty} == {"m0"}


def test_every_write_has_marks_of_its_own() -> None:
    made = pipeline()
    first, second = (made.process([record()]).block.dirty for _ in range(2))
    assert first[0].mark_id != second[0].mark_id


def test_newest_is_never_ahead_of_the_broker() -> None:
    done = pipeline().process([record(time=AT_MS + 60_000), record(trace_id="t-2", time=AT_MS - 5_000)])
    assert done.newest == datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert pipeline().process([]).newest is None


def test_what_an_evaluator_cannot_do_costs_one_record() -> None:
    records = [record(trace_id=f"t-{n}", offset=n, answer="boom" if n == 3 else "fine words") for n in range(8)]
    done = pipeline().process(records)
    rows = {row.trace_id: (row.status, row.reason) for row in done.block.scores}
    assert rows.pop("t-3") == ("failed", "crashed")
    assert set(rows.values()) == {("scored", "")}
    assert done.outcomes == {("words", "scored"): 7, ("words", "failed"): 1}
    assert "boom" not in repr(done.block.scores)


def test_not_applicable_and_not_selected() -> None:
    (row,) = process(record(answer="")).scores
    assert (row.status, row.reason, row.metrics) == ("not_applicable", "empty_answer", {})
    (row,) = process(record(answer=...)).scores
    assert (row.status, row.reason) == ("not_applicable", "missing_answer")
    done = pipeline(prepared(tasks=("summarization",))).process(
        [record(), record(trace_id="t-2", task="summarization")]
    )
    assert [row.trace_id for row in done.block.scores] == ["t-2"]


def test_sampling_is_decided_by_the_trace_id_and_leaves_a_row() -> None:
    records = [record(trace_id=f"trace-{n}", offset=n) for n in range(1000)]
    settings = configured(sampling={"evaluators": {"words": 0.25}})
    block = process(*records, settings=settings)
    statuses = {row.trace_id: row.status for row in block.scores}
    assert len(statuses) == len(block.scores) == 1000
    chosen = {trace for trace, status in statuses.items() if status == "scored"}
    assert 200 < len(chosen) < 300  # 250 expected, 3.6 standard deviations of 13.7 either way
    assert {row.weight for row in block.scores} == {4.0}
    assert {row.reason for row in block.scores if row.status == "sampled_out"} == {"not_sampled"}
    again = process(*reversed(records), settings=settings)
    assert {row.trace_id: row.status for row in again.scores} == statuses
    larger = process(*records, settings=configured(sampling={"lanes": {"fast": 0.5}}))
    assert chosen < {row.trace_id for row in larger.scores if row.status == "scored"}


def test_sampling_leaves_no_row_where_the_task_does_not_select() -> None:
    settings = configured(sampling={"evaluators": {"words": 0.0}})
    done = pipeline(prepared(tasks=("summarization",)), settings=settings).process([record()])
    assert done.block.scores == []


def test_evaluators_of_different_samples_share_one_call_to_the_encoder() -> None:
    settings = configured(
        evaluators={"enabled": ["groundedness", "context_relevancy_soft"]},
        sampling={"evaluators": {"context_relevancy_soft": 0.5}},
        privacy={"store_embeddings": False},  # their call comes after
    )
    encoder = CountingEncoder(HashingEncoder())
    plan = prepare(registry.load(), settings.evaluators, "model", encoder).prepared
    records = [
        record(trace_id=f"trace-{n}", offset=n, question=f"What is item {n}?", answer=f"Item {n} is one of twenty.")
        for n in range(20)
    ]
    done = Pipeline(plan, Resources(encoder), settings, lane="model", clock=clock).process(records)
    assert done.outcomes["groundedness", "scored"] == 20
    assert 0 < done.outcomes["context_relevancy_soft", "scored"] < 20
    assert done.outcomes["context_relevancy_soft", "sampled_out"] > 0
    assert encoder.calls == 1


def test_micro_batches_are_bounded_by_count_and_bytes() -> None:
    sizes: list[int] = []

    @evaluator("seen", version=1, domain="generation", method="rule", inputs=Answer, metrics=[Metric("n")])
    def seen(rows: Sequence[Answer], shared: Shared, params: BaseModel) -> Iterable[Outcome]:
        """Tells how many it got at once."""
        sizes.append(len(rows))
        return [Scored({"n": 1.0}) for _ in rows]

    small = [record(trace_id=f"t-{n}", offset=n) for n in range(10)]
    pipeline(prepared(seen), settings=configured(worker={"batch_records": 4})).process(small)
    assert sizes == [4, 4, 2]
    sizes.clear()
    large = [record(trace_id=f"t-{n}", offset=n, answer="x" * 400) for n in range(3)]
    pipeline(prepared(seen), settings=configured(worker={"batch_bytes": 1024})).process(large)
    assert sizes == [1, 1, 1]


def test_a_period_takes_traces_by_event_time_and_the_unreadable_by_the_brokers() -> None:
    period = Interval(AT_MS / 1000, AT_MS / 1000 + 60)
    records = [
        *(record(trace_id=f"t-{n}", offset=n, time=AT_MS + at) for n, at in enumerate((-1, 0, 59_999, 60_000))),
        record(b"x", offset=10),
        record(b"x", offset=11, timestamp=AT_MS + 60_000),
    ]
    done = pipeline(lane=None, run_id="r", timely=False, interval=period).process(records)
    assert [row.trace_id for row in done.block.traces] == ["t-1", "t-2"]
    assert [row.offset for row in done.block.dead_letters] == [10]
    assert done.skipped == {"out_of_period": 3}


def test_a_thousand_days_in_one_batch() -> None:
    day = 86_400_000
    records = [record(trace_id=f"t-{n}", offset=n, time=AT_MS - n * day) for n in range(1000)]
    live = pipeline().process(records)
    assert len(live.block.traces) == 8  # today and seven days back
    assert {dead.reason for dead in live.dead} == {"too_old"}
    assert len(live.dead) + len(live.block.traces) == 1000
    replayed = pipeline(lane=None, run_id="r", timely=False).process(records)
    assert len(replayed.block.traces) == 1000


RECORDS = st.lists(
    st.builds(
        lambda trace, at, text: (
            record(b"x") if text is None else record(trace_id=f"t-{trace}", time=AT_MS + at, answer=text)
        ),
        st.integers(0, 3),
        st.sampled_from([0, 59_999, 60_000]),
        st.sampled_from(["", "boom", "one", "one two", None]),
    ),
    max_size=12,
).map(lambda made: [StoredRecord(r.topic, 0, n, r.timestamp, r.key, r.value) for n, r in enumerate(made)])


@hypothesis_settings(deadline=None, max_examples=60)
@given(RECORDS, st.lists(st.integers(0, 12), max_size=4), st.integers(1, 5))
def test_the_same_rows_however_records_are_cut_and_however_often_read(
    records: list[StoredRecord], cuts: list[int], batch: int
) -> None:
    whole, parts = MemorySink(), MemorySink()
    whole.write(pipeline().process(records).block)
    made = pipeline(settings=configured(worker={"batch_records": batch}))
    edges = [0, *sorted(cuts), len(records)]
    slices = [records[a:b] for a, b in pairwise(edges)]
    for part in [*slices, *slices[:2]]:  # redelivered after a crash
        parts.write(made.process(part).block)
    for table in ("traces", "trace_texts", "scores", "dead_letters"):
        assert sorted(map(repr, parts.rows(table))) == sorted(map(repr, whole.rows(table)))
    assert {row[:5] for row in parts.rows("dirty_windows")} == {row[:5] for row in whole.rows("dirty_windows")}
