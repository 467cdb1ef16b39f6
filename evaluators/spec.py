"""The evaluator contract: the decorator `evaluator` makes one frozen `Evaluator` per file."""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import repeat
from operator import attrgetter
from typing import Any, Literal, Protocol, TypeVar, cast, overload

import msgspec
import numpy as np
import numpy.typing as npt
from pydantic import BaseModel

from ragtide.evaluators.declaration import check_function, check_metrics, check_params, required_fields
from ragtide.evaluators.judge.calls import Conversation, JudgeUse
from ragtide.evaluators.outcome import Failed, NotApplicable, Outcome
from ragtide.evaluators.parts import Combine
from ragtide.evaluators.standards import standards_of
from ragtide.evaluators.trace import Trace

Vectors = npt.NDArray[np.float32]
Better = Literal["higher", "lower"]
RuleKind = Literal["mean", "share", "value", "any"]
Lane = Literal["fast", "model", "judge"]
Domain = Literal["generation", "retrieval", "privacy", "fairness", "summarization", "classification", "vision"]
Method = Literal["rule", "ngram", "embedding", "nli", "classifier", "lm", "judge", "agent", "window"]


class Need(StrEnum):
    """A shared resource that an evaluator requires."""

    EMBEDDING = "embedding"
    NLI = "nli"
    CLASSIFIER = "classifier"
    LM = "lm"
    JUDGE = "judge"


SHARED = "shared"  # the encoder of evaluators.encoder

LANE_OF_METHOD: dict[str, Lane] = {
    "rule": "fast",
    "ngram": "fast",
    "window": "fast",
    "embedding": "model",
    "nli": "model",
    "classifier": "model",
    "lm": "model",
    "judge": "judge",
    "agent": "judge",
}


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. `threshold` separates good and bad records; a value equal to it is good."""

    key: str
    low: float = 0.0
    high: float = 1.0
    better: Better = "higher"
    threshold: float | None = None
    primary: bool = False
    rule: RuleKind | None = None  # if None, the default of `Evaluator.rule_of`
    optional: bool = False  # may be absent from a Scored, such as a cost that was not recorded
    unit: str | None = None  # "s", "usd", "words", ...
    companion: str | None = None  # of a judge: `evaluator.metric` that sees every trace, see `prediction_powered`
    per: tuple[str, ...] = ()  # labels of a window metric, such as ("class",): one series for each combination
    binary: bool = False  # every score is 0 or 1, so that their mean is a share
    description: str = ""

    @property
    def bounded(self) -> bool:
        """Whether both ends of the range are finite."""
        return math.isfinite(self.low) and math.isfinite(self.high)


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits on the input of one record. Beyond them the outcome is NotApplicable("too_long").

    Limits apply to the sum over all text inputs; that of regions applies to expected and predicted ones separately.
    None means no limit. `items` counts the members of all lists and mappings in the inputs (chunks, references,
    labels, ...), nested ones too, without regions.
    """

    characters: int | None = 2_000_000
    items: int | None = 10_000
    tokens: int | None = None
    sentences: int | None = None
    regions: int | None = None


@dataclass(frozen=True, slots=True)
class Extra:
    """Packages beyond the base install: the pip requirement, and the modules that it provides."""

    install: str  # for pip, such as "ragtide[vision]"
    modules: tuple[str, ...]


class Sentence(msgspec.Struct, frozen=True, gc=False):
    """A sentence and its character offsets in the text."""

    text: str
    start: int
    end: int


Ask = tuple[str, ...]  # one input of a model: a text, or two (premise and hypothesis, prefix and continuation)


@dataclass(frozen=True, slots=True)
class ModelRef:
    """A model of an evaluator: its kind, and its name in settings, on Hugging Face or on disk.

    The columns of an answer: for NLI and classifiers the probability of each of `labels`, in that order (without labels
    one score, 0 to 1). For a language model the negative log-likelihood of the second text after the first, summed over
    its tokens, in nats, and the number of these tokens.
    """

    need: Need
    name: str
    labels: tuple[str, ...] = ()

    @property
    def columns(self) -> int:
        """Number of columns of an answer."""
        return 2 if self.need is Need.LM else max(1, len(self.labels))


Made = TypeVar("Made")


class Shared(Protocol):
    """Work shared by evaluators: done once per micro-batch, batched, de-duplicated and memoised by content."""

    def sentences(self, text: str) -> tuple[Sentence, ...]:
        """Split the text into sentences, with the shared splitter. Every sentence has a letter."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors, one row per text, in order: float32 [len(texts), dimension]."""
        ...

    def ask(self, model: ModelRef, asks: Sequence[Ask]) -> Vectors:
        """Return the model's answers, one row per ask, in order: float32 [len(asks), model.columns].

        Long texts are read in windows, and the highest probability of each label counts. A row is NaN if the ask is too
        long for that: a text that must be read whole is not cut.
        """
        ...

    def judge(self, conversation: Conversation[Made]) -> Made | Failed | NotApplicable:
        """Return what the conversation with the judge found, or a call that failed, or that it is too long."""
        ...

    def once(self, make: Callable[[str], Made], text: str) -> Made:
        """Return `make(text)`, computed once per micro-batch.

        `make` is a pure function of a module. Do not change the result.
        """
        ...


Row = TypeVar("Row")
Params = TypeVar("Params", bound=BaseModel)
Score = Callable[[Sequence[Row], Shared, Params], Iterable[Outcome]]
ScoreRecord = Callable[[Row, Shared, Params], Outcome]
Embeds = Callable[[Row, Shared, Params], Iterable[str]]
EncoderOf = Callable[[Params], str | None]
Models = Callable[[Params], Iterable[ModelRef]]
Asks = Callable[[Row, Shared, Params], Iterable[tuple[ModelRef, Ask]]]


class NoParams(BaseModel, frozen=True, extra="forbid"):
    """Parameters of an evaluator that has none."""


@dataclass(frozen=True, slots=True)
class Evaluator:
    """A pure, synchronous scorer of micro-batches, with its declaration."""

    id: str
    version: int  # raise it when the same input may score differently
    description: str
    domain: Domain
    method: Method
    inputs: type[Any]
    fields: Callable[[Trace], tuple[Any, ...]]  # reads the fields of `inputs` from a trace
    required: tuple[str, ...]
    params: type[BaseModel]
    metrics: tuple[Metric, ...]
    score: Score[Any, Any]
    embeds: Embeds[Any, Any] | None
    encoder: EncoderOf[Any] | None
    models: Models[Any] | None
    asks: Asks[Any, Any] | None
    judge: JudgeUse | None
    needs: frozenset[Need]
    tasks: tuple[str, ...]  # empty: every task
    standards: tuple[str, ...]
    budget: Budget
    own_lane: Lane | None  # if None, the lane of the method
    combine: Combine | None  # of method `window`: metrics from summed parts, see `ragtide.evaluators.parts`
    extra: Extra | None  # packages beyond the base install
    off_until_set: tuple[str, ...]  # parameters: until settings give one, it is off by default

    @property
    def lane(self) -> Lane:
        """The lane that it runs in."""
        return self.own_lane or LANE_OF_METHOD[self.method]

    def rule_of(self, metric: Metric) -> RuleKind:
        """Return the default rule for windows of this metric. Settings can override it."""
        if metric.rule is not None:
            return metric.rule
        if self.method == "window":
            return "value"
        if self.domain == "privacy":
            return "any"
        if self.domain == "fairness" or any(m.key == "passes" for m in self.metrics):
            return "share"
        return "mean"

    @property
    def carrier(self) -> Metric | None:
        """The first primary metric of method `window`: its windows hold the parts of all metrics."""
        return next((metric for metric in self.metrics if metric.primary), None) if self.combine else None

    def encoder_of(self, params: BaseModel) -> str | None:
        """Return the encoder for these parameters: `SHARED`, a model of its own, or None."""
        if Need.EMBEDDING not in self.needs:
            return None
        return self.encoder(params) if self.encoder else SHARED

    def project(self, trace: Trace) -> Any | NotApplicable:
        """Read the inputs of a trace; NotApplicable("missing_<field>") if a required field was not recorded."""
        for name in self.required:
            if getattr(trace, name) is None:
                return NotApplicable(f"missing_{name}")
        return self.inputs(*self.fields(trace))


@overload
def evaluator(
    id: str,
    *,
    version: int,
    domain: Domain,
    method: Method,
    inputs: type[Row],
    metrics: Iterable[Metric],
    per_record: Literal[True],
    params: type[Params] = ...,
    needs: Iterable[Need] = ...,
    embeds: Embeds[Row, Params] | None = ...,
    encoder: EncoderOf[Params] | None = ...,
    models: Models[Params] | None = ...,
    asks: Asks[Row, Params] | None = ...,
    judge: JudgeUse | None = ...,
    tasks: Iterable[str] = ...,
    standards: Iterable[str] = ...,
    budget: Budget | None = ...,
    lane: Lane | None = ...,
    combine: Combine | None = ...,
    extra: Extra | None = ...,
    off_until_set: Iterable[str] = ...,
) -> Callable[[ScoreRecord[Row, Params]], Evaluator]: ...


@overload
def evaluator(
    id: str,
    *,
    version: int,
    domain: Domain,
    method: Method,
    inputs: type[Row],
    metrics: Iterable[Metric],
    per_record: Literal[False] = ...,
    params: type[Params] = ...,
    needs: Iterable[Need] = ...,
    embeds: Embeds[Row, Params] | None = ...,
    encoder: EncoderOf[Params] | None = ...,
    models: Models[Params] | None = ...,
    asks: Asks[Row, Params] | None = ...,
    judge: JudgeUse | None = ...,
    tasks: Iterable[str] = ...,
    standards: Iterable[str] = ...,
    budget: Budget | None = ...,
    lane: Lane | None = ...,
    combine: Combine | None = ...,
    extra: Extra | None = ...,
    off_until_set: Iterable[str] = ...,
) -> Callable[[Score[Row, Params]], Evaluator]: ...


def evaluator(
    id: str,
    *,
    version: int,
    domain: Domain,
    method: Method,
    inputs: type[Row],
    metrics: Iterable[Metric],
    per_record: bool = False,
    params: type[Params] = NoParams,  # type: ignore[assignment]  # mypy: not every Params is NoParams
    needs: Iterable[Need] = (),
    embeds: Embeds[Row, Params] | None = None,
    encoder: EncoderOf[Params] | None = None,
    models: Models[Params] | None = None,
    asks: Asks[Row, Params] | None = None,
    judge: JudgeUse | None = None,
    tasks: Iterable[str] = (),
    standards: Iterable[str] = (),
    budget: Budget | None = None,
    lane: Lane | None = None,
    combine: Combine | None = None,
    extra: Extra | None = None,
    off_until_set: Iterable[str] = (),
) -> Callable[[Any], Evaluator]:
    """Turn a pure function into an `Evaluator`; its docstring is the evaluator's description. Touches no global state.

    With `per_record` the function takes one row and returns its outcome. Without, it takes a batch of rows and gives
    one outcome for each, in order.

    `inputs` is a frozen dataclass whose field names are `Trace` fields: the only ones the function can see. A field
    that a trace may lack and whose type here does not admit None is required: a trace without it is
    NotApplicable("missing_<field>"). `embeds` yields the texts of one row that the function will embed, so that one
    encoder call serves every evaluator of a micro-batch; `asks` does the same for `models`, after all texts are
    embedded, and `judge` for conversations with the judge, before. `encoder` returns the encoder for these parameters:
    `SHARED` (the default), a model of its own as `evaluators.encoder.model` takes it, or None to embed nothing. `lane`
    overrides the lane of the method. `combine` belongs to method `window`, see `ragtide.evaluators.parts`. An evaluator
    with an `extra` is unavailable if the modules of the extra are not installed; it imports them only when it scores.
    `off_until_set` names parameters whose defaults suit no application: until settings give one of them, the evaluator
    runs only where `enabled` names it.
    """
    required = required_fields(id, inputs)
    check_params(id, params)
    declared = check_metrics(id, metrics, Metric)

    def decorate(function: Any) -> Evaluator:
        check_function(id, function, inputs, per_record)
        return Evaluator(
            id=id,
            version=version,
            description=" ".join((function.__doc__ or "").split()),
            domain=domain,
            method=method,
            inputs=inputs,
            fields=_fields_of(inputs),
            required=required,
            params=params,
            metrics=declared,
            score=_score_each(function) if per_record else function,
            embeds=embeds,
            encoder=encoder,
            models=models,
            asks=asks,
            judge=judge,
            needs=frozenset(needs),
            tasks=tuple(tasks),
            standards=tuple(standards)
            or standards_of(domain, [field.name for field in dataclasses.fields(cast(Any, inputs))]),
            budget=budget or Budget(),
            own_lane=lane,
            combine=combine,
            extra=extra,
            off_until_set=tuple(off_until_set),
        )

    return decorate


def _score_each(function: ScoreRecord[Row, Params]) -> Score[Row, Params]:
    """Turn a function of one row into a function of a batch."""

    @functools.wraps(function)
    def score(rows: Sequence[Row], shared: Shared, params: Params) -> Iterable[Outcome]:
        return map(function, rows, repeat(shared), repeat(params))

    return score


def _fields_of(inputs: type[Any]) -> Callable[[Trace], tuple[Any, ...]]:
    """Return a function that reads the fields in one call: it runs for every evaluator and trace."""
    names = [field.name for field in dataclasses.fields(inputs)]
    if len(names) != 1:
        return attrgetter(*names) if names else lambda _: ()
    read = attrgetter(*names)
    return lambda trace: (read(trace),)
