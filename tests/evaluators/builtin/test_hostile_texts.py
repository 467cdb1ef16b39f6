"""Whatever stands in a text, every registered evaluator gives an outcome, in time that grows as the text does."""

import time
from math import inf

import pytest

from ragtide.evaluators.checks.growth import ConstantEncoder, ConstantModel
from ragtide.evaluators.outcome import Failed, NotApplicable, Scored
from ragtide.evaluators.registry import load
from ragtide.evaluators.spec import Need
from ragtide.evaluators.trace import Artifact, Boxes
from tests.evaluators.builtin.hostile import TEXTS, hostile, sound
from tests.evaluators.builtin.scoring import chunks, outcomes, trace

KB = 1_000
MB = 1_000 * KB
EVALUATORS = {id: each for id, each in load().items() if Need.JUDGE not in each.needs}
REGISTERED = sorted(EVALUATORS)
OF_REGIONS = {id: each.budget.regions for id, each in EVALUATORS.items() if each.budget.regions is not None}
LIMITED = {id: each.budget.characters for id, each in EVALUATORS.items() if each.budget.characters is not None}
TIMES = 12  # the processor time of 1 MB in that of 100 KB, at most: 10 is linear, 100 quadratic
LONGEST_S = 2.0  # of processor time
NOISE_S = 0.05  # below, the ratio tells of the machine


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("id", REGISTERED)
def test_a_hostile_text_costs_no_more_than_its_outcome(id: str, name: str) -> None:
    traces = [hostile(text) for text in ("", TEXTS[name](KB), TEXTS[name](20 * KB))]
    given = outcomes(id, traces)
    assert len(given) == len(traces)
    for outcome, of in zip(given, traces, strict=True):
        assert not isinstance(outcome, Failed), outcome
        assert sound(outcome, of), outcome


def cpu_s(id: str, text: str) -> float:
    of = hostile(text)
    start = time.process_time()
    [given] = outcomes(id, [of], encoder=ConstantEncoder(), model=ConstantModel)
    took = time.process_time() - start
    assert not isinstance(given, Failed), given
    return took


@pytest.mark.parametrize("id", REGISTERED)
def test_ten_times_the_text_takes_twelve_times_the_processor_at_most(id: str) -> None:
    cpu_s(id, "to load what is loaded once")
    for name, text in TEXTS.items():
        tenth, whole = text(100 * KB), text(MB)
        small = large = inf
        for _ in range(15):  # what else runs on the machine only ever adds: the best of several is what it costs
            small = min(small, cpu_s(id, tenth), cpu_s(id, tenth))
            large = min(large, cpu_s(id, whole))
            if large <= max(TIMES * small, NOISE_S):
                break
        assert large <= max(TIMES * small, NOISE_S), f"{name}: {large:.3f} s, and {small:.3f} s for a tenth of it"
        assert large <= LONGEST_S, name


def test_a_quadratic_step_is_seen() -> None:
    """The bound between linear and quadratic, on work whose order is known."""

    def cost(steps: int) -> float:
        start = time.process_time()
        sum(range(steps))
        return time.process_time() - start

    small = min(cost(100_000) for _ in range(5))
    assert min(cost(1_000_000) for _ in range(5)) < 30 * small < min(cost(10_000_000) for _ in range(3))


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
