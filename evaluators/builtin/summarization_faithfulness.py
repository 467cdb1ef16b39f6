from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from pydantic import BaseModel, BeforeValidator, Field, model_validator

from ragtide.evaluators.models.known_models import NLI_OF_SUMMAC
from ragtide.evaluators.outcome import Evidence, NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Ask, Budget, Metric, ModelRef, Need, Sentence, Shared, Vectors, evaluator
from ragtide.evaluators.text.entailment import Pairs, nli
from ragtide.evaluators.text.summac import Convolution, zero_shot
from ragtide.evaluators.text.summac_file import read_convolution

MIN_CHARACTERS = 11  # of a sentence that counts, as in the authors' code


@dataclass(frozen=True, slots=True)
class Inputs:
    """The source text (question) and its summary (answer)."""

    question: str
    answer: str


def _read(given: Any) -> Any:
    return read_convolution(Path(given)) if isinstance(given, str) else given


class Params(BaseModel, frozen=True, extra="forbid"):
    """The NLI model, and the pairs it scores."""

    model: str = Field(
        NLI_OF_SUMMAC,
        min_length=1,
        description="NLI model. The published convolution was trained on the default.",
    )
    convolution: Annotated[Convolution | None, BeforeValidator(_read)] = Field(
        None,
        description="Weights of SummaC-Conv: path of the authors' file summac_conv_vitc_sent_perc_e.bin, or the "
        "numbers in it. If unset, there is no summac_conv.",
    )
    threshold: float = Field(
        0.5, ge=0, le=1, description="Minimum entailment probability of a faithful summary sentence."
    )
    top_k: int = Field(
        0,
        ge=0,
        description="Source sentences compared with each summary sentence, the most similar first. 0 means all.",
    )
    max_characters: int = Field(
        200_000, ge=1, description="Maximum characters of all pairs of a record. Beyond it, the record is too_long."
    )

    @model_validator(mode="after")
    def _counts_every_pair(self) -> Self:
        if self.convolution and self.top_k:
            raise ValueError("convolution needs every pair: set top_k to 0, or leave convolution unset")
        return self


@dataclass(frozen=True, slots=True)
class Comparison:
    """The sentences of source and summary, and the pairs to score."""

    source: tuple[Sentence, ...]
    summary: tuple[Sentence, ...]
    pairs: Pairs


def _compare(row: Inputs, shared: Shared, params: Params) -> Comparison | NotApplicable:
    source, summary = _sentences(row.question, shared), _sentences(row.answer, shared)
    if not summary:
        return NotApplicable("too_short")
    if not source:
        return NotApplicable("source_too_short")
    pairs = Pairs(tuple(s.text for s in summary), tuple(s.text for s in source), params.top_k)
    return (
        NotApplicable("too_long") if pairs.characters() > params.max_characters else Comparison(source, summary, pairs)
    )


def _sentences(text: str, shared: Shared) -> tuple[Sentence, ...]:
    return tuple(sentence for sentence in shared.sentences(text) if len(sentence.text) >= MIN_CHARACTERS)


def _embeds(row: Inputs, shared: Shared, params: Params) -> Iterator[str]:
    compared = _compare(row, shared, params)
    if isinstance(compared, Comparison):
        yield row.question
        yield from (sentence.text for sentence in compared.summary)
        yield from compared.pairs.embeds()


def _asks(row: Inputs, shared: Shared, params: Params) -> Iterator[tuple[ModelRef, Ask]]:
    compared = _compare(row, shared, params)
    if isinstance(compared, Comparison):
        yield from ((nli(params.model), ask) for ask in compared.pairs.asks(shared))


@evaluator(
    "summarization_faithfulness",
    version=1,
    domain="summarization",
    method="nli",
    per_record=True,
    inputs=Inputs,
    params=Params,
    metrics=[
        Metric(
            "completeness",
            threshold=0.75,
            primary=True,
            description="similarity of the source to the faithful sentences",
        ),
        Metric(
            "summac_conv",
            threshold=0.75,
            optional=True,
            description="trained convolution over histograms of entailments; absent without convolution",
        ),
        Metric("summac_zs", threshold=0.75, description="mean over the summary sentences of their highest entailment"),
    ],
    needs={Need.NLI, Need.EMBEDDING},
    embeds=_embeds,
    models=lambda params: [nli(params.model)],
    asks=_asks,
    tasks=("summarization",),
    budget=Budget(characters=200_000, sentences=2_000),
)
def summarization_faithfulness(row: Inputs, shared: Shared, params: Params) -> Outcome:
    """SummaC: whether the source (the question) entails the summary (the answer), sentence by sentence. Sentences of
    ten characters or fewer do not count, and contradictions are not subtracted. Completeness is the cosine similarity
    of the source to the mean of the summary's faithful sentences, and 0 if there are none.
    """
    compared = _compare(row, shared, params)
    if isinstance(compared, NotApplicable):
        return compared
    entailments = compared.pairs.entailments(shared, nli(params.model))
    if np.isnan(entailments).any():
        return NotApplicable("too_long")
    support = entailments.max(axis=1)
    faithful = [
        sentence.text for sentence, best in zip(compared.summary, support, strict=True) if best >= params.threshold
    ]
    metrics = {
        "completeness": _similarity(row.question, faithful, shared) if faithful else 0.0,
        "summac_zs": zero_shot(entailments),
    }
    if params.convolution:
        metrics["summac_conv"] = params.convolution.score(entailments)
    return Scored(metrics, evidence=_weakest(compared, entailments, shared))


def _similarity(source: str, faithful: Sequence[str], shared: Shared) -> float:
    """Return the cosine similarity of the source to the mean of the sentences. Negative values become 0."""
    vectors = shared.embed([source, *faithful]).astype(np.float64)
    mean = vectors[1:].mean(axis=0)
    return float((vectors[0] @ mean / max(float(np.linalg.norm(mean)), 1e-6)).clip(0.0, 1.0))


def _weakest(compared: Comparison, entailments: Vectors, shared: Shared) -> tuple[Evidence, ...]:
    number = int(entailments.max(axis=1).argmin())
    best = int(entailments[number].argmax())
    weak, source = compared.summary[number], compared.source[compared.pairs.premises_of(shared)[number, best]]
    score = float(entailments[number, best])
    return (
        Evidence("answer", weak.start, weak.end, kind="least_entailed", score=score),
        Evidence("question", source.start, source.end, kind="best_support", score=score),
    )
