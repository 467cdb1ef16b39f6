"""`check_evaluator`: checks the evaluator contract, for the tests of plug-ins."""

import copy
import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from ragtide.evaluators.checks.crashes import Crashes
from ragtide.evaluators.checks.growth import growth_faults
from ragtide.evaluators.checks.hostile_traces import CANARY, hostile_traces
from ragtide.evaluators.checks.windows import window_faults
from ragtide.evaluators.encoder import Encoder
from ragtide.evaluators.encoder.hashing import HashingEncoder
from ragtide.evaluators.fingerprint import fingerprint
from ragtide.evaluators.judge.hashing import HashingJudge
from ragtide.evaluators.models import Model
from ragtide.evaluators.models.hashing import HashingModel
from ragtide.evaluators.outcome import Failed, Outcome, Scored
from ragtide.evaluators.plan import PreparedEvaluator, models_of
from ragtide.evaluators.registry import spec_faults
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.run import run_all
from ragtide.evaluators.spec import Ask, Evaluator, ModelRef, Vectors
from ragtide.evaluators.trace import Trace

TOLERANCE = 1e-5  # vectors of one text differ by less between batches


def check_evaluator(
    evaluator: Evaluator,
    traces: Sequence[Trace] = (),
    params: BaseModel | None = None,
    encoder: Encoder | None = None,
    models: Mapping[ModelRef, Model] | None = None,
) -> None:
    """Raise `AssertionError` with every way in which the evaluator breaks its contract.

    It runs over `traces`, of which it must score at least one, and over ordinary and hostile traces: in one batch, one
    by one, in reverse and twice. The judge is a fake; encoder and models are unless given. If there are no faults, it
    is timed on traces full of all kinds of values, up to the largest that its budget admits. The cause of the
    `AssertionError` is the first error that the evaluator raised.
    """
    params = params or evaluator.params()
    crashes = Crashes(evaluator)
    faults = spec_faults(evaluator)
    if not faults:
        faults = _Check(evaluator, crashes, (*traces, *hostile_traces()), params, encoder, models or {}).faults()
    faults = faults or growth_faults(evaluator, params)
    if faults:
        listed = "".join(f"\n- {fault}" for fault in dict.fromkeys(faults))
        raise AssertionError(f"evaluator {evaluator.id!r} breaks its contract:{listed}") from crashes.first


class CountingEncoder:
    """An `Encoder` that counts its calls."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.revision = encoder.revision
        self.dimension = encoder.dimension
        self.calls = 0

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Call the encoder."""
        self.calls += 1
        return self._encoder.encode(texts)

    def count_tokens(self, texts: Sequence[str]) -> int:
        """Count with the encoder."""
        return self._encoder.count_tokens(texts)


class CountingModel:
    """A `Model` that counts its calls."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.revision = model.revision
        self.calls = 0

    def answer(self, asks: Sequence[Ask]) -> Vectors:
        """Call the model."""
        self.calls += 1
        return self._model.answer(asks)


class _Check:
    def __init__(
        self,
        evaluator: Evaluator,
        crashes: Crashes,
        traces: Sequence[Trace],
        params: BaseModel,
        encoder: Encoder | None,
        models: Mapping[ModelRef, Model],
    ) -> None:
        self._encoder = CountingEncoder(encoder or HashingEncoder())
        refs = models_of(evaluator, params)
        self._models = {ref: CountingModel(models.get(ref) or HashingModel(ref)) for ref in refs}
        self._traces = tuple(traces)
        version_hash = fingerprint(
            evaluator, params, self._encoder.revision, [m.revision for m in self._models.values()]
        )
        self._calls = 0
        self._crashes = crashes
        recorded = crashes.recorded()

        @functools.wraps(recorded.score)
        def counted(*given: Any) -> Any:
            self._calls += 1
            return recorded.score(*given)

        self._prepared = PreparedEvaluator(dataclasses.replace(recorded, score=counted), params, version_hash, tasks=())

    def faults(self) -> list[str]:
        before = copy.deepcopy(self._traces)
        whole = self._run(self._traces)
        faults = []
        if self._encoder.calls > 1:
            faults.append(f"a batch needed {self._encoder.calls} encoder calls: embeds must name every text it embeds")
        faults += [
            f"a batch needed {model.calls} calls of the model {ref.name}: asks must name all that it asks"
            for ref, model in self._models.items()
            if model.calls > 1
        ]
        halved, failed = self._calls > 1, any(isinstance(outcome, Failed) for outcome in whole)
        if halved and not failed:
            faults.append("it failed on a batch and on none of its records alone: one outcome per record, in order")
        if before != self._traces:
            faults.append("it changed its inputs")
        if not any(isinstance(outcome, Scored) for outcome in whole):
            faults.append("it scored none of the traces: pass some that it can score")
        for trace, outcome in zip(self._traces, whole, strict=True):
            if isinstance(outcome, Failed) and outcome.kind in ("crashed", "contract"):
                details = self._crashes.explain(outcome.detail)
                faults.append(f"trace {trace.trace_id}: {outcome.kind}: {outcome.detail}{details}")
            if CANARY in repr(outcome).lower():
                faults.append(f"trace {trace.trace_id}: the outcome quotes the trace")
        faults += window_faults(self._prepared.evaluator, [one for one in whole if isinstance(one, Scored)])
        backwards = list(reversed(self._run(tuple(reversed(self._traces)))))
        one_by_one = [self._run((trace,))[0] for trace in self._traces]
        again = self._run(self._traces)
        for name, others in (("alone", one_by_one), ("in reverse order", backwards), ("a second time", again)):
            faults += [
                f"trace {trace.trace_id}: another outcome {name}: {type(other).__name__}, not {type(outcome).__name__}"
                if type(other) is not type(outcome)
                else f"trace {trace.trace_id}: another outcome {name}"
                for trace, outcome, other in zip(self._traces, whole, others, strict=True)
                if not same(outcome, other)
            ]
        return faults

    def _run(self, traces: Sequence[Trace]) -> list[Outcome | None]:
        resources = Resources(self._encoder, models=self._models, judge=HashingJudge())
        [outcomes] = run_all([self._prepared], traces, resources.batch())
        return outcomes


def same(one: Outcome | None, other: Outcome | None, tolerance: float = TOLERANCE) -> bool:
    """Whether two outcomes are equal, with numbers within the tolerance."""
    if not isinstance(one, Scored) or not isinstance(other, Scored):
        return one == other
    return (
        _near(one.metrics, other.metrics, tolerance)
        and _near(one.parts, other.parts, tolerance)
        and one.categories == other.categories
        and one.findings == other.findings
        and one.explanation == other.explanation
        and len(one.evidence) == len(other.evidence)
        and all(
            (a.field, a.start, a.end, a.chunk_id, a.kind) == (b.field, b.start, b.end, b.chunk_id, b.kind)
            and math.isclose(a.score or 0.0, b.score or 0.0, abs_tol=tolerance)
            for a, b in zip(one.evidence, other.evidence, strict=True)
        )
    )


def _near(one: Mapping[str, float], other: Mapping[str, float], tolerance: float) -> bool:
    return one.keys() == other.keys() and all(
        math.isclose(value, other[key], rel_tol=tolerance, abs_tol=tolerance) for key, value in one.items()
    )
