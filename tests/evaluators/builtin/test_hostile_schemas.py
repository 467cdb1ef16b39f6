"""Whatever JSON meets a JSON Schema of the settings, there is an outcome, in time that grows as the text does."""

from functools import partial

import pytest

from ragtide.evaluators.outcome import NotApplicable, Outcome, Scored
from ragtide.evaluators.trace import Artifact
from tests.evaluators.builtin.hostile_schemas import SCHEMAS, TEXTS, params
from tests.evaluators.builtin.scoring import outcomes, trace
from tests.evaluators.builtin.test_hostile_texts import KB, LONGEST_S, MB
from tests.infra.growth import growth_fault

IDS = ("agent_sanity", "json_schema")
UNTOLD = tuple(map(NotApplicable, ("artifacts_not_recorded", "too_deep", "too_long")))


def asked(id: str, schema: str, text: str) -> Outcome:
    of = trace(answer=text, artifacts=(Artifact("a.json", None, text),))
    [given] = outcomes(id, [of], params(id, SCHEMAS[schema]))
    return given


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("id", IDS)
def test_every_json_has_an_outcome(id: str, schema: str) -> None:
    for name, text in TEXTS.items():
        given = asked(id, schema, text(20 * KB))
        assert isinstance(given, Scored) or given in UNTOLD, name


@pytest.mark.parametrize("schema", SCHEMAS)
def test_time_grows_as_the_json_does(schema: str) -> None:
    asked("json_schema", schema, "[]")  # compiles
    for name, text in TEXTS.items():
        small, large = (partial(asked, "json_schema", schema, text(size)) for size in (100 * KB, MB))
        fault = growth_fault(small, large, 10, most_s=LONGEST_S)
        assert fault is None, f"{name}: {fault}"


@pytest.mark.parametrize("id", IDS)
@pytest.mark.parametrize("schema", ["many states", "states ten times", "states of names"])
def test_what_regular_expressions_would_stall_on_is_too_long(id: str, schema: str) -> None:
    text = TEXTS["a string of two letters"]
    assert isinstance(asked(id, schema, text(5 * KB)), Scored)
    assert asked(id, schema, text(MB)) == NotApplicable("too_long")


@pytest.mark.parametrize(
    ("schema", "text", "failure"),
    [
        ("objects", "integers", "items"),
        ("filter", "bad leaves", "anyOf"),
        ("expression", "an expression of depth 14", "anyOf"),
        ("nested lists", "300 nested lists", None),
        ("each way twice", "300 nested lists", None),
        ("each way twice", "bad leaves", "type"),
    ],
)
def test_hostile_json_is_judged(schema: str, text: str, failure: str | None) -> None:
    given = asked("json_schema", schema, TEXTS[text](MB))
    assert isinstance(given, Scored)
    assert given.categories == ({"failure": failure} if failure else {})


@pytest.mark.parametrize("id", IDS)
def test_lists_too_deep_to_be_compared_are_not_judged(id: str) -> None:
    reason = {"agent_sanity": "artifacts_not_recorded", "json_schema": "too_deep"}[id]
    assert asked(id, "no two alike", TEXTS["many times 400 nested lists"](20 * KB)) == NotApplicable(reason)
