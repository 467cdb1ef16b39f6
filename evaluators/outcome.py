"""What an evaluator says of one trace: `Scored`, `NotApplicable` or `Failed`. "Could not tell" is never a number."""

from collections.abc import Mapping
from dataclasses import dataclass, field

MOST_EVIDENCE = 1_000  # places of one outcome that are stored: every one repeats a chunk's id


@dataclass(frozen=True, slots=True)
class Evidence:
    """Points at what a score rests on and never quotes it.

    `field` is a trace field ("answer", "question", "contexts"); `start` and `end` are character offsets in it (in the
    chunk's text where `chunk_id` is set; in the texts of `expected` one after another); `kind` is a label such as
    "email"; `score` what that place alone scored.
    """

    field: str
    start: int
    end: int
    chunk_id: str | None = None
    kind: str | None = None
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """A remark for people that becomes a problem. `kind` is a slug; `text` never quotes what users wrote."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Scored:
    """Every declared metric that is not optional, finite and inside its range.

    `categories` are labels counted per window (a language); `parts` are counts a window metric is computed from.
    """

    metrics: Mapping[str, float]
    categories: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, float] = field(default_factory=dict)
    evidence: tuple[Evidence, ...] = ()
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class NotApplicable:
    """The evaluator has nothing to say of this trace; `reason` is a slug (a column and a counter label)."""

    reason: str
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Failed:
    """The evaluator could not tell. `kind` is a slug ("crashed", "contract", ...); `detail` quotes no trace text."""

    kind: str
    detail: str


Outcome = Scored | NotApplicable | Failed
