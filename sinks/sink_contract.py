"""The contract of sinks: run `check_sink` on your own, or each of `CHECKS` as a test."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta

from ragtide.evaluators.errors import Refused
from ragtide.sinks.bisect import write_or_reject
from ragtide.sinks.protocol import Sink
from ragtide.sinks.row_identity import Row, identity, rows_of
from ragtide.sinks.rows import Block, DirtyRow, EmbeddingRow, ProgressRow, ScoreRow, TextRow, TraceRow
from ragtide.sinks.sample import NOON, RUN, embedding, explanation, score, text, trace
from ragtide.sinks.sample import block as sample


@dataclass(frozen=True)
class SinkFixture:
    """An empty sink, and how to read one of its tables back: newest rows only, deleted ones left out."""

    sink: Sink
    rows: Callable[[str], Sequence[Row]]


def check_sink(open_sink: Callable[[], AbstractContextManager[SinkFixture]]) -> None:
    """Run every check, each on an empty sink; AssertionError names the violation."""
    for check in CHECKS:
        with open_sink() as fixture:
            check(fixture)


def same_block_twice(fixture: SinkFixture) -> None:
    """The same block twice leaves the same rows, and they read back as they were written."""
    block = sample()
    fixture.sink.write(block)
    once = {table: _read(fixture, table) for table in _expected(block)}
    fixture.sink.write(block)
    for table, rows in _expected(block).items():
        assert once[table] == rows, f"{table} reads back otherwise than it was written"
        assert _read(fixture, table) == rows, f"{table} holds other rows after the same block again"


def newer_version_wins(fixture: SinkFixture) -> None:
    """Of two rows with one identity the higher version stays, in any order of arrival."""
    for trace_id, order in (("up", (1, 2)), ("down", (2, 1))):
        for version in order:
            fixture.sink.write(
                Block(
                    traces=[trace(trace_id, version=version, model=f"m{version}")],
                    texts=[text(trace_id, version=version, answer=f"a{version}")],
                    scores=[score(trace_id, version=version, metrics={"precision": version / 4})],
                    embeddings=[embedding(trace_id, version=version, vector=[version / 4])],
                )
            )
    assert [row.model for row in _traces(fixture)] == ["m2", "m2"]
    assert [row.answer for row in _texts(fixture)] == ["a2", "a2"]
    assert [row.metrics["precision"] for row in _scores(fixture)] == [0.5, 0.5]
    assert [list(row.vector) for row in _embeddings(fixture)] == [[0.5], [0.5]]


def wide_versions(fixture: SinkFixture) -> None:
    """Versions are compared over all their 128 bits."""
    small, large = (1 << 64) - 1, 1 << 127
    fixture.sink.write(Block(traces=[trace("t", version=large, model="large")]))
    fixture.sink.write(Block(traces=[trace("t", version=small, model="small")]))
    assert [(row.model, row.version) for row in _traces(fixture)] == [("large", large)]


def identity_is_the_key(fixture: SinkFixture) -> None:
    """Another run, app, environment, evaluator, minute or trace id is another row; another second is not."""
    base = score("t")
    others = [
        base._replace(run_id="replay"),
        base._replace(app="other"),
        base._replace(environment="other"),
        base._replace(evaluator="other"),
        base._replace(time=base.time + timedelta(minutes=1)),
        base._replace(trace_id="other"),
    ]
    fixture.sink.write(Block(scores=[base, *others, base._replace(time=base.time + timedelta(seconds=5), version=2)]))
    assert len(_scores(fixture)) == 1 + len(others)


def tombstones(fixture: SinkFixture) -> None:
    """A newer row with is_deleted deletes the row, and an older version does not restore it."""
    alive = [Block([trace("t")], [text("t")], [score("t")], [explanation("t")], [embedding("t")])]
    gone = Block(
        traces=[trace("t", version=5, is_deleted=1)],
        texts=[text("t", version=5, is_deleted=1)],
        scores=[score("t", version=5, is_deleted=1)],
        explanations=[explanation("t", version=5, is_deleted=1)],
        embeddings=[embedding("t", version=5, vector=[], is_deleted=1)],
    )
    for block in (*alive, gone, *alive):
        fixture.sink.write(block)
    assert not [*_traces(fixture), *_texts(fixture), *_scores(fixture), *_embeddings(fixture)]
    assert not fixture.rows("explanations")
    fixture.sink.write(Block(traces=[trace("t", version=6)]))
    assert [row.version for row in _traces(fixture)] == [6]


def marks_are_taken_back(fixture: SinkFixture) -> None:
    """A done mark clears its own mark and no other; a late copy of the mark does not restore it."""
    marks = [DirtyRow(RUN, "app", "prod", "fast", NOON.replace(second=0, microsecond=0), name) for name in "ab"]
    fixture.sink.write(Block(dirty=marks))
    fixture.sink.write(Block(dirty=[marks[0]._replace(done=1)]))
    fixture.sink.write(Block(dirty=[marks[0]]))
    found = {row.mark_id: row.done for row in fixture.rows("dirty_windows") if isinstance(row, DirtyRow)}
    assert found == {"a": 1, "b": 0}


def latest_progress(fixture: SinkFixture) -> None:
    """The progress of a partition is the last row written, whoever wrote it and however far it is."""
    before = ProgressRow("fast", "rag.traces", 0, "w1", NOON, 10, 5)
    after = before._replace(worker="w2", offset=7, lag=8)
    for row in (before, after):
        fixture.sink.write(Block(progress=[row]))
    assert list(fixture.rows("progress")) == [after]


def odd_texts(fixture: SinkFixture) -> None:
    """NUL, quotes, line ends, tabs, backslashes, emoji and an empty text are read back unchanged."""
    odd = "NUL \0 'quote' \"double\" \\ back\\slash \\N \r\n\t {name:String} ; -- 😀 ünïcode \u2028 \x7f"
    fixture.sink.write(
        Block(
            traces=[trace(f"id {odd}", chunk_ids=[odd, ""], segments={odd: odd})],
            texts=[text("t", question=odd, answer="", chunks=[odd, ""], expected=[odd])],
            scores=[score("t", categories={"language": odd}, metrics={odd: 0.25})],
        )
    )
    [stored] = _traces(fixture)
    assert (stored.trace_id, list(stored.chunk_ids), dict(stored.segments)) == (f"id {odd}", [odd, ""], {odd: odd})
    [texts] = _texts(fixture)
    assert (texts.question, texts.answer, list(texts.chunks), list(texts.expected)) == (odd, "", [odd, ""], [odd])
    [scored] = _scores(fixture)
    assert (dict(scored.categories), dict(scored.metrics)) == ({"language": odd}, {odd: 0.25})


def missing_is_not_zero(fixture: SinkFixture) -> None:
    """A missing value is read back as None, and 0 as 0."""
    fixture.sink.write(Block(traces=[trace("t", latency_s=None, cost_usd=0.0, input_tokens=None, output_tokens=0)]))
    [row] = _traces(fixture)
    assert (row.latency_s, row.cost_usd, row.input_tokens, row.output_tokens) == (None, 0.0, None, 0)


def huge_text(fixture: SinkFixture) -> None:
    """A text of 5 MB is stored whole."""
    huge = "0123456789abcdef" * (5 * 65_536)
    fixture.sink.write(Block(texts=[text("t", answer=huge)]))
    [row] = _texts(fixture)
    assert row.answer == huge


def many_days(fixture: SinkFixture) -> None:
    """A block of 320 days is stored whole: more than a server takes in one insert."""
    days = [NOON - timedelta(days=day) for day in range(320)]
    fixture.sink.write(Block(scores=[score(f"t{day}", time=time) for day, time in enumerate(days)]))
    assert {row.time for row in _scores(fixture)} == set(days)


def refuses_what_is_no_number(fixture: SinkFixture) -> None:
    """NaN and infinity are refused, as metric, as part and in a vector: a mean over them is meaningless."""
    for number in (float("nan"), float("inf"), float("-inf")):
        for row in (score("t", metrics={"precision": number}), score("t", parts={"true": number})):
            _assert_refused(fixture, Block(scores=[row]))
        _assert_refused(fixture, Block(embeddings=[embedding("t", vector=[0.5, number])]))
    assert not [*_scores(fixture), *_embeddings(fixture)]


def whole_vectors(fixture: SinkFixture) -> None:
    """A vector comes back number for number and in its order, the smallest and the largest of Float32 among them."""
    largest = (2 - 2.0**-23) * 2.0**127
    vector = [2.0**-149, -largest, 0.0, largest, *map(float, range(4096))]
    fixture.sink.write(Block(embeddings=[embedding("t", vector=vector)]))
    [row] = _embeddings(fixture)
    assert list(row.vector) == vector


def refuses_lone_surrogates(fixture: SinkFixture) -> None:
    """A lone surrogate, which decoding replaces, is refused wherever it is; the message does not quote the text."""
    secret = "secret \ud800"
    for block in (
        Block(traces=[trace(secret)]),
        Block(texts=[text("t", answer=secret)]),
        Block(texts=[text("t", chunks=["fine", secret])]),
        Block(scores=[score("t", categories={"language": secret})]),
        Block(explanations=[explanation("t", explanation=secret)]),
        Block(embeddings=[embedding("t", model=secret)]),
    ):
        _assert_refused(fixture, block)


def refusal_finds_the_bad_rows(fixture: SinkFixture) -> None:
    """`write_or_reject` stores every row but the bad ones, and names exactly those."""
    block = sample()
    for number in range(40):
        block.scores.append(score(f"more{number}", time=NOON + timedelta(days=number % 3)))
    good = {row.trace_id for row in block.scores}
    bad = [score("nan", metrics={"precision": float("nan")}), score("surrogate", reason="\udfff")]
    block.scores[7:7] = bad[:1]
    block.scores.append(bad[1])
    aside = write_or_reject(fixture.sink, block)
    assert sorted(item.row.trace_id for item in aside if isinstance(item.row, ScoreRow)) == ["nan", "surrogate"]
    assert {item.table for item in aside} == {"scores"}
    assert {row.trace_id for row in _scores(fixture)} == good
    assert len(fixture.rows("dirty_windows")) == len(block.dirty), "the marks of what was stored are missing"
    assert not write_or_reject(fixture.sink, sample()), "nothing is set aside of a good block"


def empty_block(fixture: SinkFixture) -> None:
    """An empty block is stored at once and changes nothing."""
    fixture.sink.write(Block())
    assert not _traces(fixture)


def closed_sink(fixture: SinkFixture) -> None:
    """A closed sink says so; closing twice is fine."""
    assert fixture.sink.check()
    fixture.sink.close()
    fixture.sink.close()
    try:
        fixture.sink.write(sample())
    except RuntimeError:
        return
    raise AssertionError("a closed sink took a block")


def _expected(block: Block) -> dict[str, list[Row]]:
    return {table: sorted(rows, key=_order) for table, rows in rows_of(block).items()}


def _read(fixture: SinkFixture, table: str) -> list[Row]:
    return sorted(fixture.rows(table), key=_order)


def _order(row: Row) -> str:
    return str(identity(row))


def _traces(fixture: SinkFixture) -> list[TraceRow]:
    return [row for row in fixture.rows("traces") if isinstance(row, TraceRow)]


def _texts(fixture: SinkFixture) -> list[TextRow]:
    return [row for row in fixture.rows("trace_texts") if isinstance(row, TextRow)]


def _scores(fixture: SinkFixture) -> list[ScoreRow]:
    return [row for row in fixture.rows("scores") if isinstance(row, ScoreRow)]


def _embeddings(fixture: SinkFixture) -> list[EmbeddingRow]:
    return [row for row in fixture.rows("embeddings") if isinstance(row, EmbeddingRow)]


def _assert_refused(fixture: SinkFixture, block: Block) -> None:
    message = ""
    try:
        fixture.sink.write(block)
    except Refused as refused:
        message = str(refused)
    assert message, f"stored what it must refuse: {block}"
    assert "secret" not in message, "the refusal quotes what users wrote"


CHECKS: tuple[Callable[[SinkFixture], None], ...] = (
    same_block_twice,
    newer_version_wins,
    wide_versions,
    identity_is_the_key,
    tombstones,
    marks_are_taken_back,
    latest_progress,
    odd_texts,
    missing_is_not_zero,
    huge_text,
    many_days,
    refuses_what_is_no_number,
    whole_vectors,
    refuses_lone_surrogates,
    refusal_finds_the_bad_rows,
    empty_block,
    closed_sink,
)
