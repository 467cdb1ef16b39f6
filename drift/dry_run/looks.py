"""How the problem of one place goes, look by look, by what a job sees there; its events stay in memory. Pure."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Generic, TypeVar

from drift.dry_run.would_be import WouldBe
from drift.problems.accounts import account_of
from drift.problems.events import Place
from drift.problems.folding import fold
from drift.problems.following import settled
from drift.problems.problem import EventRow, Kind, Problem, problem_id
from drift.problems.troubles import Over, Trouble, follows
from drift.settings import RuleSettings

Evidence = TypeVar("Evidence")


@dataclass(slots=True)
class Looks(Generic[Evidence]):
    """The same events as the job would write; of updates none, as only the last word is ever asked for.

    `rule` names who sees it where the kind does not. By episode:
    `last` is what its last trouble rests on, `bad` at how many looks there was some.
    """

    place: Place
    kind: Kind
    settings: RuleSettings
    rule: str = ""
    last: dict[int, Evidence] = field(default_factory=dict)
    bad: dict[int, int] = field(default_factory=dict)
    events: list[EventRow] = field(default_factory=list)
    episodes: Sequence[Problem] = ()

    @property
    def is_going(self) -> bool:
        """Whether a look without trouble may change something."""
        return bool(self.episodes) and self.episodes[-1].state == "open"

    @property
    def stands(self) -> bool:
        """Whether there was trouble at the last look."""
        return self.is_going and self.kind in self.episodes[-1].holding

    def sees(self, at: int, evidence: Evidence) -> None:
        """Trouble, at that second since 1970; looks come in order of time."""
        now = datetime.fromtimestamp(at, UTC)
        if not self.stands:
            said = account_of(self.kind, self.place, None, "", {}, self.settings, severity="low")
            self._hear(Trouble(self.place, said, now, now), now)
        episode = self.episodes[-1].episode
        self.last[episode] = evidence
        self.bad[episode] = self.bad.get(episode, 0) + 1

    def sees_none(self, at: int) -> None:
        """It is over, at that second since 1970."""
        now = datetime.fromtimestamp(at, UTC)
        if self.stands:
            self._hear(Over(self.place, self.kind, now), now)
        self.waits(at)

    def waits(self, at: int) -> None:
        """Time alone ends what flapped."""
        event = None
        if self.is_going:
            event = settled(self.episodes[-1], self.settings, datetime.fromtimestamp(at, UTC), epoch=0)
        if event is not None:
            self.events.append(event)
            self.episodes = fold(self.events)

    def _hear(self, told: Trouble | Over, now: datetime) -> None:
        self.events += follows([told], {problem_id(*self.place): self.events}, self.settings, 0, now)
        self.episodes = fold(self.events)

    def would_be(self, telling: Callable[[Evidence], Trouble]) -> Iterator[WouldBe]:
        """Its episodes in the words of the job, which are asked for what each rests on last."""
        for one in self.episodes:
            said = telling(self.last[one.episode])
            own = [event for event in self.events if event.episode == one.episode]
            yield WouldBe(
                problem_id=one.problem_id,
                episode=one.episode,
                state=one.state,
                **self.place._asdict(),
                rule=self.rule or self.kind,
                severity=said.account.severity,
                description=said.account.description,
                windows=self.bad[one.episode],
                since=said.since,
                openings=[event.at for event in own if event.event in ("opened", "reopened")],
                resolved_at=one.resolved_at,
            )
