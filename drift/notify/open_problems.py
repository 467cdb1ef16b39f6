"""Follow the open problems, and make the alert of each that people must hear of.

Only problems with new events are read again: of 10,000 open ones a few dozen change between two looks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from ragtide.drift.notify.alert import Alert, AlertContext, alert_of
from ragtide.drift.problems import (
    LONGEST_EXPECTED,
    UNRESOLVED,
    EpisodeKey,
    Groups,
    Problem,
    group,
    load_problems,
    speaks_for,
)
from ragtide.sinks.clickhouse.database import Database

_KNOWN_FOR = LONGEST_EXPECTED  # after its end: symptoms outlast their parent, and its alert ends with its last words
_OVERLAP = timedelta(minutes=1)  # an insert may be seen after one that is younger
_REGROUP_EVERY = timedelta(minutes=5)  # a symptom that outlasts its parent stands alone after a while


@dataclass(frozen=True, slots=True)
class WantedAlerts:
    """Alerts that should fire now, and those of resolved problems; all by problem id.

    `explained`: the problem is a symptom, and its parent says enough. Its alert goes on if it fires already, so that
    its end is reported when it ends; it does not begin.
    """

    firing: Mapping[str, Alert] = field(default_factory=dict)
    explained: Mapping[str, Alert] = field(default_factory=dict)
    resolved: Mapping[str, Problem] = field(default_factory=dict)


class OpenProblems:
    """The open problems, as of the last look."""

    def __init__(self, database: Database, context: AlertContext) -> None:
        self._database = database
        self._context = context
        self._problems: dict[str, Problem] = {}
        self._alerts: dict[str, tuple[Problem, tuple[EpisodeKey, ...], Alert]] = {}  # made of problem and symptoms
        self._seen: tuple[datetime, int] | None = None  # newest event, number of rows
        self._recent: dict[str, tuple[datetime, int]] = {}  # newest event and number of events, of the last minute
        self._groups = Groups({}, {})
        self._regroup_at: datetime | None = None
        self._is_regrouping_due = True
        self._wanted = WantedAlerts()

    def look(self, now: datetime) -> WantedAlerts:
        """Return what should fire at `now`, the server's time. Raises `Transient` if the database is down."""
        changed = self._read(now)
        self._is_regrouping_due |= self._regroup_at is None or now >= self._regroup_at
        if self._is_regrouping_due:
            self._regroup(now)
        elif not changed:
            return self._wanted
        self._wanted = self._decide(now)
        return self._wanted

    def alert(self, problem: Problem) -> Alert:
        """Make the alert of a problem as it is now, without symptoms."""
        return alert_of(problem, self._context)

    def _read(self, now: datetime) -> bool:
        """Read problems with new events; false if nothing changed."""
        [row] = self._database.rows("SELECT max(recorded_at) AS newest, count() AS n FROM problem_events")
        seen = (row["newest"], row["n"])
        if seen == self._seen:
            return False
        recent = {} if self._seen is None else self._events_since(self._seen[0] - _OVERLAP)
        if ids := self._all(now) if self._seen is None else self._changed(recent):
            found = {one.problem_id: one for one in load_problems(self._database, ids=ids)}
            self._is_regrouping_due |= any(
                _place_in_group(self._problems.get(problem_id)) != _place_in_group(found.get(problem_id))
                for problem_id in ids
            )
            for problem_id in ids:
                self._problems.pop(problem_id, None)  # one that was withdrawn is pending, or gone
            self._problems |= found
        self._seen, self._recent = seen, recent
        return True

    def _all(self, now: datetime) -> set[str]:
        """Ids of problems that are open, or resolved not long ago."""
        rows = self._database.rows(
            f"SELECT DISTINCT problem_id FROM problem_events FINAL WHERE {UNRESOLVED} "
            "OR (event = 'resolved' AND at >= {since:DateTime64(3, 'UTC')})",
            {"since": now - _KNOWN_FOR},
        )
        return {row["problem_id"] for row in rows}

    def _events_since(self, since: datetime) -> dict[str, tuple[datetime, int]]:
        """Newest event and number of events, by problem id."""
        rows = self._database.rows(
            "SELECT problem_id, max(recorded_at) AS newest, count() AS n FROM problem_events "
            "WHERE recorded_at >= {since:DateTime64(3, 'UTC')} GROUP BY problem_id",
            {"since": since},
        )
        return {row["problem_id"]: (row["newest"], row["n"]) for row in rows}

    def _changed(self, recent: Mapping[str, tuple[datetime, int]]) -> set[str]:
        """Ids of problems with events that the last look had not seen."""
        before = self._recent
        return {
            problem_id
            for problem_id, (newest, n) in recent.items()
            if problem_id not in before or newest > before[problem_id][0] or n > before[problem_id][1]
        }

    def _regroup(self, now: datetime) -> None:
        for problem_id, one in list(self._problems.items()):
            if one.resolved_at is not None and one.resolved_at < now - _KNOWN_FOR:
                del self._problems[problem_id]
        self._groups = group(list(self._problems.values()), now)
        ends = [one.muted_until for one in self._problems.values() if one.muted_until and one.is_muted(now)]
        self._regroup_at = min([now + _REGROUP_EVERY, *ends])
        self._is_regrouping_due = False

    def _decide(self, now: datetime) -> WantedAlerts:
        groups = self._groups
        firing: dict[str, Alert] = {}
        explained: dict[str, Alert] = {}
        resolved: dict[str, Problem] = {}
        made: dict[str, tuple[Problem, tuple[EpisodeKey, ...], Alert]] = {}
        for problem_id, one in self._problems.items():
            if one.state == "resolved":
                resolved[problem_id] = one
            if one.state != "open" or one.is_muted(now):
                continue
            parent = groups.parent(one)
            symptoms = [each for each in groups.symptoms_of(one) if each.state == "open"]
            made[problem_id] = self._made(one, symptoms)
            says_enough = parent is not None and speaks_for(parent, one)
            (explained if says_enough else firing)[problem_id] = made[problem_id][2]
        self._alerts = made
        return WantedAlerts(firing, explained, resolved)

    def _made(self, problem: Problem, symptoms: Sequence[Problem]) -> tuple[Problem, tuple[EpisodeKey, ...], Alert]:
        keys = tuple(EpisodeKey.of(one) for one in symptoms)
        known = self._alerts.get(problem.problem_id)
        if known is not None and known[0] is problem and known[1] == keys:
            return known
        return problem, keys, alert_of(problem, self._context, symptoms)


def _place_in_group(problem: Problem | None) -> tuple[object, ...] | None:
    """What groups follow from; an update of its figures changes none."""
    if problem is None:
        return None
    return problem.episode, problem.state, problem.severity, problem.openings, problem.muted_by, problem.muted_until
