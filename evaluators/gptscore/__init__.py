"""GPTScore (Fu et al. 2023, arXiv:2302.04166): how likely a language model finds a text after an instruction.

The instructions are files of our own, one per evaluator. Other words give other scores: every file's hash is a part of
its evaluator's fingerprint.
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
    """What a language model is told before the text that it scores; `prompt` has a {place} for each text it tells."""

    prompt: str
    instructions: Mapping[str, str]  # by metric
    hash: str  # eight hex digits

    def before(self, **texts: str) -> Mapping[str, str]:
        """What stands before the scored text, by metric."""
        return {key: self.prompt.format(instruction=words, **texts) for key, words in self.instructions.items()}


@lru_cache
def load_template(name: str) -> PromptTemplate:
    """Of the file `name`.toml."""
    read = tomllib.loads((resources.files("ragtide.evaluators.gptscore") / f"{name}.toml").read_text("utf-8"))
    canonical = json.dumps(read, sort_keys=True).encode()
    return PromptTemplate(read["prompt"], read["instructions"], hashlib.sha256(canonical).hexdigest()[:8])


class GptScoreParams(LanguageModel, frozen=True, extra="forbid"):
    """Parameters of an evaluator whose instructions are those of `family`."""

    family: ClassVar[str]

    @property
    def template(self) -> PromptTemplate:
        """The instructions."""
        return load_template(self.family)

    @computed_field  # type: ignore[prop-decorator]  # mypy knows no decorator of a property; pydantic does
    @property
    def instructions(self) -> str:
        """The hash of their wording: not to be set, but a part of the fingerprint as parameters are."""
        return self.template.hash


def metric(key: str, asked: str, primary: bool = False) -> Metric:
    """The average negative log-likelihood under the instruction `key`."""
    return Metric(key, high=math.inf, better="lower", primary=primary, description=f"nats a token, asked {asked}")


def averages(asks: Mapping[str, Ask], model: ModelRef, shared: Shared) -> Outcome:
    """Each metric as the average negative log-likelihood of what is asked for it."""
    given = likelihoods(model, list(asks.values()), shared)
    return given if isinstance(given, NotApplicable) else Scored(dict(zip(asks, given, strict=True)))


def rewriting_asks(template: PromptTemplate, answer: str, expected: Sequence[str]) -> Iterator[Ask]:
    """What `score_rewriting` will ask."""
    if answer.strip() and not pairs_too_long(answer, expected):
        for reference in references(expected):
            for forth, back in _both_ways(template, answer, reference).values():
                yield forth
                yield back


def score_rewriting(
    template: PromptTemplate, answer: str, expected: Sequence[str], model: ModelRef, shared: Shared
) -> Outcome:
    """How likely the answer is as the reference in other words and the reference as the answer in other words, the two
    averaged; of several references the likeliest by each metric counts.
    """
    if not answer.strip():
        return NotApplicable("empty_answer")
    if pairs_too_long(answer, expected):
        return NotApplicable("too_long")
    best: dict[str, float] = {}
    for reference in references(expected):
        ways = _both_ways(template, answer, reference)
        given = likelihoods(model, [ask for both in ways.values() for ask in both], shared)
        if isinstance(given, NotApplicable):
            return given
        for key, forth, back in zip(ways, given[::2], given[1::2], strict=True):
            best[key] = min(best.get(key, float("inf")), (forth + back) / 2)
    return Scored(best) if best else no_reference(expected)


def _both_ways(template: PromptTemplate, answer: str, reference: Reference) -> dict[str, tuple[Ask, Ask]]:
    forth, back = template.before(text=reference.text), template.before(text=answer)
    return {key: ((forth[key], answer), (back[key], reference.text)) for key in template.instructions}
