"""Traces and outcomes for the tests of built-in evaluators: through the real engine, as in a worker."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

from ragtide.evaluators.encoder import Encoder
from ragtide.evaluators.encoder.hashing import HashingEncoder
from ragtide.evaluators.judge.calls import Judge
from ragtide.evaluators.judge.hashing import HashingJudge
from ragtide.evaluators.judge.search_settings import SearchSettings
from ragtide.evaluators.judge.settings import JudgeEndpoint, JudgeSettings
from ragtide.evaluators.models import Model, Models
from ragtide.evaluators.models.hashing import HashingModel
from ragtide.evaluators.outcome import Outcome, Scored
from ragtide.evaluators.plan import prepare, wanted_models
from ragtide.evaluators.registry import load
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.run import run_all
from ragtide.evaluators.settings import EvaluatorSettings
from ragtide.evaluators.spec import ModelRef
from ragtide.evaluators.trace import Chunk, Trace

_registry = cache(load)  # entry points are looked for on every call
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def chunks(*texts: str | None) -> tuple[Chunk, ...]:
    """Chunks c1, c2, ... with these texts."""
    return tuple(Chunk(id=f"c{number}", text=text) for number, text in enumerate(texts, start=1))


def trace(**fields: Any) -> Trace:
    """A trace with these fields, and nothing else recorded."""
    return Trace(**{"trace_id": "t", "time": NOON, "app": "shop", **fields})


def outcomes(
    id: str,
    traces: Sequence[Trace],
    params: Mapping[str, Any] | None = None,
    encoder: Encoder | None = None,
    model: Callable[[ModelRef], Model] = HashingModel,
    judge: Judge | None = None,
) -> list[Outcome]:
    """What the evaluator says of each trace, all in one micro-batch; encoder, models, judge are fakes unless given."""
    encoder = encoder or HashingEncoder()
    judges = JudgeSettings(
        endpoints={"fake": JudgeEndpoint(url="http://judge", model="fake")}, search=SearchSettings(url="http://search")
    )
    settings = EvaluatorSettings(enabled=(id,), params={id: dict(params or {})}, tasks={id: ("*",)}, judge=judges)
    models = Models({ref: model(ref) for ref in wanted_models(_registry(), settings, None)})
    plan = prepare(_registry(), settings, None, encoder, models)
    resources = Resources(encoder, models=models.loaded, judge=judge or HashingJudge())
    [given] = run_all(plan.prepared, traces, resources.batch())
    return [outcome for outcome in given if outcome is not None]


def outcome(
    id: str,
    params: Mapping[str, Any] | None = None,
    encoder: Encoder | None = None,
    model: Callable[[ModelRef], Model] = HashingModel,
    **fields: Any,
) -> Outcome:
    """What the evaluator says of a trace with these fields."""
    [given] = outcomes(id, [trace(**fields)], params, encoder, model)
    return given


def scored(
    id: str,
    params: Mapping[str, Any] | None = None,
    encoder: Encoder | None = None,
    model: Callable[[ModelRef], Model] = HashingModel,
    **fields: Any,
) -> Scored:
    """As `outcome`, where a score is what must come out."""
    given = outcome(id, params, encoder, model, **fields)
    assert isinstance(given, Scored), given
    return given
