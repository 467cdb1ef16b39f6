"""Names that come with a trace: unless texts are stored in full, no table has personal data of one."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner

from ragtide.evaluators import registry
from ragtide.evaluators.plan import prepare
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.settings import EvaluatorSettings
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.sink import ClickHouseSink
from ragtide.sinks.rows import Block
from ragtide.stream.cli import main
from ragtide.stream.ingest.records import StoredRecord
from ragtide.stream.labels.decoding import decode
from ragtide.stream.labels.rows import LabelRows
from ragtide.stream.pipeline import Pipeline
from ragtide.stream.settings.loader import Settings
from tests.stream.pipe.records import record

CARD, MAIL = "4111 1111 1111 1111", "bob@example.com"
EVALUATORS = EvaluatorSettings(enabled=("inputs", "operations", "pii_leakage"))
HASHED = {"store_texts": "hashed", "hash_key": "k" * 20}
MODES: dict[str, dict[str, Any]] = {
    "masked": {"store_texts": "masked"},
    "hashed": HASHED,
    "off": {"store_texts": "off"},
}
# A trace with a value in one of its fields.
FIELDS: dict[str, Callable[[str], dict[str, Any]]] = {
    "session_id": lambda value: {"session_id": f"of {value}"},
    "user_id": lambda value: {"user_id": value},
    "error.type": lambda value: {"error": {"type": f"NotFound {value}"}},
    "error.message": lambda value: {"error": {"type": "NotFound", "message": value}},
    "chunk id": lambda value: {"contexts": [{"id": f"file of {value}", "text": "A text."}]},
    "chunk text": lambda value: {"contexts": [{"id": "c", "text": value}]},
    "chunk source": lambda value: {"contexts": [{"id": "c", "text": "A", "source": value, "metadata": {value: value}}]},
    "categories": lambda value: {"categories": [f"asked by {value}"]},
    "segment": lambda value: {"segments": {"customer": value}},
    "name of a segment": lambda value: {"segments": {f"by {value}": "yes"}},
    "relationship": lambda value: {
        "relationships": [
            {"type": value, "test_case": value, "techniques": [{"technique": value, "intensity": f"as {value}"}]}
        ]
    },
    "test case": lambda value: {"test_case": {"suite": value, "test": value, "key": value}},
    "question": lambda value: {"question": f"I am {value}"},
    "answer": lambda value: {"answer": f"You are {value}"},
    "expected": lambda value: {"expected": [f"You are {value}"]},
    "attribute": lambda value: {"attributes": {"x": {"y": [value]}, f"of {value}": 1}},
    "unknown field": lambda value: {"zz": {"y": value}},
    "condition": lambda value: {"condition": f'contains "{value}"', "constraints": [value]},
    "artifact": lambda value: {"artifacts": [{"name": value, "text": value}]},
    "model host": lambda value: {"model": {"served": "m", "host": value, "collection": value}},
}


def pipeline(privacy: dict[str, Any], evaluators: EvaluatorSettings = EVALUATORS) -> Pipeline:
    settings = Settings.model_validate({"privacy": privacy, "evaluators": evaluators.model_dump()})
    return Pipeline(prepare(registry.load(), evaluators, "fast", None).prepared, Resources(), settings, lane="fast")


def block_of(privacy: dict[str, Any], *traces: dict[str, Any]) -> Block:
    now = int(time.time())  # tables keep nothing that is older than their retention
    found = [{"trace_id": f"t{n}", "time": now * 1000, **one} for n, one in enumerate(traces)]
    done = pipeline(privacy).process([record(timestamp=now * 1000, **one) for one in found])
    assert not done.dead
    return done.block


def everything_in(block: Block) -> str:
    return repr((block.traces, block.texts, block.scores, block.embeddings, block.dirty))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("field", FIELDS)
def test_no_row_has_personal_data_of_any_field(field: str, mode: str) -> None:
    for value in (CARD, MAIL):
        rows = everything_in(block_of(MODES[mode], FIELDS[field](value)))
        assert value not in rows
        assert value in everything_in(block_of({"store_texts": "full"}, FIELDS[field](value)))


@pytest.mark.clickhouse
@pytest.mark.parametrize("mode", MODES)
def test_no_table_has_personal_data_of_any_field(mode: str, database: Database) -> None:
    ClickHouseSink(database).write(
        block_of(MODES[mode], *(make(value) for make in FIELDS.values() for value in (CARD, MAIL)))
    )
    tables = [row["name"] for row in database.rows("SELECT name FROM system.tables WHERE database = currentDatabase()")]
    for table in tables:
        rows = repr(database.rows(f"SELECT * FROM {table}"))
        assert MAIL not in rows, table
        assert CARD not in rows, table
    assert database.rows("SELECT count() AS n FROM traces FINAL") == [{"n": 2 * len(FIELDS)}]


def test_masked_names_group_by_kind_and_hashed_ones_by_value() -> None:
    asked = [{"segments": {"customer": mail}} for mail in (MAIL, "eve@example.com", MAIL)]
    masked = block_of(MODES["masked"], *asked)
    assert [row.segments for row in masked.traces] == [{"customer": "[email]"}] * 3
    assert {str(row.segments) for row in masked.scores} == {"{'customer': '[email]'}"}
    first, second, third = (row.segments["customer"] for row in block_of(HASHED, *asked).traces)
    assert first == third != second
    assert first.startswith("[email ")


def test_names_without_personal_data_stay_as_they_are() -> None:
    fields = {
        "session_id": "0b8f4d1c-9a34-4a50-8f4e-3e1f2f9f7d11",
        "segments": {"tenant": "gold", "language": "de"},
        "categories": ["billing"],
        "contexts": [{"id": "c-1", "text": "A"}, {"id": "c-2"}],
        "relationships": [{"type": "perturbation", "trace_id": "t-0"}],
        "test_case": {"suite": "s", "key": "k"},
        "error": {"type": "Timeout"},
        "user_id": "u-7",
    }
    full, masked = block_of({"store_texts": "full"}, fields), block_of(MODES["masked"], fields)
    (trace,) = masked.traces
    assert trace == full.traces[0]._replace(question_hash="")  # a text's hash is stored where texts are
    assert full.scores == masked.scores


def test_names_of_the_deployment_are_stored_as_sent() -> None:
    """Rules, rows and series are found by them; `ragtide config` and the settings' page say so."""
    sent = {"app": "bot 10.0.0.1", "environment": MAIL, "model": {"served": "m 1.2.3.4", "prompt_version": "1.2.3.4"}}
    (row,) = block_of(MODES["masked"], sent).traces
    assert (row.app, row.environment, row.model, row.prompt_version) == ("bot 10.0.0.1", MAIL, "m 1.2.3.4", "1.2.3.4")


def test_a_hashed_user_is_the_same_whether_texts_are_masked() -> None:
    users = {"hash_users": True, "hash_key": "k" * 20}
    (full,) = block_of(users, {"user_id": MAIL}).traces
    (masked,) = block_of({**users, "store_texts": "masked"}, {"user_id": MAIL}).traces
    assert full.user_id == masked.user_id
    assert MAIL not in full.user_id


def test_evidence_points_at_the_chunk_under_the_id_that_is_stored() -> None:
    contexts = [{"id": f"mail of {name}@example.com", "text": f"Nothing but {name}."} for name in ("bob", "eve")]
    contexts.append({"id": "mail of eve@example.com", "text": f"Card {CARD}"})
    contexts[2]["id"] = "mail of ann@example.com"
    block = block_of(MODES["masked"], {"contexts": contexts})
    ids = list(block.texts[0].chunk_ids)
    assert ids == list(block.traces[0].chunk_ids) == ["mail of [email]", "mail of [email] 2", "mail of [email] 3"]
    (row,) = [row for row in block.scores if row.evaluator == "pii_leakage"]
    assert {one["chunk_id"] for one in json.loads(row.evidence)} == {ids[2]}


@pytest.mark.parametrize("mode", MODES)
def test_who_wrote_a_label_is_masked(mode: str) -> None:
    settings = Settings.model_validate({"privacy": MODES[mode]})
    value = {"trace_id": "t", "author": MAIL, "verdict": {"comment": f"ask {MAIL}"}, "expected": [MAIL]}
    found = StoredRecord("labels", 0, 0, 1, None, json.dumps(value).encode())
    (row,) = LabelRows(settings).rows_of([decode(found, 1 << 20)], [found])
    assert MAIL not in repr(row)


@pytest.mark.parametrize("mode", [*MODES, "full"])
def test_the_settings_say_what_is_masked_and_what_not(mode: str) -> None:
    variables = {"RAGTIDE_CONFIG": None, "RAGTIDE_PRIVACY__STORE_TEXTS": mode, "RAGTIDE_PRIVACY__HASH_KEY": "k" * 20}
    shown = CliRunner().invoke(main, ["config"], env=variables).output
    _, section, rest = shown.partition("[privacy]\n")
    said = [line for line in rest.partition("\n[")[0].splitlines() if line.startswith("# ")]
    assert section
    texts, names, sent, letters = said[:4]
    assert texts.startswith(
        f"# texts are {'stored as sent' if mode == 'full' else 'not stored' if mode == 'off' else mode}"
    )
    assert names.startswith(f"# names are {({'full': 'stored as sent', 'off': 'masked'}).get(mode, mode)}")
    assert "session_id" in names
    assert "trace_id, app" in sent
    assert "dead-letter" in letters
