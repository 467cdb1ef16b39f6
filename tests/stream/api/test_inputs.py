"""Records of every form become the same messages, and what is none is rejected with its number and field."""

import gzip
import json
import math
import os
from collections import UserDict
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from threading import Thread
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from ragtide.evaluators.errors import BadRecord, ConfigError
from ragtide.evaluators.trace import Chunk, Trace, chunk_id
from ragtide.stream.api.inputs import RefusedItem, encode, open_source
from ragtide.stream.ingest.records import StoredRecord
from tests.stream.pipe.records import AT, fields

LIMIT = 1 << 20


def values(records: object, limit: int = LIMIT) -> list[Any]:
    """The fields of each record."""
    found = [item.record for item in open_source(records, limit).items]
    return [json.loads(one.value or b"") for one in found if isinstance(one, StoredRecord)]


def test_a_file_has_the_numbers_of_its_lines(tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    file.write_bytes(b'{"a": 1}\n\n  \n{"a": 2}\r\n' + b"x" * 40 + b"\n{}")
    source = open_source(file, 16)
    items = list(source.items)
    records = [item.record for item in items if isinstance(item.record, StoredRecord)]
    assert [(one.offset, one.value) for one in records] == [
        (1, b'{"a": 1}'),
        (4, b'{"a": 2}'),
        (5, b"x" * 17),
        (6, b"{}"),
    ]
    assert {one.topic for one in records} == {"file:traces.jsonl"}
    assert (source.name, source.total, items[-1].done) == ("traces.jsonl", file.stat().st_size, file.stat().st_size)
    assert [item.record for item in open_source(str(file), 16).items] == records


def test_gzip_is_read_as_the_file_in_it_and_reported_by_its_own_size(tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl.gz"
    file.write_bytes(gzip.compress(b'{"a": 1}\n\n{"a": 2}\n'))
    source = open_source(file, LIMIT)
    items = list(source.items)
    assert [one.record.offset for one in items if isinstance(one.record, StoredRecord)] == [1, 3]
    assert source.total == items[-1].done == file.stat().st_size


def test_a_pipe_is_read_once_and_its_size_is_unknown(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = Thread(target=pipe.write_bytes, args=(b'{"a": 1}\n\n{"a": 2}\n',))
    writer.start()
    source = open_source(pipe, LIMIT)
    items = list(source.items)
    writer.join()
    assert source.total is None
    assert [(one.record.offset, one.done) for one in items if isinstance(one.record, StoredRecord)] == [(1, 1), (3, 2)]


def test_dicts_traces_and_texts_are_numbered_from_one() -> None:
    trace = Trace(
        trace_id="t",
        time=datetime(2026, 3, 1, 12, tzinfo=UTC),
        app="a",
        question="q",
        contexts=(Chunk(chunk_id("text"), "text"),),
    )
    source = open_source([{"a": 1}, UserDict({"a": 2}), trace, '{"a": 3}', b'{"a": 4}'], LIMIT)
    assert source.total == 5
    items = list(source.items)
    assert [item.done for item in items] == [1, 2, 3, 4, 5]
    found = [json.loads(one.record.value or b"") for one in items if isinstance(one.record, StoredRecord)]
    assert [found[at]["a"] for at in (0, 1, 3, 4)] == [1, 2, 3, 4]
    chunk = {"id": chunk_id("text"), "text": "text"}
    assert found[2] == {"trace_id": "t", "time": AT, "app": "a", "question": "q", "contexts": [chunk]}


def test_a_generator_is_read_once_and_its_length_is_unknown() -> None:
    read: list[int] = []

    def records() -> Any:
        for n in range(3):
            read.append(n)
            yield {"n": n}

    source = open_source(records(), LIMIT)
    assert (source.total, read) == (None, [])
    assert next(source.items).done == 1
    assert read == [0]


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (datetime(2026, 3, 1, 12, tzinfo=UTC), "2026-03-01T12:00:00+00:00"),
        (np.float32(0.5), 0.5),
        (np.int64(7), 7),
        (np.bool_(True), True),
        (np.array([1, 2]), [1, 2]),
        (np.array([{"id": "c"}], object), [{"id": "c"}]),
        (np.datetime64("2026-03-01T12:00:00", "ns"), "2026-03-01T12:00:00"),
        (Decimal("0.25"), 0.25),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Chunk("c", "text"), {"id": "c", "text": "text"}),
        (UserDict({"x": 1}), {"x": 1}),
        (("a", "b"), ["a", "b"]),
        ("\ud800", "\ud800"),
    ],
)
def test_values_of_python_libraries_are_written_as_json(value: object, written: object) -> None:
    assert json.loads(encode({"field": value})) == {"field": written}


def test_nan_is_written_as_it_is_so_that_decoding_refuses_it_as_in_a_file() -> None:
    assert encode({"cost_usd": math.nan}) == b'{"cost_usd":NaN}'


@pytest.mark.parametrize(
    ("record", "reason", "key", "words"),
    [
        ({"trace_id": {1}}, "not_json", "trace_id", "trace_id: found a value of type set; JSON has no such value"),
        ({"a": 1, "b": {(1, 2): 3}}, "not_json", "b", "b: found a reference to itself, or a key that is no text"),
        (7, "not_an_object", "", "found a value of type int; a record is a dict, a Trace or a JSON text"),
        (None, "not_an_object", "", "found a value of type NoneType"),
    ],
)
def test_what_json_cannot_hold_is_refused_with_its_field(record: object, reason: str, key: str, words: str) -> None:
    with pytest.raises(BadRecord) as refused:
        encode(record)
    assert (refused.value.reason, refused.value.key) == (reason, key)
    assert words in refused.value.detail
    (item,) = open_source([record], LIMIT).items
    assert isinstance(item.record, RefusedItem)
    assert item.record.number == 1


def test_one_nested_without_end_is_refused() -> None:
    endless: dict[str, Any] = {}
    endless["a"] = [endless]
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(BadRecord, match="a reference to itself"):
        encode(endless)
    with pytest.raises(BadRecord, match="too_deep"):
        encode({"attributes": deep})


@pytest.mark.parametrize(
    ("records", "words"),
    [
        ("no such file", "no such file: cannot be read: No such file or directory; give the path of a JSON lines file"),
        ("a\0b", "cannot be read: ValueError"),
        ('{"trace_id": "t", "question": "secret"}', "records: one text is a path; give JSON texts in a list"),
        ({"trace_id": "t"}, "found a single dict; put it into a list"),
        (b"{}", "found a single bytes"),
        (7, "found a value of type int; give dicts, Trace objects"),
    ],
)
def test_other_forms_are_an_error_that_says_what_to_give(records: object, words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        open_source(records, LIMIT)
    assert words in str(refused.value)
    assert "secret" not in str(refused.value)


def test_a_frame_leaves_out_missing_values_and_keeps_types() -> None:
    pandas = pytest.importorskip("pandas")
    rows = [fields(trace_id=f"t-{n}", cost_usd=None if n == 1 else 0.5) for n in range(3)]
    frame = pandas.DataFrame(rows)
    frame["time"] = pandas.to_datetime(frame["time"])
    frame["answer"] = ["yes", float("nan"), None]
    found = values(frame)
    assert open_source(frame, LIMIT).total == 3
    assert [sorted({"cost_usd", "answer"} & row.keys()) for row in found] == [["answer", "cost_usd"], [], ["cost_usd"]]
    assert found[0] == {**rows[0], "time": "2026-03-01T12:00:00+00:00", "answer": "yes"}
    with pytest.raises(ConfigError, match="two columns of the frame have one name"):
        values(pandas.DataFrame([[1, 2]], columns=["a", "a"]))


def test_arrow_tables_batches_and_readers_are_the_same_rows() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    ids = [f"t-{n}" for n in range(2_500)]
    rows = [{"trace_id": id, "segments": [("tenant", "acme")], "cost_usd": None} for id in ids]
    kinds = [("trace_id", pyarrow.string()), ("cost_usd", pyarrow.float64())]
    schema = pyarrow.schema([*kinds, ("segments", pyarrow.map_(pyarrow.string(), pyarrow.string()))])
    table = pyarrow.Table.from_pylist(rows, schema)
    wanted = [{"trace_id": id, "segments": {"tenant": "acme"}} for id in ids]
    batches = table.to_batches(max_chunksize=700)
    assert values(table) == wanted
    assert values(pyarrow.RecordBatchReader.from_batches(schema, batches)) == wanted
    assert values(batches[0]) == wanted[:700]
    assert values(pytest.importorskip("pyarrow.dataset").dataset(table)) == wanted
    assert [open_source(one, LIMIT).total for one in (table, batches[0])] == [2_500, 700]
