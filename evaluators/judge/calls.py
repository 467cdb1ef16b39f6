"""Calls of a judge, and conversations made of them. Their texts are untrusted: `fences` renders them."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol, TypeVar

from ragtide.evaluators.judge.replies import JudgeReply
from ragtide.evaluators.outcome import Failed, NotApplicable

Found = TypeVar("Found")
MOST_CALLS = 1_000  # of one conversation: beyond, the record is too long
OVER_BUDGET = NotApplicable("over_budget")  # instead of a reply: the day's money of the application is spent
THROTTLED = NotApplicable("throttled")  # instead of a reply: the application makes too many calls a minute
LEFT_OUT = frozenset({OVER_BUDGET.reason, THROTTLED.reason})  # the trace was in the sample, and limits left it out
_orders = count()


@dataclass(frozen=True, slots=True)
class Section:
    """A named text of a call, or a list of texts, numbered from `first`. The name is ours, the texts are users'."""

    name: str
    text: str | tuple[str, ...]
    first: int = 1

    @property
    def texts(self) -> tuple[str, ...]:
        """All texts."""
        return (self.text,) if isinstance(self.text, str) else self.text


@dataclass(frozen=True, slots=True)
class SearchCall:
    """A query for the search endpoint. Equal calls have equal results and are sent once."""

    query: str


@dataclass(frozen=True, slots=True)
class SearchResults:
    """What a search found, the best first: title, address and excerpt of pages. Anybody may have written them."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JudgeCall:
    """One question to the judge. Equal calls have equal replies and are sent once.

    `counts` is what the reply must cover, see `JudgeReply.fault`. `vote` tells independent repetitions apart.
    """

    prompt: str  # the folder in `prompts`
    sections: tuple[Section, ...]
    reply: type[JudgeReply]
    counts: tuple[int, ...] = ()
    vote: int = 0


Call = JudgeCall | SearchCall
Conversation = Generator[Sequence[Call], Sequence[Any], Found]


@dataclass(slots=True)
class TraceCalls:
    """The calls about one trace. They share a time limit, which starts with the first call that is sent."""

    app: str
    trace_id: str = ""  # empty: not known
    order: int = field(default_factory=lambda: next(_orders))  # earlier traces are finished first
    started_s: float | None = None
    admitted: bool | None = None  # by the limit of calls a minute; None: no call was made
    admitted_of: set[str] = field(default_factory=set)  # evaluators whose limit of records an hour admitted it


@dataclass(frozen=True, slots=True)
class Asker:
    """Whoever makes a call: tokens and costs are counted by evaluator and application."""

    evaluator: str
    trace: TraceCalls
    records_per_hour: int | None = None  # that calls may be sent about, of one application and process


# NotApplicable: the reason is one of LEFT_OUT
Answer = JudgeReply | SearchResults | Failed | NotApplicable
Done = Callable[[Answer], None]


class Judge(Protocol):
    """Answers calls, many at the same time. Thread-safe."""

    def endpoint_of(self, evaluator: str) -> str:
        """Return the name of the endpoint that the evaluator asks."""
        ...

    def submit(self, call: JudgeCall, asker: Asker, done: Done) -> None:
        """Start the call and return. `done` is called once, from any thread."""
        ...

    def search(self, call: SearchCall, asker: Asker, done: Done) -> None:
        """Start the search, likewise."""
        ...

    def flush(self, waiting: int) -> None:
        """Send calls that are gathered: no further one comes before a reply. `waiting` calls and searches have none."""
        ...

    def finish(self) -> None:
        """Say that all results are stored: what a repetition would need may be deleted when the judge is closed."""
        ...

    def close(self) -> None:
        """End all calls, which fail."""
        ...


@dataclass(frozen=True, slots=True)
class JudgeUse:
    """How an evaluator uses the judge: its prompts, which its fingerprint depends on, and its conversation.

    By its parameters: how many records of an application a process may begin in an hour (None: any number), and
    whether the conversation makes searches, so that it needs a search endpoint. `limits` names parameters that limit
    records and change no score: they are not part of the fingerprint.
    """

    prompts: tuple[str, ...]
    converse: Callable[[Any, Any, Any], Conversation[Any]]  # row, shared, params
    records_per_hour: Callable[[Any], int | None] = lambda params: None
    searches: Callable[[Any], bool] = lambda params: False
    limits: tuple[str, ...] = ()


def ask(*calls: JudgeCall) -> Conversation[list[Any]]:
    """Make these calls at the same time and return their replies, in order."""
    replies = yield calls
    return list(replies)
