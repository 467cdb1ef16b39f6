"""`ragtide validate` names line, field and what to write; the JSON Schema accepts what the decoder takes as it is."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from ragtide.evaluators.errors import BadRecord
from ragtide.sinks.settings import RetentionSettings
from ragtide.stream.cli import main
from ragtide.stream.ingest.adjustments import Adjustments
from ragtide.stream.ingest.decoding import Limits, decode_trace
from ragtide.stream.ingest.normalisations import RULES
from ragtide.stream.ingest.trace_schema import trace_schema
from ragtide.stream.ingest.validation import validate
from ragtide.stream.settings.sections import IngestSettings
from tests.stream.pipe.records import AT_MS, fields, record

LIMITS = Limits.of(IngestSettings(), RetentionSettings(), timely=False)
SECRET = "kept-from-every-message"
SCHEMA = Draft202012Validator(trace_schema())


def run(*args: str, input: bytes = b"", **variables: str) -> Result:
    return CliRunner().invoke(main, args, input=input, env={"RAGTIDE_CONFIG": None, "COLUMNS": "200", **variables})


def lines(*traces: dict[str, Any] | bytes) -> bytes:
    return b"\n".join(one if isinstance(one, bytes) else json.dumps(one).encode() for one in traces)


def test_each_refused_line_has_its_fields_and_what_to_write(tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    wrong = fields(trace_id=[SECRET], time="2026-03-01T12:00:00", tokens=5, app=...)
    file.write_bytes(lines(fields(), b"", wrong, fields(user_id=7, latency={"total_ms": 9}), b"oops"))
    done = run("validate", str(file))
    assert done.exit_code == 1
    assert done.output.splitlines() == [
        "refused  line 3: trace_id: found a list; a text wanted",
        "refused  line 3: tokens: found a number; an object of input, output, cached wanted",
        "refused  line 3: app is required",
        "refused  line 3: time: RFC 3339 demands an offset, e.g. 2026-03-01T12:00:00Z",
        "refused  line 5: malformed (byte 0)",
        f"read     number_as_text at user_id in 1 line: {RULES['number_as_text']}",
        "unknown  in 1 line: app docs: no trace has a field latency.total_ms. It is stored and not measured; "
        "did you mean latency.total_s, in seconds?",
        "4 lines: 2 accepted, 2 refused",
    ]


def test_as_json_from_standard_input() -> None:
    done = run("validate", "-", "--json", input=lines(fields(time=AT_MS // 1000), fields(cost_usd=SECRET)))
    assert done.exit_code == 1
    assert json.loads(done.output) == {
        "lines": 2,
        "refused": 1,
        "faults": [
            {"line": 2, "key": "cost_usd", "reason": "wrong_type", "detail": "cost_usd: found a text; a number wanted"}
        ],
        "normalised": [{"rule": "time_in_seconds", "field": "time", "lines": 1}],
        "unknown": [],
    }


def test_good_lines_end_with_status_0_however_old_they_are() -> None:
    done = run("validate", "-", input=lines(fields(time="1999-01-01T00:00:00Z"), fields()) + b"\n\n")
    assert (done.exit_code, done.output) == (0, "2 lines: 2 accepted, 0 refused\n")


def test_a_file_that_is_not_of_lines_is_explained() -> None:
    whole = json.dumps(fields(), indent=2)
    done = run("validate", "-", input=whole.encode())
    assert done.exit_code == 2
    assert done.output == (
        "ragtide: <stdin>: its first JSON object stands on several lines; write one object per line: "
        "jq -c . FILE > traces.jsonl\n"
    )
    done = run("validate", "-", input=whole.replace("{\n", "{ ", 1).encode())
    assert done.exit_code == 1
    assert "Each line must be one trace; `jq -c . FILE` writes each JSON object on one line." in done.output


def test_limits_are_those_of_the_settings_and_the_rest_of_a_long_line_is_skipped() -> None:
    done = run("validate", "-", input=lines(fields(answer="x" * 5000), fields()), RAGTIDE_INGEST__MAX_BYTES="2000")
    assert done.output == "refused  line 1: 2001 bytes; ingest.max_bytes is 2000\n2 lines: 1 accepted, 1 refused\n"


def test_without_a_file_it_says_what_to_name() -> None:
    done = run("validate")
    assert done.exit_code == 2
    assert "name a file of traces" in done.output


def test_the_schema_is_printed() -> None:
    assert json.loads(run("validate", "--schema").output) == trace_schema()


def test_the_schema_accepts_canonical_traces_and_refuses_what_is_a_dead_letter() -> None:
    Draft202012Validator.check_schema(trace_schema())
    good: list[dict[str, Any]] = [
        {},
        {"time": AT_MS},
        {"session_id": None, "probe": None},
        {"contexts": [{"text": "x"}]},
    ]
    for changes in good:
        assert list(SCHEMA.iter_errors(fields(**changes))) == []
    bad: list[dict[str, Any]] = [{"trace_id": ...}, {"question": ..., "answer": None}, {"contexts": [{"score": 1}]}]
    for changes in [*bad, {"tokens": 5}]:
        assert list(SCHEMA.iter_errors(fields(**changes))), changes


VALUES: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers(-2, 5) | st.text(max_size=3) | st.just([]) | st.just({})
)


@given(st.dictionaries(st.sampled_from([name for name in trace_schema()["properties"] if name != "time"]), VALUES))
def test_what_the_schema_accepts_is_read_as_it_is(changes: dict[str, Any]) -> None:
    sent = {**fields(), **changes}
    if list(SCHEMA.iter_errors(sent)):
        return
    adjustments = Adjustments()
    with contextlib.suppress(BadRecord):  # for what a schema does not say: control characters, another version
        decode_trace(record(sent), LIMITS, adjustments=adjustments)
    assert adjustments == Adjustments()


def test_every_fault_of_a_record_is_found_and_the_number_is_bounded() -> None:
    wrong = fields(answer=[1], latency=3, tokens=4, model=[], cost_usd={})
    faults = validate(json.dumps(wrong).encode(), LIMITS).faults
    assert [fault.key for fault in faults] == ["answer", "model", "latency", "tokens", "cost_usd"]
    assert [fault.key for fault in validate(b"{}", LIMITS).faults] == ["trace_id", "time", "app", "question"]
    for hostile in (b"", b"[" * 100_000, b"\xff", b"null", b'{"a":' * 5000):
        assert len(validate(hostile, LIMITS).faults) == 1


@pytest.mark.parametrize("value", [{"timestamp": [1]}, {"time": None, "timestamp": "yesterday"}])
def test_a_refused_field_under_another_name_ends(value: dict[str, Any]) -> None:
    faults = validate(json.dumps({**fields(time=...), **value}).encode(), LIMITS).faults
    assert [fault.key for fault in faults] == ["time"]
