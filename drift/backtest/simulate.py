"""Simulate the life cycle of one problem over many instants; its events stay in memory. Pure."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from ragtide.drift.detectors.arrays import Integers
from ragtide.drift.problems.model import EventRow, Kind, Problem, State, problem_id
from ragtide.drift.problems.report import Clear, Detection, ProblemKey, build_details, transitions_for
from ragtide.drift.problems.rule_lifecycle import flap_timeout_event
from ragtide.drift.problems.store import fold
from ragtide.drift.settings import RuleSettings, Severity


@dataclass(frozen=True, slots=True)
class CumulativeCounts:
    """Times in order, and up to each how many there were before it."""

    at: Integers
    before: Integers

    @classmethod
    def of(cls, some: Iterable[tuple[int, int]]) -> "CumulativeCounts":
        """From times, in order, with how many there were at each."""
        at, counts = np.array(list(some), np.int64).reshape(-1, 2).T
        return cls(at, np.concatenate([[0], counts.cumsum()]))

    def within(self, first: Integers, until: Integers) -> Integers:
        """In each [first, until)."""
        found: Integers = self.before[np.searchsorted(self.at, until)] - self.before[np.searchsorted(self.at, first)]
        return found


class SimulatedProblem(NamedTuple):
    """One episode of a problem as the settings would have raised it; it opened, and opened again, at `openings`.

    `rule` is the rule's kind, or the job's. `windows` is how many breached, several that were pooled as one; of what
    jobs look for, at how many looks it was so. `since` is when the trouble began. Severity and description are those
    of the last word.
    """

    problem_id: str
    episode: int
    state: State
    app: str
    environment: str
    model: str
    aspect: str
    metric: str
    segment: str
    segment_value: str
    rule: str
    severity: Severity
    description: str
    windows: int
    since: datetime
    openings: Sequence[datetime]
    resolved_at: datetime | None


Evidence = TypeVar("Evidence")


@dataclass(slots=True)
class ProblemSimulation(Generic[Evidence]):
    """The same events as the job would write; of updates none, as only the last word is ever asked for.

    `rule` names who sees it where the kind does not. By episode:
    `last` is what its last trouble rests on, `bad` at how many looks there was some.
    """

    key: ProblemKey
    kind: Kind
    settings: RuleSettings
    rule: str = ""
    last_evidence: dict[int, Evidence] = field(default_factory=dict)
    detection_counts: dict[int, int] = field(default_factory=dict)
    events: list[EventRow] = field(default_factory=list)
    episodes: Sequence[Problem] = ()

    @property
    def is_open(self) -> bool:
        """Whether a look without trouble may change something."""
        return bool(self.episodes) and self.episodes[-1].state == "open"

    @property
    def is_active(self) -> bool:
        """Whether there was trouble at the last look."""
        return self.is_open and self.kind in self.episodes[-1].holding

    def detect(self, at: int, evidence: Evidence) -> None:
        """Trouble, at that second since 1970; looks come in order of time."""
        now = datetime.fromtimestamp(at, UTC)
        if not self.is_active:
            said = build_details(self.kind, self.key, None, "", {}, self.settings, severity="info")
            self._apply(Detection(self.key, said, now, now), now)
        episode = self.episodes[-1].episode
        self.last_evidence[episode] = evidence
        self.detection_counts[episode] = self.detection_counts.get(episode, 0) + 1

    def clear(self, at: int) -> None:
        """It is over, at that second since 1970."""
        now = datetime.fromtimestamp(at, UTC)
        if self.is_active:
            self._apply(Clear(self.key, self.kind, now), now)
        self.tick(at)

    def tick(self, at: int) -> None:
        """Time alone ends what flapped."""
        event = None
        if self.is_open:
            event = flap_timeout_event(self.episodes[-1], self.settings, datetime.fromtimestamp(at, UTC), epoch=0)
        if event is not None:
            self.events.append(event)
            self.episodes = fold(self.events)

    def _apply(self, report: Detection | Clear, now: datetime) -> None:
        self.events += transitions_for([report], {problem_id(*self.key): self.events}, self.settings, 0, now)
        self.episodes = fold(self.events)

    def simulated_problems(self, detection_of: Callable[[Evidence], Detection]) -> Iterator[SimulatedProblem]:
        """Its episodes in the words of the job, which are asked for what each rests on last."""
        for one in self.episodes:
            said = detection_of(self.last_evidence[one.episode])
            own = [event for event in self.events if event.episode == one.episode]
            yield SimulatedProblem(
                problem_id=one.problem_id,
                episode=one.episode,
                state=one.state,
                **self.key._asdict(),
                rule=self.rule or self.kind,
                severity=said.details.severity,
                description=said.details.description,
                windows=self.detection_counts[one.episode],
                since=said.since,
                openings=[event.at for event in own if event.event in ("opened", "reopened")],
                resolved_at=one.resolved_at,
            )
