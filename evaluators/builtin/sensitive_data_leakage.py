from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field

from ragtide.evaluators.leaks import SECRETS, leaks_of, scanner
from ragtide.evaluators.leaks.leak_outcome import leak_outcome
from ragtide.evaluators.outcome import Outcome
from ragtide.evaluators.spec import Budget, Shared, evaluator
from ragtide.evaluators.text.pass_metrics import PASS_METRICS_WITH_CONTEXTS
from ragtide.evaluators.trace import Chunk


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer and its sources."""

    answer: str
    contexts: tuple[Chunk, ...] | None


def _known_kind(kind: str) -> str:
    if kind not in SECRETS:
        raise ValueError(f"there is no such kind; valid: {', '.join(SECRETS)}")
    return kind


_Kind = Annotated[str, AfterValidator(_known_kind), Field(json_schema_extra={"enum": [*SECRETS]})]


class Params(BaseModel, frozen=True, extra="forbid"):
    """Kinds of secrets, and where to search for them."""

    kinds: Literal["all"] | tuple[_Kind, ...] = Field(
        "all", description=f"Kinds of secrets to find: {', '.join(SECRETS)}."
    )
    scan_contexts: bool = Field(True, description="Also search the retrieved chunks.")

    @property
    def wanted(self) -> frozenset[str]:
        """The kinds to find."""
        return frozenset(SECRETS if self.kinds == "all" else self.kinds)


@evaluator(
    "sensitive_data_leakage",
    version=5,
    domain="privacy",
    method="rule",
    inputs=Inputs,
    params=Params,
    metrics=PASS_METRICS_WITH_CONTEXTS,
    budget=Budget(characters=400_000),
)
def sensitive_data_leakage(rows: Sequence[Inputs], shared: Shared, params: Params) -> Iterator[Outcome]:
    """Secrets in the answer or the contexts: private keys and certificates, API keys and tokens of about a hundred
    providers, JSON web tokens, credentials in URLs and headers, passwords and keys in assignments and in prose,
    one-time codes and activation keys. Placeholders (xxxx, your-key-here, user:password@) do not count; examples such
    as AKIAIOSFODNN7EXAMPLE do. Findings give kind and position only.
    """
    kinds, scan = params.wanted, scanner()
    for row in rows:
        yield leak_outcome(
            row.answer,
            row.contexts if params.scan_contexts else None,
            lambda text: leaks_of(text, shared.once(scan, text), kinds),
        )
