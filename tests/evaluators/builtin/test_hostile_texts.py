"""Whatever stands in a text, every registered evaluator gives an outcome, in time that grows as the text does."""

from collections.abc import Callable
from functools import partial

import pytest

from ragtide.evaluators.checks.growth import ConstantEncoder, ConstantModel
from ragtide.evaluators.outcome import Failed, NotApplicable, Scored
from ragtide.evaluators.registry import load
from ragtide.evaluators.spec import Need
from ragtide.evaluators.trace import Artifact, Boxes
from tests.evaluators.builtin.hostile import TEXTS, hostile, sound
from tests.evaluators.builtin.scoring import chunks, outcomes, trace
from tests.infra.growth import growth_fault

KB = 1_000
MB = 1_000 * KB
EVALUATORS = {id: each for id, each in load().items() if Need.JUDGE not in each.needs}
REGISTERED = sorted(EVALUATORS)
OF_REGIONS = {id: each.budget.regions for id, each in EVALUATORS.items() if each.budget.regions is not None}
LIMITED = {id: each.budget.characters for id, each in EVALUATORS.items() if each.budget.characters is not None}
LONGEST_S = 2.0  # of processor time


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("id", REGISTERED)
def test_a_hostile_text_costs_no_more_than_its_outcome(id: str, name: str) -> None:
    traces = [hostile(text) for text in ("", TEXTS[name](KB), TEXTS[name](20 * KB))]
    given = outcomes(id, traces)
    assert len(given) == len(traces)
    for outcome, of in zip(given, traces, strict=True):
        assert not isinstance(outcome, Failed), outcome
        assert sound(outcome, of), outcome


def score(id: str, text: str) -> None:
    [given] = outcomes(id, [hostile(text)], encoder=ConstantEncoder(), model=ConstantModel)
    assert not isinstance(given, Failed), given


@pytest.mark.parametrize("id", REGISTERED)
def test_time_grows_as_the_text_does(id: str) -> None:
    score(id, "to load what is loaded once")
    for name, text in TEXTS.items():
        tenth, whole = (partial(score, id, text(size)) for size in (100 * KB, MB))
        fault = growth_fault(tenth, whole, 10, most_s=LONGEST_S)
        assert fault is None, f"{name}: {fault}"


def test_a_quadratic_step_is_seen() -> None:
    """The limit between linear and quadratic, on work whose order is known."""

    def loop(steps: int) -> Callable[[], object]:
        return lambda: sum(range(steps))

    assert growth_fault(loop(500_000), loop(5_000_000), 10) is None
    assert growth_fault(loop(500_000), loop(50_000_000), 10) is not None
    assert growth_fault(loop(500_000), loop(5_000_000), 10, most_s=0.001) is not None


@pytest.mark.parametrize("id", REGISTERED)
def test_nothing_that_users_wrote_leaves_with_an_outcome(id: str) -> None:
    secret = "Kassandra"
    text = f"{secret} told bob.{secret}@example.com that {secret} is locked. {secret} is {secret}."
    told = trace(
        question=f"Who is {secret}?",
        answer=text,
        contexts=chunks(text, f"{secret}."),
        expected=(text,),
        condition=f'"{secret}" AND NOT "{secret}" AND regexp("{secret}(")',
    )
    malformed = trace(answer=text, constraints=(f"REGEXP:{secret}(", secret))
    assert secret not in repr(outcomes(id, [told, malformed]))


@pytest.mark.parametrize(("id", "most"), LIMITED.items())
def test_beyond_its_budget_a_text_is_not_applicable(id: str, most: int) -> None:
    long = "a b. " * (most // 5 + 1)
    of = trace(
        question=long, answer=long, contexts=chunks(long), expected=(long,), artifacts=(Artifact("a", None, long),)
    )
    [given] = outcomes(id, [of], encoder=ConstantEncoder(), model=ConstantModel)
    assert isinstance(given, NotApplicable)
    assert given.reason == "too_long" or given.reason.startswith("missing_")


@pytest.mark.parametrize(("id", "most"), OF_REGIONS.items())
def test_beyond_its_budget_an_image_is_not_applicable(id: str, most: int) -> None:
    region = {"label": "cat", "score": 0.5, "mask": [[1]]}
    for fits in (Boxes((region,) * most, ()), Boxes((), (region,) * most)):
        assert [type(given) for given in outcomes(id, [trace(boxes=fits)])] == [Scored]
    for beyond in (Boxes((region,) * (most + 1), ()), Boxes((), (region,) * (most + 1))):
        assert outcomes(id, [trace(boxes=beyond)]) == [NotApplicable("too_long")]
