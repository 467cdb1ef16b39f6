"""Simulate the life cycle of problems over many instants; their events stay in memory."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from ragtide.drift.checks.engine import Check, CheckContext
from ragtide.drift.problems.kinds import Kind
from ragtide.drift.problems.model import EventRow, Problem, State, problem_id
from ragtide.drift.problems.report import Clear, Detection, ProblemKey, build_details, transitions_for
from ragtide.drift.problems.rule_lifecycle import flap_timeout_event
from ragtide.drift.problems.store import fold
from ragtide.drift.settings import RuleSettings, Severity


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


@dataclass(slots=True)
class ProblemSimulation:
    """The same events as the job would write, without updates: only the last detection is ever asked for.

    `rule` names the check where the kind does not. By episode: what makes its last detection, and how many there were.
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
        """Whether a look without trouble may change something."""
        return bool(self.episodes) and self.episodes[-1].state == "open"

    @property
    def is_active(self) -> bool:
        """Whether there was trouble at the last look."""
        return self.is_open and self.kind in self.episodes[-1].active_kinds

    def detect(self, at: int, detection: Callable[[], Detection]) -> None:
        """Bad, at that second since 1970; instants come in order of time."""
        now = datetime.fromtimestamp(at, UTC)
        if not self.is_active:
            details = build_details(self.kind, self.key, None, "", {}, self.settings, severity="info")
            self._apply(Detection(self.key, details, now, now), now)
        episode = self.episodes[-1].episode
        self.last_detection[episode] = detection
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

    def simulated_problems(self) -> Iterator[SimulatedProblem]:
        """Its episodes, each with the message of its last detection."""
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
    """What the check would have raised in (first, until], seconds since 1970."""
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
