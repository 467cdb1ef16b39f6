"""GPTScore (Fu et al. 2023, arXiv:2302.04166): how likely a language model finds a text after an instruction.

Each evaluator has a file of instructions of our own. Other instructions give other scores, so the hash of the file is
part of the fingerprint.
"""

import hashlib
import json
import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from importlib import resources
from typing import ClassVar, NamedTuple

from pydantic import computed_field

from ragtide.evaluators.outcome import NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Ask, Metric, ModelRef, Shared
from ragtide.evaluators.text.likelihood import LanguageModel, likelihoods
from ragtide.evaluators.text.references import Reference, no_reference, pairs_too_long, references


class PromptTemplate(NamedTuple):
    """The prompt before the scored text, with a {place} for each text, and an instruction for each metric."""

    prompt: str
    instructions: Mapping[str, str]  # by metric
    hash: str  # eight hex digits

    def before(self, **texts: str) -> Mapping[str, str]:
        """Return the prompts, by metric."""
        return {key: self.prompt.format(instruction=words, **texts) for key, words in self.instructions.items()}


@lru_cache
def load_template(name: str) -> PromptTemplate:
    """Load `name`.toml."""
    read = tomllib.loads((resources.files("ragtide.evaluators.gptscore") / f"{name}.toml").read_text("utf-8"))
    canonical = json.dumps(read, sort_keys=True).encode()
    return PromptTemplate(read["prompt"], read["instructions"], hashlib.sha256(canonical).hexdigest()[:8])


class GptScoreParams(LanguageModel, frozen=True, extra="forbid"):
    """Parameters of an evaluator with the instructions of `family`."""

    family: ClassVar[str]

    @property
    def template(self) -> PromptTemplate:
        """The prompt template."""
        return load_template(self.family)

    @computed_field  # type: ignore[prop-decorator]  # mypy knows no decorator of a property; pydantic does
    @property
    def instructions(self) -> str:
        """Hash of the template: not a setting, but part of the fingerprint, like parameters."""
        return self.template.hash


def metric(key: str, asked: str, primary: bool = False) -> Metric:
    """Declare the average negative log-likelihood under the instruction `key`."""
    return Metric(key, high=math.inf, better="lower", primary=primary, description=f"nats per token, asked {asked}")


def averages(asks: Mapping[str, Ask], model: ModelRef, shared: Shared) -> Outcome:
    """Score each metric as the average negative log-likelihood of its ask."""
    given = likelihoods(model, list(asks.values()), shared)
    return given if isinstance(given, NotApplicable) else Scored(dict(zip(asks, given, strict=True)))


def rewriting_asks(params: GptScoreParams, answer: str, expected: Sequence[str]) -> Iterator[tuple[ModelRef, Ask]]:
    """Yield what `score_rewriting` will ask."""
    if answer.strip() and not pairs_too_long(answer, expected):
        for reference in references(expected):
            for both in _both_directions(params.template, answer, reference).values():
                yield from ((params.ref, ask) for ask in both)


def score_rewriting(params: GptScoreParams, answer: str, expected: Sequence[str], shared: Shared) -> Outcome:
    """Score how likely the answer is a rewording of the reference, and the reference one of the answer, on average.

    Each metric uses its most likely reference.
    """
    if not answer.strip():
        return NotApplicable("empty_answer")
    if pairs_too_long(answer, expected):
        return NotApplicable("too_long")
    best: dict[str, float] = {}
    for reference in references(expected):
        ways = _both_directions(params.template, answer, reference)
        given = likelihoods(params.ref, [ask for both in ways.values() for ask in both], shared)
        if isinstance(given, NotApplicable):
            return given
        for key, forth, back in zip(ways, given[::2], given[1::2], strict=True):
            best[key] = min(best.get(key, float("inf")), (forth + back) / 2)
    return Scored(best) if best else no_reference(expected)


def _both_directions(template: PromptTemplate, answer: str, reference: Reference) -> dict[str, tuple[Ask, Ask]]:
    forth, back = template.before(text=reference.text), template.before(text=answer)
    return {key: ((forth[key], answer), (back[key], reference.text)) for key in template.instructions}
