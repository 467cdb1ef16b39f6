"""The outcome of one trace: `Scored`, `NotApplicable` or `Failed`. "Could not tell" is never a number."""

from collections.abc import Mapping
from dataclasses import dataclass, field

MOST_EVIDENCE = 1_000  # stored per outcome: each repeats a chunk's id
LONGEST_EXPLANATION = 4_000  # characters


@dataclass(frozen=True, slots=True)
class Evidence:
    """Points at the text behind a score, and never quotes it.

    `field` is a trace field ("answer", "question", "contexts"). `start` and `end` are character offsets in it: in the
    text of the chunk if `chunk_id` is set, in the concatenated texts of `expected`. `kind` is a label such as "email".
    `score` is the score of this place alone.
    """

    field: str
    start: int
    end: int
    chunk_id: str | None = None
    kind: str | None = None
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """A remark for people that becomes a problem. `kind` is a slug. `text` never quotes users."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Scored:
    """Has every declared metric that is not optional, finite and in its range.

    `categories` are labels that windows count, such as a language. `parts` are counts for window metrics. `explanation`
    says why, in the words of a judge, for evaluators that ask one. It may quote users, and is stored like their texts.
    """

    metrics: Mapping[str, float]
    categories: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, float] = field(default_factory=dict)
    evidence: tuple[Evidence, ...] = ()
    findings: tuple[Finding, ...] = ()
    explanation: str = ""


@dataclass(frozen=True, slots=True)
class NotApplicable:
    """The evaluator does not apply to this trace. `reason` is a slug (a column and a counter label)."""

    reason: str
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Failed:
    """The evaluator could not tell. `kind` is a slug ("crashed", "contract", ...). `detail` never quotes the trace."""

    kind: str
    detail: str


Outcome = Scored | NotApplicable | Failed
