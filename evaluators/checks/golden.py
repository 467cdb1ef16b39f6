"""`check_golden`: compares an evaluator with expected outcomes of hand-picked traces, in a JSON file.

{"version": 1,
 "cases": {"a_case": {"trace": {"answer": "..."}, "scored": {"metrics": {"shout": 1.0}}},
           "another": {"trace": {"answer": ""}, "not_applicable": {"reason": "empty_answer"}}}}
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from pydantic import BaseModel

from ragtide.evaluators.checks.check import same
from ragtide.evaluators.encoder import Encoder
from ragtide.evaluators.encoder.hashing import HashingEncoder
from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.judge.hashing import HashingJudge
from ragtide.evaluators.models.hashing import HashingModel
from ragtide.evaluators.outcome import Failed, NotApplicable, Outcome, Scored
from ragtide.evaluators.plan import PreparedEvaluator, models_of
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.run import run_all
from ragtide.evaluators.spec import Evaluator
from ragtide.evaluators.trace import Trace

_NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)  # of a trace without a time


class _Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fields of a trace and its expected outcome, or none while the file is being written."""

    trace: Mapping[str, Any]
    scored: Scored | None = None
    not_applicable: NotApplicable | None = None
    failed: Failed | None = None

    def __post_init__(self) -> None:
        if sum(outcome is not None for outcome in (self.scored, self.not_applicable, self.failed)) > 1:
            raise ValueError("a case has one outcome: scored, not_applicable or failed")

    def outcome(self) -> Outcome | None:
        return self.scored or self.not_applicable or self.failed


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The version of the evaluator, and the cases by name."""

    version: int
    cases: Mapping[str, _Case]


def golden_traces(file: Path) -> tuple[Trace, ...]:
    """Read the traces of a golden file, in order, for `check_evaluator`. Raises `ConfigError` for a bad file."""
    return tuple(_traces(file, _read(file)))


def check_golden(
    evaluator: Evaluator, file: Path, params: BaseModel | None = None, encoder: Encoder | None = None
) -> None:
    """Raise `AssertionError` with every case of the file whose outcome differs.

    Numbers may differ by rounding. Evidence, categories, parts and findings that a case leaves out must be empty. The
    encoder is a fake unless given. Raises `ConfigError` for a bad file.
    """
    golden = _read(file)
    faults = [] if golden.cases else ["it has no cases"]
    if golden.version != evaluator.version:
        faults.append(
            f"it is of version {golden.version}, the evaluator is {evaluator.version}: look through the outcomes, "
            "then set its version"
        )
    outcomes = _outcomes(evaluator, _traces(file, golden), params or evaluator.params(), encoder or HashingEncoder())
    for (name, case), outcome in zip(golden.cases.items(), outcomes, strict=True):
        expected = case.outcome()
        if not same(outcome, expected):
            faults.append(f"{name}: the evaluator says {_encode_case(outcome)}, the file {_encode_case(expected)}")
    if faults:
        listed = "".join(f"\n- {fault}" for fault in faults)
        raise AssertionError(
            f"evaluator {evaluator.id!r} differs from {file.name}:{listed}\n"
            "If a score changed on purpose, raise the evaluator's version: scores of one version must stay comparable."
        )


def _outcomes(evaluator: Evaluator, traces: list[Trace], params: BaseModel, encoder: Encoder) -> list[Outcome | None]:
    models = {ref: HashingModel(ref) for ref in models_of(evaluator, params)}
    prepared = PreparedEvaluator(evaluator, params, fingerprint="", tasks=())
    [outcomes] = run_all([prepared], traces, Resources(encoder, models=models, judge=HashingJudge()).batch())
    return outcomes


def _read(file: Path) -> _File:
    try:
        return msgspec.json.decode(file.read_bytes(), type=_File)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"the golden file {file} cannot be read: {error}") from error


def _traces(file: Path, golden: _File) -> list[Trace]:
    traces = []
    for name, case in golden.cases.items():
        try:
            fields = {"trace_id": name, "time": _NOON, "app": "golden", **case.trace}
            traces.append(msgspec.convert(fields, Trace))
        except msgspec.ValidationError as error:
            raise ConfigError(f"the golden file {file} has no sound trace in {name!r}: {error}") from error
    return traces


def _encode_case(outcome: Outcome | None) -> str:
    """Render the outcome as in the file, to be copied there once it is verified."""
    key = {Scored: "scored", NotApplicable: "not_applicable", Failed: "failed"}.get(type(outcome))
    if key is None:
        return "nothing"
    return msgspec.json.encode({key: _without_defaults(msgspec.to_builtins(outcome))}).decode()


def _without_defaults(value: Any) -> Any:
    """Remove the values that the file may leave out."""
    if isinstance(value, list | tuple):
        return [_without_defaults(each) for each in value]
    if isinstance(value, dict):
        return {name: _without_defaults(value) for name, value in value.items() if value not in (None, (), {}, "")}
    return value
