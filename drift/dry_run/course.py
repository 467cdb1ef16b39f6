"""How the problem of one rule and series goes, moment by moment; its events and episodes stay in memory. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from drift.dry_run.line import Line
from drift.problems.accounts import account_of
from drift.problems.events import Account
from drift.problems.facts import Judged
from drift.problems.fingerprints import Begun
from drift.problems.folding import fold
from drift.problems.following import ended, enough, following, place_at, settled
from drift.problems.lifecycle import Step, disappeared, kind_of, told_until
from drift.problems.problem import EventRow, Problem
from drift.rules.series import Rule, Series, Verdict
from drift.settings import RuleSettings


class Told(NamedTuple):
    """What an event of an episode rests on: the bad verdicts, since when they count, and what all since then say."""

    stretch: tuple[Verdict, ...]
    since: datetime
    judged: Judged


@dataclass(slots=True)
class Course:
    """The same events as the jobs would write, at the moments at which windows end.

    By episode: `told` is the last that was said of it, `windows` how many stretches of windows breached since it began.
    """

    series: Series
    rule: Rule
    settings: RuleSettings
    episodes: Sequence[Problem] = ()
    told: dict[int, Told] = field(default_factory=dict)
    windows: dict[int, int] = field(default_factory=dict)
    events: list[EventRow] = field(default_factory=list)
    _lines: dict[str, Line] = field(default_factory=dict)
    _since: datetime | None = None

    @property
    def is_going(self) -> bool:
        """Whether time alone may change something."""
        return bool(self.episodes) and self.episodes[-1].state in ("pending", "open")

    def close(self, at: datetime, verdicts: Sequence[Verdict]) -> None:
        """At that moment windows ended that were judged so.

        Moments come in order; those without any verdict matter only while it `is_going`.
        """
        for verdict in verdicts:
            if verdict.samples >= self.rule.min_sample:
                self._line(verdict).add(verdict)
        if not self._lines or not (self.is_going or any(verdict.breached for verdict in verdicts)):
            return  # good windows change nothing where there is no trouble
        remembered = {
            Begun(line.first.timestamp(), name): last for name, line in self._lines.items() if (last := line.last(at))
        }
        event = following(
            self.series, self.rule, remembered, self.episodes, self.settings, at, at, self._account, epoch=0
        )
        if event is None and self.is_going:
            event = settled(self.episodes[-1], self.settings, at, epoch=0)
        if event is not None:
            self._hear(event)
        if self.is_going:
            episode = self.episodes[-1].episode
            self.windows[episode] = self._lines[self.told[episode].stretch[-1].fingerprint].breached

    @property
    def told_until(self) -> datetime:
        """The end of what was said last of the problem that is going on."""
        return told_until(self.episodes[-1].voices[kind_of(self.rule)])

    def give_up(self, at: datetime) -> None:
        """At that moment nothing had come of the series for so long that its problem, which is going on, is over."""
        problem, kind = self.episodes[-1], kind_of(self.rule)
        step = disappeared(kind, problem, self.settings.of(self.series.app), at, at)
        event = settled(problem, self.settings, at, epoch=0) if step is None else ended(problem, kind, step, epoch=0)
        if event is not None:
            self._hear(event)

    def _line(self, verdict: Verdict) -> Line:
        if verdict.fingerprint not in self._lines:
            self._lines[verdict.fingerprint] = Line(enough([self.rule]), verdict.start, self._since)
        return self._lines[verdict.fingerprint]

    def _account(self, series: Series, rule: Rule, step: Step) -> Account:
        """Only what the life cycle asks for; descriptions are made once, at the end."""
        self._since = step.since
        for line in self._lines.values():
            line.count_from(step.since)
        self.told[step.turn.episode] = Told(step.bad, step.since, self._lines[step.bad[-1].fingerprint].judged())
        span = {"since": step.since.isoformat(), "until": step.until.isoformat(), "revision": step.bad[-1].revision}
        place = place_at(series, rule)
        return account_of(kind_of(rule), place, rule.watched, "", span, self.settings, rule_id=rule.rule_id)

    def _hear(self, event: EventRow) -> None:
        """An update takes the place of the one before: only the last one is ever asked for."""
        if event.event == "updated" and self.events[-1].event == "updated":
            self.events.pop()
        self.events.append(event)
        if event.event == "withdrawn":
            self.events = [one for one in self.events if one.episode != event.episode]
        self.episodes = fold(self.events)
