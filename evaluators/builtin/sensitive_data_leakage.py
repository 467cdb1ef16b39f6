from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field

from ragtide.evaluators.check_metrics import CHECK_WITH_CONTEXTS
from ragtide.evaluators.leaks import SECRETS, leaks_of, scanner
from ragtide.evaluators.leaks.leak_outcome import leak_outcome
from ragtide.evaluators.outcome import Outcome
from ragtide.evaluators.spec import Budget, Shared, evaluator
from ragtide.evaluators.trace import Chunk


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the user gets to see, and what it was made from."""

    answer: str
    contexts: tuple[Chunk, ...] | None


def _known_kind(kind: str) -> str:
    if kind not in SECRETS:
        raise ValueError(f"no such kind; valid: {', '.join(SECRETS)}")
    return kind


_Kind = Annotated[str, AfterValidator(_known_kind), Field(json_schema_extra={"enum": [*SECRETS]})]


class Params(BaseModel, frozen=True, extra="forbid"):
    """What counts as a secret, and where to look for it."""

    kinds: Literal["all"] | tuple[_Kind, ...] = Field("all", description=f"Kinds to look for: {', '.join(SECRETS)}.")
    scan_contexts: bool = Field(True, description="Look at the retrieved chunks too.")

    @property
    def wanted(self) -> frozenset[str]:
        """The kinds to look for."""
        return frozenset(SECRETS if self.kinds == "all" else self.kinds)


@evaluator(
    "sensitive_data_leakage",
    version=4,
    domain="privacy",
    method="rule",
    inputs=Inputs,
    params=Params,
    metrics=CHECK_WITH_CONTEXTS,
    budget=Budget(characters=400_000),
)
def sensitive_data_leakage(rows: Sequence[Inputs], shared: Shared, params: Params) -> Iterator[Outcome]:
    """Secrets in the answer or the contexts: private keys and certificates, API keys and tokens of some hundred
    providers, JSON web tokens, credentials in URLs and headers, passwords and keys in assignments and in prose,
    one-time codes, activation keys. Fillers (xxxx, your-key-here, user:password@) are none; examples such as
    AKIAIOSFODNN7EXAMPLE are. What was found is told by kind and position only.
    """
    kinds, scan = params.wanted, scanner()
    for row in rows:
        yield leak_outcome(
            row.answer,
            row.contexts if params.scan_contexts else None,
            lambda text: leaks_of(text, shared.once(scan, text), kinds),
        )
