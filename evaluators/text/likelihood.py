"""Likelihoods of texts by a language model."""

from collections.abc import Sequence

import numpy as np
from pydantic import BaseModel, Field

from ragtide.evaluators.outcome import NotApplicable
from ragtide.evaluators.spec import Ask, ModelRef, Need, Shared


class LanguageModel(BaseModel, frozen=True, extra="forbid"):
    """The language model."""

    model: str = Field(
        default="distilgpt2",
        min_length=1,
        description="Causal language model. Scores of different models do not compare.",
    )

    @property
    def ref(self) -> ModelRef:
        """The language model."""
        return ModelRef(Need.LM, self.model)


def likelihoods(model: ModelRef, asks: Sequence[Ask], shared: Shared) -> list[float] | NotApplicable:
    """Return, for each ask, the average negative log-likelihood of its tokens in nats, 0 or more."""
    losses, tokens = shared.ask(model, asks).astype(np.float64).T
    if np.isnan(losses).any():
        return NotApplicable("too_long")
    if not tokens.all():
        return NotApplicable("too_short")
    return [float(average) for average in losses / tokens]
