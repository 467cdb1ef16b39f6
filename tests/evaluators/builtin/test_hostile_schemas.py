"""Whatever JSON meets a JSON Schema of the settings, there is an outcome, in time that grows as the text does."""

import gc
import time

import pytest

from ragtide.evaluators.outcome import NotApplicable, Outcome, Scored
from ragtide.evaluators.trace import Artifact
from tests.evaluators.builtin.hostile_schemas import SCHEMAS, TEXTS, params
from tests.evaluators.builtin.scoring import outcomes, trace
from tests.evaluators.builtin.test_hostile_texts import KB, LONGEST_S, MB, NOISE_S

IDS = ("agent_sanity", "json_schema")
UNTOLD = tuple(map(NotApplicable, ("artifacts_not_recorded", "too_deep", "too_long")))
TIMES = 20  # the processor time of 1 MB in that of 100 KB, at most: 10 is linear, memory takes its part, 100 quadratic


def asked(id: str, schema: str, text: str) -> tuple[Outcome, float]:
    """What comes out, and the processor time that it took without the garbage collector, which workers run seldom."""
    of = trace(answer=text, artifacts=(Artifact("a.json", None, text),))
    gc.disable()
    try:
        start = time.process_time()
        [given] = outcomes(id, [of], params(id, SCHEMAS[schema]))
        return given, time.process_time() - start
    finally:
        gc.enable()


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("id", IDS)
def test_every_json_has_an_outcome(id: str, schema: str) -> None:
    for name, text in TEXTS.items():
        given, _ = asked(id, schema, text(20 * KB))
        assert isinstance(given, Scored) or given in UNTOLD, name


@pytest.mark.parametrize("schema", SCHEMAS)
def test_ten_times_the_json_takes_twenty_times_the_processor_at_most(schema: str) -> None:
    asked("json_schema", schema, "[]")  # compiles
    for name, text in TEXTS.items():
        tenth, whole = text(100 * KB), text(MB)
        for _ in range(5):  # what else runs on the machine only ever adds
            small = max(asked("json_schema", schema, tenth)[1] for _ in range(2))
            _, large = asked("json_schema", schema, whole)
            if large <= max(TIMES * small, NOISE_S):
                break
        assert large <= max(TIMES * small, NOISE_S), f"{name}: {large:.3f} s, and {small:.3f} s for a tenth of it"
        assert large <= LONGEST_S, name


@pytest.mark.parametrize("id", IDS)
@pytest.mark.parametrize("schema", ["many states", "states ten times", "states of names"])
def test_what_regular_expressions_would_stall_on_is_too_long(id: str, schema: str) -> None:
    text = TEXTS["a string of two letters"]
    assert isinstance(asked(id, schema, text(5 * KB))[0], Scored)
    assert asked(id, schema, text(MB))[0] == NotApplicable("too_long")


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
    given, _ = asked("json_schema", schema, TEXTS[text](MB))
    assert isinstance(given, Scored)
    assert given.categories == ({"failure": failure} if failure else {})


@pytest.mark.parametrize("id", IDS)
def test_lists_too_deep_to_be_compared_are_not_judged(id: str) -> None:
    reason = {"agent_sanity": "artifacts_not_recorded", "json_schema": "too_deep"}[id]
    assert asked(id, "no two alike", TEXTS["many times 400 nested lists"](20 * KB))[0] == NotApplicable(reason)
