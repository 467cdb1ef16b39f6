"""Names have limits at the door: what says whose a trace is is refused beyond them, every other name is cut."""

import json
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, get_args, get_type_hints

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtide.evaluators.outcome import MOST_EVIDENCE
from ragtide.evaluators.trace import LONGEST_ID, LONGEST_NAME, MOST_NAMES, Trace
from ragtide.sinks.row_identity import rows_of
from ragtide.sinks.rows import DeadLetterRow
from ragtide.sinks.settings import RetentionSettings
from ragtide.stream.assembly import assemble
from ragtide.stream.ingest.adjustments import Adjustments
from ragtide.stream.ingest.decoding import Limits, decode_trace
from ragtide.stream.ingest.names import cut_name
from ragtide.stream.ingest.records import StoredRecord
from ragtide.stream.labels.decoding import decode
from ragtide.stream.labels.rows import LabelRows
from ragtide.stream.settings.loader import Settings
from ragtide.stream.settings.sections import IngestSettings
from tests.stream.pipe.records import AT_MS, clock, fields, record
from tests.stream.pipe.test_pipeline import pipeline, process

REPLAY = Limits.of(IngestSettings(), RetentionSettings(), timely=False)
LONG = "n" * 60_000
CUT = "n" * 239 + "~" + sha256(LONG.encode()).hexdigest()[:16]
KIB = 1024


@pytest.mark.parametrize(
    ("changes", "reason", "named"),
    [
        ({"app": "a" * 129}, "name_too_long", "app: 129 characters; ingest.max_name_characters is 128"),
        ({"app": LONG}, "name_too_long", "app: 60,000 characters"),
        ({"environment": "e" * 300_000}, "name_too_long", "environment: 300,000 characters"),
        ({"task": LONG}, "name_too_long", "task"),
        ({"app": "shop\x1b[2J"}, "control_characters", "app"),
        ({"app": "shop\nshop"}, "control_characters", "app"),
        ({"environment": "nul\x00"}, "control_characters", "environment"),
        ({"environment": "\u202egnigats"}, "control_characters", "environment"),
        ({"task": "\x9b1m"}, "control_characters", "task"),
        ({"segments": {f"s{n}": "v" for n in range(65)}}, "too_many_segments", "segments: more than 64"),
        ({"categories": [f"c{n}" for n in range(65)]}, "too_many_categories", "categories: more than 64"),
        ({"relationships": [{"type": "t"}] * 65}, "too_many_relationships", "relationships: more than 64"),
        (
            {"relationships": [{"type": "t", "techniques": [{"technique": "typo"}] * 65}]},
            "too_many_techniques",
            "relationships[...].techniques",
        ),
        ({"relationships": [{"type": "t", "trace_id": "t" * 1_025}]}, "wrong_value", "relationships"),
        ({"schema_version": int("9" * 4_300)}, "newer_schema", "schema_version"),
    ],
)
def test_a_record_beyond_a_limit_is_a_dead_letter_that_quotes_nothing(
    changes: dict[str, Any], reason: str, named: str
) -> None:
    done = pipeline().process([record(**changes), record(trace_id="good", offset=1)])
    [letter] = done.dead
    assert letter.reason == reason
    assert named.replace("[...]", "[0]") in letter.detail
    assert len(letter.detail) <= 500
    assert not any(part in letter.detail for part in ("nnn", "shop", "gnigats", "c64"))
    assert [row.trace_id for row in done.block.traces] == ["good"]
    assert [(row.app, row.environment) for row in done.block.dirty] == [("docs", "prod")]


@pytest.mark.parametrize("app", ["a" * 128, "shop nord", "店", "nbsp\xa0", "\U0001f600\u200d\U0001f525"])
def test_an_app_within_the_limit_is_stored_as_it_is(app: str) -> None:
    [row] = process(record(app=app)).traces
    assert row.app == app


def test_the_limit_of_apps_environments_and_tasks_is_a_setting() -> None:
    settings = Settings.model_validate({"ingest": {"max_name_characters": 16}})
    assert process(record(app="a" * 17), settings=settings).traces == []
    assert len(process(record(app="a" * 16), settings=settings).traces) == 1


def test_every_other_name_is_cut_and_counted_by_field() -> None:
    names: dict[str, Any] = {
        "session_id": LONG,
        "user_id": LONG,
        "probe": LONG,
        "model": dict.fromkeys(("requested", "served", "provider", "host", "prompt_version", "collection"), LONG),
        "segments": {LONG: LONG, "tenant": "acme"},
        "categories": [LONG, "short"],
        "error": {"type": LONG, "message": LONG},
        "relationships": [{"type": LONG, "test_case": LONG, "techniques": [{"technique": LONG, "intensity": LONG}]}],
        "test_case": {"suite": LONG, "test": LONG, "key": LONG},
        "contexts": [{"id": LONG, "text": LONG}, {"id": "c-1", "text": "x"}],
        "relevance": {LONG: 1.0, "c-1": 0.5},
    }
    cut: Counter[str] = Counter()
    trace = decode_trace(record(**names), REPLAY, adjustments=Adjustments(cut=cut)).trace
    whole = {**fields(**names), **json.loads(msgspec.json.encode(trace))}
    assert whole["contexts"] == [{"id": CUT, "text": LONG}, {"id": "c-1", "text": "x"}]
    assert whole["relevance"] == {CUT: 1.0, "c-1": 0.5}
    assert whole["segments"] == {CUT: CUT, "tenant": "acme"}
    assert whole["categories"] == [CUT, "short"]
    assert whole["error"] == {"type": CUT, "message": LONG}
    assert whole["relationships"] == [
        {"type": CUT, "test_case": CUT, "techniques": [{"technique": CUT, "intensity": CUT}]}
    ]
    assert (whole["session_id"], whole["user_id"], whole["probe"]) == (CUT, CUT, CUT)
    assert set(whole["model"].values()) == set(whole["test_case"].values()) == {CUT}
    assert cut == {
        **dict.fromkeys(("session_id", "user_id", "probe", "categories", "error.type", "relevance", "contexts.id"), 1),
        "segments": 2,
        **{f"model.{name}": 1 for name in names["model"]},
        **{f"test_case.{name}": 1 for name in names["test_case"]},
        "relationships.type": 1,
        "relationships.test_case": 1,
        "relationships.techniques.technique": 1,
        "relationships.techniques.intensity": 1,
    }


def test_a_cut_name_is_cut_alike_wherever_it_is_read_again() -> None:
    [row] = process(record(model={"served": LONG})).traces
    [again] = process(record(model={"served": row.model})).traces  # as an enriched trace brings it
    assert row.model == again.model == CUT
    assert pipeline().process([record(model={"served": LONG})]).adjustments.cut == {"model.served": 1}
    assert pipeline().process([record(model={"served": CUT})]).adjustments.cut == {}


TEXT = st.text(max_size=8)
NAMES = st.builds(lambda text, times: text * times, TEXT, st.sampled_from([1, 1, 31, 64, 300]))


@given(st.lists(NAMES, min_size=2, max_size=6, unique=True))
def test_equal_names_stay_equal_and_different_ones_different(names: list[str]) -> None:
    sent = {name.encode("utf-8", "replace").decode() for name in names}
    cut = [cut_name(name) for name in sent]
    assert all(len(name) <= LONGEST_NAME for name in cut)
    assert len(set(cut)) == len(sent)
    assert [cut_name(name) for name in cut] == cut
    assert [cut_name(name) for name in sent] == cut


def strings(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every text of a row's column, with the column."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield path, key
            yield from strings(item, path)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from strings(item, path)


OF_USERS = {"question", "answer", "chunks", "expected", "error_message", "attributes", "rest"}  # of trace_texts
JSON = {"evidence", "relationships", "test_case"}
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "trace_id": NAMES,
        "app": NAMES,
        "environment": NAMES,
        "task": NAMES,
        "session_id": NAMES,
        "user_id": NAMES,
        "probe": NAMES,
        "model": st.dictionaries(st.sampled_from(["requested", "served", "provider", "prompt_version"]), NAMES),
        "segments": st.dictionaries(NAMES, NAMES, max_size=4),
        "categories": st.lists(NAMES, max_size=4),
        "error": st.fixed_dictionaries({"type": NAMES}),
        "contexts": st.lists(st.fixed_dictionaries({"id": NAMES, "text": TEXT}), max_size=3),
        "relationships": st.lists(st.fixed_dictionaries({"type": NAMES, "test_case": NAMES}), max_size=3),
        "test_case": st.fixed_dictionaries({"suite": NAMES}),
        "labels": st.fixed_dictionaries({"expected": NAMES, "predicted": NAMES}),
        "unknown": NAMES,
    },
)
FAST = assemble(Settings(), "fast", clock=clock).pipeline


@given(st.lists(CHANGES, min_size=1, max_size=4))
def test_no_row_holds_a_name_beyond_its_limit_however_slices_are_cut(
    changes: list[dict[str, Any]],
) -> None:
    records = [record(**{"trace_id": f"t-{offset}", **change}, offset=offset) for offset, change in enumerate(changes)]
    whole, single = FAST.process(records), [FAST.process([one]) for one in records]
    for row in (row for rows in rows_of(whole.block).values() for row in rows if not isinstance(row, DeadLetterRow)):
        for column, value in row._asdict().items():
            if column in OF_USERS:
                continue
            most = {"trace_id": LONGEST_ID, "app": 128, "environment": 128, "task": 128}.get(column, LONGEST_NAME)
            for _, name in strings(json.loads(value) if column in JSON else value, column):
                assert len(name) <= most, column
    assert whole.adjustments.cut == sum((one.adjustments.cut for one in single), Counter())
    assert [letter.reason for letter in whole.dead] == [letter.reason for one in single for letter in one.dead]
    singly = {(row.trace_id, row.version): row for one in single for row in one.block.traces}
    assert all(singly[row.trace_id, row.version] == row for row in whole.block.traces)


def _bytes_of(rows: Any) -> int:
    return sum(len(text.encode()) for row in rows for value in row for _, text in strings(_plain(value)))


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, dict) else list(value) if isinstance(value, (list, tuple)) else value


@pytest.mark.parametrize(
    "changes",
    [
        {"segments": {f"s{n}": "v" * 100_000 for n in range(64)}},
        {"segments": {f"{n}" * 25_000: f"{n}" * 25_000 for n in range(10, 74)}},
        {"contexts": [{"id": "c" * 1_000_000, "text": "ada@example.com " * 50}] * 5},
        {"contexts": [{"id": f"{n:0256}", "text": "ada@example.com"} for n in range(5_000)]},
        {"model": {"served": "m" * 5_000_000, "prompt_version": "p" * 1_000_000}},
        {"labels": {"expected": [f"{n}" * 300 for n in range(500)], "predicted": [f"{n}" * 300 for n in range(500)]}},
        {"user_id": "u" * 5_000_000, "session_id": "s" * 1_000_000, "error": {"type": "e" * 1_000_000}},
    ],
    ids=["values", "names of segments", "chunk ids", "evidence", "model", "labels", "ids"],
)
def test_the_rows_of_a_record_hold_a_few_times_its_bytes(changes: dict[str, Any]) -> None:
    """Texts once, everything else within a limit of its own for each row, however large the record is."""
    sent = record(**changes)
    done = FAST.process([sent])
    assert not done.dead
    assert sent.value is not None
    tables = rows_of(done.block)
    texts = _bytes_of(tables["trace_texts"])
    assert texts <= 2 * len(sent.value)  # the columns, and `rest` has names and ids once more
    of_evaluators = _bytes_of(tables["scores"])
    segments = 2 * MOST_NAMES * LONGEST_NAME
    evidence = 4 * MOST_EVIDENCE * (LONGEST_NAME + 200)  # the evaluators that point into chunks
    parts = 64 * KIB * 10
    assert of_evaluators <= len(tables["scores"]) * (segments + 4 * KIB) + evidence + parts
    assert _bytes_of(tables["traces"]) <= len(sent.value) + 64 * KIB


def test_more_evidence_than_is_stored_is_counted() -> None:
    chunks = [{"id": f"c-{n}", "text": "write to ada@example.com"} for n in range(MOST_EVIDENCE + 1)]
    done = FAST.process([record(contexts=chunks)])
    kept = {row.evaluator: len(json.loads(row.evidence)) for row in done.block.scores}
    assert kept["pii_leakage"] == MOST_EVIDENCE
    assert done.evidence_cut["pii_leakage"] == 1
    assert +done.evidence_cut == {name: 1 for name, count in kept.items() if count == MOST_EVIDENCE}


def test_an_author_of_a_label_is_cut_before_it_is_hashed() -> None:
    sent = {"trace_id": "t", "author": LONG, "verdict": {"thumbs": "up"}}
    at = StoredRecord("rag.labels", 0, 3, AT_MS, None, json.dumps(sent).encode())
    [row] = LabelRows(Settings()).rows_of([decode(at, 1 << 20)], [at])
    assert row.author == CUT


def test_every_field_of_a_trace_that_becomes_a_column_has_a_limit() -> None:
    """A new field of type str is one of texts, or gets a limit: see docs/kafka.md."""
    texts = {"question", "answer", "condition"}
    of_setting = {"app", "environment", "task"}
    plain = {
        name
        for name, hint in get_type_hints(Trace, include_extras=True).items()
        if get_args(hint)[0] in (str, str | None) and not any(meta.max_length for meta in hint.__metadata__)
    }
    assert plain == texts | of_setting
