"""Simulate the life cycle of problems over many instants; their events stay in memory."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from ragtide.drift.checks import Check, CheckContext
from ragtide.drift.problems import (
    Clear,
    Detection,
    EventRow,
    Kind,
    Problem,
    ProblemKey,
    State,
    build_details,
    fold_events,
    problem_id,
    rule_lifecycle,
    transitions_for,
)
from ragtide.drift.settings import RuleSettings, Severity


class SimulatedProblem(NamedTuple):
    """One episode of a problem as the settings would have raised it; `openings` has each time that it opened.

    `rule` is the rule's kind, or the check. `windows` counts breaching intervals of a rule, or bad observations of a
    check. `since` is the start of the evidence. Severity and description are those of the last detection.
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


@dataclass(slots=True)
class ProblemSimulation:
    """Simulates the life cycle of one problem. Updates are left out: only the last detection is reported.

    `rule` names the check if its kind is shared. By episode: a function that makes the last detection, and their
    number.
    """

    key: ProblemKey
    kind: Kind
    settings: RuleSettings
    rule: str = ""
    last_detection: dict[int, Callable[[], Detection]] = field(default_factory=dict)
    detection_counts: dict[int, int] = field(default_factory=dict)
    events: list[EventRow] = field(default_factory=list)
    episodes: Sequence[Problem] = ()

    @property
    def is_open(self) -> bool:
        """Whether an observation that is not bad may change something."""
        return bool(self.episodes) and self.episodes[-1].state == "open"

    @property
    def is_active(self) -> bool:
        """Whether the last observation was bad."""
        return self.is_open and self.kind in self.episodes[-1].active_kinds

    def detect(self, at: int, detection: Callable[[], Detection]) -> None:
        """Apply a bad observation at that second since 1970; instants come in order of time."""
        now = datetime.fromtimestamp(at, UTC)
        if not self.is_active:
            details = build_details(self.kind, self.key, None, "", {}, self.settings, severity="info")
            self._apply(Detection(self.key, details, now, now), now)
        episode = self.episodes[-1].episode
        self.last_detection[episode] = detection
        self.detection_counts[episode] = self.detection_counts.get(episode, 0) + 1

    def clear(self, at: int) -> None:
        """Apply a good observation at that second since 1970."""
        now = datetime.fromtimestamp(at, UTC)
        if self.is_active:
            self._apply(Clear(self.key, self.kind, now), now)
        self.tick(at)

    def tick(self, at: int) -> None:
        """Resolve a problem that flapped, if it was quiet for long enough."""
        event = None
        if self.is_open:
            event = rule_lifecycle.flap_timeout_event(
                self.episodes[-1], self.settings, datetime.fromtimestamp(at, UTC), epoch=0
            )
        if event is not None:
            self.events.append(event)
            self.episodes = fold_events(self.events)

    def _apply(self, report: Detection | Clear, now: datetime) -> None:
        self.events += transitions_for([report], {problem_id(*self.key): self.events}, self.settings, 0, now)
        self.episodes = fold_events(self.events)

    def simulated_problems(self) -> Iterator[SimulatedProblem]:
        """Return the episodes, each with the message of its last detection."""
        for one in self.episodes:
            last = self.last_detection[one.episode]()
            own = [event for event in self.events if event.episode == one.episode]
            yield SimulatedProblem(
                problem_id=one.problem_id,
                episode=one.episode,
                state=one.state,
                **self.key._asdict(),
                rule=self.rule or self.kind,
                severity=last.details.severity,
                description=last.details.description,
                windows=self.detection_counts[one.episode],
                since=last.since,
                openings=[event.at for event in own if event.event in ("opened", "reopened")],
                resolved_at=one.resolved_at,
            )


def simulate(check: Check, ctx: CheckContext, first: int, until: int) -> Iterator[SimulatedProblem]:
    """Simulate a check in (first, until], seconds since 1970."""
    simulations: dict[ProblemKey, ProblemSimulation] = {}
    for at, one in check.history(ctx, first, until):
        if one.detection is not None and one.key not in simulations:
            own = ctx.rules.of(one.key.app)
            simulations[one.key] = ProblemSimulation(one.key, check.kind, own, check.rule)
        simulation = simulations.get(one.key)
        if simulation is None:
            continue
        if one.detection is not None:
            simulation.detect(at, one.detection)
        elif one.state == "good":
            simulation.clear(at)
        else:
            simulation.tick(at)
    for simulation in simulations.values():
        yield from simulation.simulated_problems()
