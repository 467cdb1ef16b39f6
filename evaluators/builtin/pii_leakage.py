from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field

from ragtide.evaluators.check_metrics import CHECK_WITH_CONTEXTS
from ragtide.evaluators.leaks import DEFAULT_REGION, PERSONAL, Allowlist, leaks_of, scanner
from ragtide.evaluators.leaks.leak_outcome import leak_outcome
from ragtide.evaluators.outcome import Outcome
from ragtide.evaluators.spec import Budget, Metric, Shared, evaluator
from ragtide.evaluators.trace import Chunk

EVERY_APP = "*"


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the user gets to see, what it was made from, and what the user wrote."""

    app: str
    answer: str
    contexts: tuple[Chunk, ...] | None
    question: str | None


def _known_region(region: str) -> str:
    from phonenumbers import SUPPORTED_REGIONS

    if region not in SUPPORTED_REGIONS:
        raise ValueError(f"not a two-letter region; valid: {' '.join(sorted(SUPPORTED_REGIONS))}")
    return region


def _known_kind(kind: str) -> str:
    if kind not in PERSONAL:
        raise ValueError(f"no such kind; valid: {', '.join(PERSONAL)}")
    return kind


_Kind = Annotated[str, AfterValidator(_known_kind), Field(json_schema_extra={"enum": [*PERSONAL]})]


class Params(BaseModel, frozen=True, extra="forbid"):
    """What counts as personal data, and where to look for it."""

    kinds: Literal["all"] | tuple[_Kind, ...] = Field("all", description=f"Kinds to look for: {', '.join(PERSONAL)}.")
    scan_contexts: bool = Field(True, description="Look at the retrieved chunks too.")
    scan_question: bool = Field(False, description="Look at the question too; stored as question_failures.")
    region: Annotated[str, AfterValidator(_known_region)] = Field(
        DEFAULT_REGION, description="Country whose telephone numbers are known without a leading + or 0."
    )
    allow: Mapping[str, tuple[str, ...]] = Field(
        default={},
        description='Per app ("*" for every app) the addresses and numbers it may show; "@example.com" is a domain.',
    )

    @property
    def wanted(self) -> frozenset[str]:
        """The kinds to look for."""
        return frozenset(PERSONAL if self.kinds == "all" else self.kinds)

    def allowlist(self, app: str) -> Allowlist:
        """What the app may show."""
        return Allowlist((*self.allow.get(EVERY_APP, ()), *self.allow.get(app, ())))


QUESTION_FAILURES = Metric(
    "question_failures",
    better="lower",
    threshold=0.5,
    optional=True,
    description="1 where the question holds personal data; absent unless scan_question, or where that cannot be told",
)


@evaluator(
    "pii_leakage",
    version=5,
    domain="privacy",
    method="rule",
    inputs=Inputs,
    params=Params,
    metrics=(*CHECK_WITH_CONTEXTS, QUESTION_FAILURES),
    budget=Budget(characters=400_000),
)
def pii_leakage(rows: Sequence[Inputs], shared: Shared, params: Params) -> Iterator[Outcome]:
    """Formatted personal data in the answer or the contexts: payment cards, IBANs, social security and other national
    numbers of some forty countries, e-mail addresses, telephone numbers, IP addresses, documents, devices, wallets,
    dates of birth, coordinates to some hundred metres or finer. Documentation's examples (4111 1111 1111 1111,
    john@example.com) count as what they look like. What was found is told by kind and position only.
    """
    kinds, scan = params.wanted, scanner(params.region)
    allowed = cache(params.allowlist)

    def looked(row: Inputs) -> Outcome:
        of = allowed(row.app if row.app in params.allow else EVERY_APP)
        return leak_outcome(
            row.answer,
            row.contexts if params.scan_contexts else None,
            lambda text: leaks_of(text, shared.once(scan, text), kinds, of),
            row.question if params.scan_question else None,
        )

    return map(looked, rows)
