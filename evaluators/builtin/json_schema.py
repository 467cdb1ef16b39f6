from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, Field

from ragtide.evaluators.outcome import NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Shared, evaluator
from ragtide.evaluators.text.json_schemas import MOST_STEPS, JsonSchema, SoundSchema, compile_schema
from ragtide.evaluators.text.json_text import NotJson, TooDeep, check, read
from ragtide.evaluators.text.pass_metrics import PASS_METRICS, pass_metrics


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer alone."""

    answer: str


class Params(BaseModel, frozen=True, extra="forbid"):
    """The schema of the answer."""

    json_schema: SoundSchema = Field({}, description="JSON Schema that the answer must satisfy. {} accepts any JSON.")


@evaluator(
    "json_schema",
    version=3,
    domain="generation",
    method="rule",
    inputs=Inputs,
    params=Params,
    metrics=PASS_METRICS,
    off_until_set=("json_schema",),
)
def json_schema(rows: Sequence[Inputs], shared: Shared, params: Params) -> Iterator[Outcome]:
    """Whether the whole answer, without code fence or other text, parses as JSON and satisfies the configured JSON
    Schema. With {} only parsing is checked. The category `failure` is "not_json" or a keyword at the root of the
    schema. The record is too_long if regular expressions or `uniqueItems` of the schema would take too long.
    """
    schema = compile_schema(params.json_schema) if params.json_schema not in ({}, True) else None
    for row in rows:
        yield _check(row.answer, schema)


def _check(answer: str, schema: JsonSchema | None) -> Outcome:
    try:
        if schema is None:
            check(answer)
        elif schema.steps(answer) > MOST_STEPS:
            return NotApplicable("too_long")
        elif not schema.is_valid(value := read(answer)):
            return _fails(schema.failing(value))
    except TooDeep:
        return NotApplicable("too_deep")
    except NotJson:
        return _fails("not_json")
    return Scored(pass_metrics(answer_fails=False))


def _fails(why: str) -> Scored:
    return Scored(pass_metrics(answer_fails=True), {"failure": why})
