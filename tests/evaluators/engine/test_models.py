"""What evaluators ask of models: one call a batch for all of them, remembered, and missed with a reason."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from pydantic import BaseModel

from ragtide.evaluators.checks import CountingModel, check_evaluator
from ragtide.evaluators.fingerprint import fingerprint
from ragtide.evaluators.models import Models, load_models
from ragtide.evaluators.models.hashing import HashingModel
from ragtide.evaluators.outcome import Failed, NotApplicable, Outcome, Scored
from ragtide.evaluators.plan import prepare, wanted_models
from ragtide.evaluators.registry import spec_faults
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.run import run_all
from ragtide.evaluators.settings import EvaluatorSettings
from ragtide.evaluators.spec import Ask, Metric, ModelRef, Need, Shared, Vectors, evaluator
from tests.evaluators.engine.examples import trace


class Params(BaseModel, frozen=True, extra="forbid"):
    model: str = "judge-of-tone"


@dataclass(frozen=True, slots=True)
class Inputs:
    answer: str


def ref(params: Params) -> ModelRef:
    return ModelRef(Need.CLASSIFIER, params.model, ("rude", "kind"))


def _asks(row: Inputs, shared: Shared, params: Params) -> Iterable[tuple[ModelRef, Ask]]:
    return [(ref(params), (row.answer,))]


def _tone(rows: Sequence[Inputs], shared: Shared, params: Params) -> Iterator[Outcome]:
    """How rude the answer is."""
    for row in rows:
        [[rude, _]] = shared.ask(ref(params), [(row.answer,)])
        yield NotApplicable("too_long") if np.isnan(rude) else Scored({"rude": float(rude)})


declare = evaluator(
    "tone",
    version=1,
    domain="fairness",
    method="classifier",
    inputs=Inputs,
    params=Params,
    metrics=[Metric("rude", better="lower", primary=True)],
    needs={Need.CLASSIFIER},
    models=lambda params: [ref(params)],
    asks=_asks,
)
tone = declare(_tone)
REF = ref(Params())


def test_every_evaluator_of_a_batch_is_served_by_one_call_and_the_next_batch_by_what_is_remembered() -> None:
    model = CountingModel(HashingModel(REF))
    models = Models({REF: model})
    plan = prepare({"tone": tone, "tone2": replace(tone, id="tone2")}, EvaluatorSettings(), None, None, models)
    resources = Resources(models=models.loaded)
    traces = [trace(answer=text) for text in ("you fool", "dear friend", "you fool")]
    first = run_all(plan.prepared, traces, resources.batch())
    assert model.calls == 1
    assert run_all(plan.prepared, traces, resources.batch()) == first
    assert model.calls == 1
    expected = HashingModel(REF).answer([("you fool",), ("dear friend",)])[:, 0]
    assert [outcome.metrics["rude"] for outcome in first[0] if isinstance(outcome, Scored)] == pytest.approx(
        expected[[0, 1, 0]]
    )
    assert first[0] == first[1]


def test_an_ask_is_remembered_with_its_bounds_and_its_model() -> None:
    pair, other = ModelRef(Need.CLASSIFIER, "a"), ModelRef(Need.CLASSIFIER, "b")
    resources = Resources(models={one: HashingModel(one) for one in (pair, other)})
    asks: list[Ask] = [("ab", "c"), ("a", "bc"), ("abc",), ("a b", "c")]
    said = resources.ask(pair, asks)
    assert np.array_equal(resources.ask(pair, asks), said)
    assert len(resources.answers) == 4
    resources.ask(other, asks)
    assert len(resources.answers) == 8


def test_without_its_model_an_evaluator_is_off_with_the_reason() -> None:
    assert wanted_models({"tone": tone}, EvaluatorSettings(), "model") == (REF,)
    assert wanted_models({"tone": tone}, EvaluatorSettings(), "fast") == ()
    assert wanted_models({"tone": tone}, EvaluatorSettings(disabled=("tone",)), None) == ()
    other = EvaluatorSettings(params={"tone": {"model": "other"}})
    assert [one.name for one in wanted_models({"tone": tone}, other, None)] == ["other"]
    plan = prepare({"tone": tone}, EvaluatorSettings(), None, None, Models(missing={REF: "fetch it"}))
    assert (plan.prepared, dict(plan.unavailable)) == ((), {"tone": "fetch it"})
    missing = load_models([REF], EvaluatorSettings())
    assert not missing.loaded
    assert missing.missing[REF]


class Broken:
    """Fails whenever it is asked of the bad text."""

    revision = "broken@1"

    def answer(self, asks: Sequence[Ask]) -> Vectors:
        if ("bad",) in asks:
            raise MemoryError
        return np.array([[np.nan if ask == ("long",) else 0.25, 0.75] for ask in asks], np.float32)


def test_a_model_that_fails_costs_the_record_it_fails_on_and_what_it_cannot_take_is_not_a_score() -> None:
    plan = prepare({"tone": tone}, EvaluatorSettings(), None, None, Models({REF: Broken()}))
    traces = [trace(answer=text) for text in ("fine", "bad", "long")]
    [[fine, bad, long]] = run_all(plan.prepared, traces, Resources(models={REF: Broken()}).batch())
    assert fine == Scored({"rude": 0.25})
    assert isinstance(bad, Failed)
    assert bad.kind == "crashed"
    assert long == NotApplicable("too_long")


def test_a_fingerprint_moves_with_the_models_asked() -> None:
    one, other = fingerprint(tone, Params(), None, ["a@1"]), fingerprint(tone, Params(), None, ["a@2"])
    assert len({one, other, fingerprint(tone, Params())}) == 3
    assert one == fingerprint(tone, Params(), "encoder@1", ["a@1"]), "it embeds nothing"
    [prepared] = prepare({"tone": tone}, EvaluatorSettings(), None, None, Models({REF: Broken()})).prepared
    assert prepared.fingerprint == fingerprint(tone, Params(), None, ["broken@1"])


def test_the_check_runs_on_a_fake_model_and_finds_what_is_asked_without_saying_so() -> None:
    check_evaluator(tone, [trace(answer="you fool")])
    silent = replace(tone, asks=None)
    with pytest.raises(AssertionError, match="calls of the model judge-of-tone: asks must name"):
        check_evaluator(silent, [trace(answer="you fool"), trace(answer="dear friend")])
    assert any("models" in fault for fault in spec_faults(replace(tone, models=None)))
