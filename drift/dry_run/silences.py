"""Tries `missing_after_s` on past windows: when an application would have been told to be silent, and until when."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise

from drift.dry_run.looks import Looks
from drift.dry_run.would_be import WouldBe
from drift.kinds.habit import HOUR_S, Habit, Hours, pause_of
from drift.kinds.silence import DAY_S, HISTORY, place_of, trouble_of
from drift.problems.troubles import Trouble
from drift.settings import RuleSettings
from drift.windows.counted import counted, counters, live_windows
from evaluators.spec import Evaluator
from sinks.clickhouse.database import Database

_HISTORY_S = int(HISTORY.total_seconds())
_Sent = Sequence[tuple[int, int]]  # start of a window with traffic and its traces, in order of time


def try_silences(
    database: Database, evaluators: Mapping[str, Evaluator], rules: RuleSettings, base_s: int, first: int, until: int
) -> Iterator[WouldBe]:
    """What would have been raised in (first, until]; habits are known of the two weeks before each silence."""
    for (app, environment), sent in _sent(database, evaluators, base_s, first - _HISTORY_S, until).items():
        own = rules.of(app)
        if own.missing_after_s is None:
            continue
        looks: Looks[tuple[Habit, int]] = Looks(place_of(app, environment), "missing_data", own)
        for nth, (start, back) in enumerate(pairwise([*(at for at, _ in sent), until])):
            silent = range(max(start + base_s, first) + base_s, min(back, start + _HISTORY_S) + 1, base_s)
            if back - start - base_s < own.missing_after_s or not silent:
                continue
            habit = _habit(app, environment, _known(sent, nth), base_s, own.missing_after_s)
            broken = bisect_left(silent, True, key=partial(_is_broken, habit, own.missing_after_s))
            for at in silent[broken:]:
                looks.sees(at, (habit, at))
            over = min(back, start + _HISTORY_S) + base_s  # it is back, or given up
            if broken < len(silent) and over <= until:
                looks.sees_none(over)
        yield from looks.would_be(partial(_told, own))


def _sent(
    database: Database, evaluators: Mapping[str, Evaluator], base_s: int, since: int, until: int
) -> dict[tuple[str, str], _Sent]:
    for metrics in counters(evaluators.values()):
        rows = database.rows(
            "SELECT app, environment, arraySort(groupArray((at, traces))) AS sent FROM ("
            "SELECT app, environment, at, sum(n) AS traces "
            f"FROM ({counted(live_windows(base_s, metrics, since, until))}) GROUP BY app, environment, at"
            ") GROUP BY app, environment ORDER BY app, environment"
        )
        if rows:
            return {(row["app"], row["environment"]): row["sent"] for row in rows}
    return {}


def _known(sent: _Sent, nth: int) -> _Sent:
    """What came in the two weeks up to the window with that place."""
    return sent[bisect_left(sent, (sent[nth][0] - _HISTORY_S, 0)) : nth + 1]


def _habit(app: str, environment: str, sent: _Sent, base_s: int, after_s: float) -> Habit:
    """As the job makes it of the same windows."""
    starts = [at for at, _ in sent]
    hours = Hours.of(sorted({at // HOUR_S for at in starts}))
    pauses = [(one + base_s, other) for one, other in pairwise(starts) if other - one - base_s >= after_s / 2]
    traces = sum(traces for at, traces in sent if at + DAY_S > starts[-1])
    return Habit(app, environment, starts[-1] + base_s, traces, len(sent), hours, pause_of(hours, pauses))


def _is_broken(habit: Habit, after_s: float, at: int) -> bool:
    return habit.is_broken(at, after_s)


def _told(own: RuleSettings, evidence: tuple[Habit, int]) -> Trouble:
    habit, at = evidence
    return trouble_of(habit, own, datetime.fromtimestamp(at, UTC))
