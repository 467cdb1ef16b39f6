"""The evaluator contract: one frozen `Evaluator` per file, made by the decorator `evaluator`."""

import dataclasses
import math
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter
from typing import Any, Literal, Protocol, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt
from pydantic import BaseModel

from ragtide.evaluators.outcome import NotApplicable, Outcome
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
    """A shared resource an evaluator cannot work without."""

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
    """One number an evaluator gives. `threshold` is the line between a good and a bad record; equal to it passes."""

    key: str
    low: float = 0.0
    high: float = 1.0
    better: Better = "higher"
    threshold: float | None = None
    primary: bool = False
    rule: RuleKind | None = None  # None: the default of domain and method, see `Evaluator.rule_of`
    optional: bool = False  # may be absent from a Scored (a cost that was not recorded)
    unit: str | None = None  # "s", "usd", "words", ...
    per: tuple[str, ...] = ()  # of a window: one series for each combination of these, e.g. ("class",)
    description: str = ""

    @property
    def bounded(self) -> bool:
        """Whether both ends of the range are finite."""
        return math.isfinite(self.low) and math.isfinite(self.high)


@dataclass(frozen=True, slots=True)
class Budget:
    """The most input an evaluator takes of one record; beyond it the outcome is NotApplicable("too_long"), counted.

    Each limit is over all its text inputs together, of regions over those expected or those predicted; None is none.
    `items` counts the members of all lists and mappings among its inputs (chunks, references, labels, ...), also of
    nested ones, but for regions.
    """

    characters: int | None = 2_000_000
    items: int | None = 10_000
    tokens: int | None = None
    sentences: int | None = None
    regions: int | None = None


@dataclass(frozen=True, slots=True)
class Extra:
    """Packages that a base install lacks: what installs them, and the modules that must then be there."""

    install: str  # as pip takes it: "ragtide[vision]"
    modules: tuple[str, ...]


class Sentence(msgspec.Struct, frozen=True, gc=False):
    """A sentence and where it stands in its text (character offsets)."""

    text: str
    start: int
    end: int


Ask = tuple[str, ...]  # what a model is asked at once: a text, or two (premise and hypothesis, prefix and tail)


@dataclass(frozen=True, slots=True)
class ModelRef:
    """A model that an evaluator asks: its kind, and its name in settings, on Hugging Face or on disk.

    An answer's columns: of NLI and classifiers the probability of each of `labels`, in that order (of a classifier
    without labels its one score, 0 to 1); of a language model the negative log-likelihood of the second text after
    the first, summed over its tokens, in nats, and how many tokens it has.
    """

    need: Need
    name: str
    labels: tuple[str, ...] = ()

    @property
    def columns(self) -> int:
        """How many numbers an answer has."""
        return 2 if self.need is Need.LM else max(1, len(self.labels))


Made = TypeVar("Made")


class Shared(Protocol):
    """Work done once per micro-batch: batched, de-duplicated, memoised by content."""

    def sentences(self, text: str) -> tuple[Sentence, ...]:
        """The text's sentences by the one shared splitter; never an empty or letterless one."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, one row per text, in order: float32 [len(texts), dimension]."""
        ...

    def ask(self, model: ModelRef, asks: Sequence[Ask]) -> Vectors:
        """The model's answers, one row per ask, in order: float32 [len(asks), model.columns].

        Long texts are read in windows, and of each label the largest probability counts. A row is NaN where the ask is
        too long for that: a text that must be read whole is not cut.
        """
        ...

    def once(self, make: Callable[[str], Made], text: str) -> Made:
        """`make(text)`, made once per micro-batch: `make` is a pure function of a module, its result is not changed."""
        ...


Row = TypeVar("Row")
Params = TypeVar("Params", bound=BaseModel)
Score = Callable[[Sequence[Row], Shared, Params], Iterable[Outcome]]
Embeds = Callable[[Row, Shared, Params], Iterable[str]]
EncoderOf = Callable[[Params], str | None]
Models = Callable[[Params], Iterable[ModelRef]]
Asks = Callable[[Row, Shared, Params], Iterable[tuple[ModelRef, Ask]]]


class NoParams(BaseModel, frozen=True, extra="forbid"):
    """For evaluators without parameters."""


@dataclass(frozen=True, slots=True)
class Evaluator:
    """A pure, synchronous scorer of micro-batches, and all that is known of it."""

    id: str
    version: int  # raised when the same input may score differently
    description: str
    domain: Domain
    method: Method
    inputs: type[Any]
    fields: Callable[[Trace], tuple[Any, ...]]  # of a trace, what `inputs` is made from
    required: tuple[str, ...]
    params: type[BaseModel]
    metrics: tuple[Metric, ...]
    score: Score[Any, Any]
    embeds: Embeds[Any, Any] | None
    encoder: EncoderOf[Any] | None
    models: Models[Any] | None
    asks: Asks[Any, Any] | None
    needs: frozenset[Need]
    tasks: tuple[str, ...]  # empty: every task
    standards: tuple[str, ...]
    budget: Budget
    own_lane: Lane | None  # None: the method's
    combine: (
        Combine | None
    )  # of method `window`: its metrics from the summed parts of a window, see `ragtide.evaluators.parts`
    extra: Extra | None  # what must be installed besides ragtide itself

    @property
    def lane(self) -> Lane:
        """Where it runs."""
        return self.own_lane or LANE_OF_METHOD[self.method]

    def rule_of(self, metric: Metric) -> RuleKind:
        """How a window of this metric is judged unless settings say otherwise (catalogue's defaults)."""
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
        """Of method `window`: the first primary metric, whose windows hold the parts that all its metrics come from."""
        return next((metric for metric in self.metrics if metric.primary), None) if self.combine else None

    def encoder_of(self, params: BaseModel) -> str | None:
        """Which encoder it embeds by with these parameters: `SHARED`, a model of its own, None for none."""
        if Need.EMBEDDING not in self.needs:
            return None
        return self.encoder(params) if self.encoder else SHARED

    def project(self, trace: Trace) -> Any | NotApplicable:
        """The evaluator's own view of a trace; NotApplicable("missing_<field>") where a required field is."""
        for name in self.required:
            if getattr(trace, name) is None:
                return NotApplicable(f"missing_{name}")
        return self.inputs(*self.fields(trace))


def evaluator(
    id: str,
    *,
    version: int,
    domain: Domain,
    method: Method,
    inputs: type[Row],
    metrics: Iterable[Metric],
    params: type[Params] = NoParams,  # type: ignore[assignment]  # mypy: not every Params is NoParams
    needs: Iterable[Need] = (),
    embeds: Embeds[Row, Params] | None = None,
    encoder: EncoderOf[Params] | None = None,
    models: Models[Params] | None = None,
    asks: Asks[Row, Params] | None = None,
    tasks: Iterable[str] = (),
    standards: Iterable[str] = (),
    budget: Budget | None = None,
    lane: Lane | None = None,
    combine: Combine | None = None,
    extra: Extra | None = None,
) -> Callable[[Score[Row, Params]], Evaluator]:
    """Turn a pure function into an `Evaluator`; the function's docstring is its description. Touches no global state.

    `inputs` is a frozen dataclass whose field names are `Trace` fields: the only ones the function can see. A field
    that a trace may lack and whose type here does not admit None is required: a trace without it is
    NotApplicable("missing_<field>"). `embeds` names the texts of one row that `score` will embed, so that one encoder
    call serves every evaluator of a micro-batch; `encoder` tells by which one with these parameters: `SHARED` (unset),
    a model of its own as evaluators.encoder.model takes it, or None where nothing is embedded. `asks` does the same for
    the `models` that its parameters name, after all texts are embedded. `lane` is given where it is not the method's:
    an evaluator that a judge would do best and that does without one. `combine` belongs to method `window`:
    `ragtide.evaluators.parts` tells what such an evaluator gives. One with an `extra` is unavailable where its modules
    are not installed: it imports them only as it scores.
    """
    hints = typing.get_type_hints(inputs)
    unknown = sorted(set(hints) - set(Trace.__struct_fields__))
    if unknown or not dataclasses.is_dataclass(inputs):
        raise TypeError(f"evaluator {id!r}: inputs must be a dataclass of Trace fields; a Trace has no {unknown}")
    of_trace = typing.get_type_hints(Trace)
    required = tuple(name for name, hint in hints.items() if _admits_none(of_trace[name]) and not _admits_none(hint))

    def made(score: Score[Row, Params]) -> Evaluator:
        return Evaluator(
            id=id,
            version=version,
            description=" ".join((score.__doc__ or "").split()),
            domain=domain,
            method=method,
            inputs=inputs,
            fields=_fields_of(inputs),
            required=required,
            params=params,
            metrics=tuple(metrics),
            score=score,
            embeds=embeds,
            encoder=encoder,
            models=models,
            asks=asks,
            needs=frozenset(needs),
            tasks=tuple(tasks),
            standards=tuple(standards) or standards_of(domain, hints),
            budget=budget or Budget(),
            own_lane=lane,
            combine=combine,
            extra=extra,
        )

    return made


def _fields_of(inputs: type[Any]) -> Callable[[Trace], tuple[Any, ...]]:
    """Reads the fields in the order of the dataclass, in one call: every evaluator does so for every trace."""
    names = [field.name for field in dataclasses.fields(inputs)]
    if len(names) != 1:
        return attrgetter(*names) if names else lambda _: ()
    read = attrgetter(*names)
    return lambda trace: (read(trace),)


def _admits_none(hint: Any) -> bool:
    return type(None) in typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else False
