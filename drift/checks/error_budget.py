"""An objective whose error budget burns so fast that it will not last is a problem, long before it is spent.

The burn rate is the share of bad records over the share that the objective allows: at 1 the budget lasts its period
exactly. It must be high in a long window, so that it matters, and in a short one, so that it still goes on. Windows and
rates are those of Google's Site Reliability Workbook, chapter 5, "Multiwindow, Multi-Burn-Rate Alerts": 2 % of the
budget within 1/720 of the period (of 30 days: an hour, at 14.4 times the rate), 5 % within 1/120 (six hours, 6 times),
10 % within a tenth (three days), each with a short window of a twelfth. Windows go with the period: over three days of
a period of three the third pair would speak when the whole budget is spent. It is over once no pair of windows has
three quarters of its rate.
"""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from ragtide.drift import sql
from ragtide.drift.leadership import Term
from ragtide.drift.problems.model import Kind
from ragtide.drift.problems.report import (
    CheckResult,
    Clear,
    Detection,
    ProblemKey,
    bad_share_attributes,
    build_details,
    open_detections,
    report,
)
from ragtide.drift.rules.kinds import ROUNDING
from ragtide.drift.settings import Objective, RuleSettings, Severity, WindowSettings
from ragtide.drift.stats.significance import binomial_tail
from ragtide.drift.text import percent, scope_label
from ragtide.drift.windows.histogram import bin_bounds, count_out_of_bounds, is_out_of_bounds
from ragtide.drift.windows.metrics import MetricRef
from ragtide.drift.windows.watermark import Watermark, lane_watermarks, read_stored
from ragtide.sinks.clickhouse.database import Database

_KIND: Kind = "slo_burn"
_HOUR_S, DAY_S = 3600, 86400
FINE_S = 6 * _HOUR_S  # so much is read from base windows
CLEAR_FRACTION = 0.75
_MIN_BAD = 5  # in the long window: with fewer a single record more or less decides
_EXAMPLES = 10


class BurnWindow(NamedTuple):
    """Burns where both windows burn at this rate; seconds."""

    long_s: int
    short_s: int
    rate: float
    severity: Severity


class _BudgetPart(NamedTuple):
    """So great a share of the budget, spent within one of so many parts of its period."""

    parts: int
    budget: float
    severity: Severity


_BUDGET_PARTS = (
    _BudgetPart(720, 0.02, "critical"),
    _BudgetPart(120, 0.05, "critical"),
    _BudgetPart(10, 0.1, "warning"),
)
_SHORT_WINDOW_DIVISOR = 12  # times than the long window is the short one


def burn_windows(period_s: int, windows: WindowSettings) -> list[BurnWindow]:
    """The pairs for a budget of that period, the fastest first: in whole base windows, beyond six hours in whole hours.

    A window that was rounded up has the rate at which it spends the same share of the budget, at least 1.
    """
    found = []
    for part in _BUDGET_PARTS:
        long_s = _rounded_up(period_s / part.parts, windows)
        short_s = _rounded_up(period_s / part.parts / _SHORT_WINDOW_DIVISOR, windows)
        found.append(BurnWindow(long_s, short_s, max(part.budget * period_s / long_s, 1.0), part.severity))
    return found


def _rounded_up(seconds: float, windows: WindowSettings) -> int:
    unit_s = windows.base_s if seconds <= FINE_S else hour_s(windows)
    return math.ceil(seconds / unit_s) * unit_s


def hour_s(windows: WindowSettings) -> int:
    """The size of the windows that long times are read from."""
    return _HOUR_S if _HOUR_S in windows.all_sizes_s else windows.base_s


def lookbacks(objective: Objective, pairs: Sequence[BurnWindow]) -> list[int]:
    """The times that it is to be known of what was spent, the objective's period among them; seconds, ascending."""
    return sorted(
        {
            objective.period_days * DAY_S,
            *(s for burn_window in pairs for s in (burn_window.long_s, burn_window.short_s)),
        }
    )


class BudgetUse(NamedTuple):
    """Records of a time, and those of them that were bad."""

    records: int
    bad: int

    def rate(self, objective: Objective) -> float:
        """How fast the budget burns; 0 where there are no records."""
        return self.bad / self.records / (1 - objective.target) if self.records else 0.0


def fastest_burn(
    pairs: Sequence[BurnWindow],
    use: Mapping[int, BudgetUse],
    objective: Objective,
    min_sample: int,
    fraction: float = 1.0,
) -> BurnWindow | None:
    """The first pair that has this part of its rate in both windows; `use` by their lengths in seconds."""
    for burn_window in pairs:
        long, short = use[burn_window.long_s], use[burn_window.short_s]
        enough = long.records >= min_sample and long.bad >= _MIN_BAD
        if enough and min(long.rate(objective), short.rate(objective)) >= fraction * burn_window.rate * (1 - ROUNDING):
            return burn_window
    return None


def within_noise(long: BudgetUse, objective: Objective, chance: float) -> bool:
    """Whether an application that spends its budget in its period exactly has so many bad records now and then."""
    return chance < 1 and binomial_tail(long.bad, long.records, 1 - objective.target) > chance


def check_error_budgets(
    database: Database,
    metrics: Mapping[str, MetricRef],
    rules: RuleSettings,
    windows: WindowSettings,
    term: Term,
    now: datetime,
) -> CheckResult:
    """What closed windows say of every objective is told when this returns; `now` is the server's time.

    Up to the watermark of the metric's lane; a lane without one says nothing.
    """
    closed = lane_watermarks({key: Watermark(at, False) for key, at in read_stored(database).items()})
    before = set(open_detections(database, _KIND))
    reports: list[Detection | Clear] = []
    read = 0
    for objective in rules.objectives:
        metric = metrics[objective.metric]
        own = {
            place
            for place in before
            if (place.metric, place.segment_value) == (objective.metric, objective.name)
            and rules.objective(objective.name, place.app) is objective
        }
        before -= own
        if metric.evaluator.lane not in closed or not objective.enabled:
            continue
        until = int(closed[metric.evaluator.lane].at.timestamp()) // windows.base_s * windows.base_s
        pairs = burn_windows(objective.period_days * DAY_S, windows)
        for (app, environment), use in _budget_use(database, objective, metric, windows, pairs, until).items():
            if rules.objective(objective.name, app) is not objective:
                continue
            read += use[objective.period_days * DAY_S].records
            place = key_of_objective(objective, app, environment)
            least = rules.of(app).min_sample
            burn_window = fastest_burn(pairs, use, objective, least)
            if burn_window is not None and not within_noise(use[burn_window.long_s], objective, rules.of(app).chance):
                reports.append(detection_of(database, place, objective, metric, burn_window, use, rules, until))
            if fastest_burn(pairs, use, objective, least, CLEAR_FRACTION):
                own.discard(place)
        reports += [Clear(place, _KIND, datetime.fromtimestamp(until, UTC)) for place in sorted(own)]
    reports += [Clear(place, _KIND, now) for place in sorted(before)]  # of objectives that nobody has any more
    return CheckResult(read, report(database, reports, rules, term, now))


def _budget_use(
    database: Database,
    objective: Objective,
    metric: MetricRef,
    windows: WindowSettings,
    pairs: Sequence[BurnWindow],
    until: int,
) -> dict[tuple[str, str], dict[int, BudgetUse]]:
    """By application and environment, for each length of window and for the objective's period.

    Base windows for what is short; for what is longer windows of an hour, and base windows for the hour that runs.
    """
    long_s = hour_s(windows)
    running, recent = until // long_s * long_s, until - FINE_S
    least, greatest = objective.bounds(metric.metric)
    period = objective.period_days * DAY_S
    within = {
        length: f"size_s = {windows.base_s} AND at >= {until - length}"
        if length <= FINE_S
        else f"(size_s = {long_s} AND at >= {until - length} AND at < {running}) "
        f"OR (size_s = {windows.base_s} AND at >= {running})"
        for length in lookbacks(objective, pairs)
    }
    sums = ", ".join(f"sumIf(scored, {one}) AS n{s}, sumIf(wrong, {one}) AS wrong{s}" for s, one in within.items())
    app = "" if objective.app is None else f"AND app = {sql.text(objective.app)}"
    rows = database.rows(
        f"""
        SELECT app, environment, {sums} FROM (
            SELECT app, environment, size_s, toUnixTimestamp(start) AS at, scored,
                {count_out_of_bounds(*bin_bounds(metric.scale, least, greatest))} AS wrong
            FROM windows FINAL
            WHERE run_id = 'live' AND metric = {sql.text(objective.metric)} AND segment = '' {app} AND (
                (size_s = {windows.base_s} AND start >= toDateTime({min(recent, running)}, 'UTC')) OR
                (size_s = {long_s} AND start >= toDateTime({until - period}, 'UTC'))
            ) AND start < toDateTime({until}, 'UTC')
        ) GROUP BY app, environment ORDER BY app, environment"""
    )
    return {
        (row["app"], row["environment"]): {s: BudgetUse(row[f"n{s}"], row[f"wrong{s}"]) for s in within} for row in rows
    }


def key_of_objective(objective: Objective, app: str, environment: str) -> ProblemKey:
    """Where an application's problem with it is."""
    return ProblemKey(app, environment, "", "level", objective.metric, "objective", objective.name)


def detection_of(
    database: Database,
    key: ProblemKey,
    objective: Objective,
    metric: MetricRef,
    burn_window: BurnWindow,
    use: Mapping[int, BudgetUse],
    rules: RuleSettings,
    until: int,
) -> Detection:
    """What is said of a budget that burns, by what was spent of it `until` then."""
    long, period = use[burn_window.long_s], use[objective.period_days * DAY_S]
    least, greatest = objective.bounds(metric.metric)
    left = 1 - period.rate(objective)
    budget = f"{percent(left)} of the budget is left" if left > 0 else "the budget is spent"
    message = (
        f"{scope_label(key.app, key.environment)}: objective {objective.name} ({objective.target * 100:g} % of the "
        f"traces good by {objective.metric} over {objective.period_days} days) burns {long.rate(objective):.3g} "
        f"times as fast as it may: {long.bad} of {long.records} traces of the last {_length(burn_window.long_s)} are "
        f"bad; {budget}."
    )
    attributes = {
        "objective": objective.name,
        "target": objective.target,
        "period_days": objective.period_days,
        "min": least,
        "max": greatest,
        **bad_share_attributes(long.bad, long.records, 1 - objective.target),
        "burn_rate": long.rate(objective),
        "burn_rate_limit": burn_window.rate,
        "long_window_s": burn_window.long_s,
        "short_window_s": burn_window.short_s,
        "budget_left": left,
    }
    since, end = (datetime.fromtimestamp(at, UTC) for at in (until - burn_window.long_s, until))
    details = build_details(
        _KIND,
        key,
        metric,
        message,
        attributes,
        rules,
        severity=burn_window.severity,
        examples=_examples(database, key, objective, metric, since, end),
        rule_id=f"objective:{objective.name}",
    )
    return Detection(key, details, since, end)


def _length(seconds: int) -> str:
    if seconds >= 2 * DAY_S:
        return f"{seconds / DAY_S:.3g} days"
    return f"{seconds / _HOUR_S:.3g} h" if seconds >= _HOUR_S else f"{seconds / 60:.3g} min"


def _examples(
    database: Database, key: ProblemKey, objective: Objective, metric: MetricRef, since: datetime, until: datetime
) -> list[str]:
    """Bad traces of the long window, the worst first."""
    least, greatest = objective.bounds(metric.metric)
    value = f"metrics[{sql.text(metric.metric.key)}]"
    far = [f"{least!r} - {value}"] if least is not None else []
    far += [f"{value} - {greatest!r}"] if greatest is not None else []
    rows = database.rows(
        "SELECT trace_id FROM scores FINAL WHERE run_id = 'live' AND app = {app:String} "
        "AND environment = {environment:String} AND evaluator = {evaluator:String} AND status = 'scored' "
        f"AND mapContains(metrics, {sql.text(metric.metric.key)}) "
        "AND time >= {since:DateTime64(3, 'UTC')} AND time < {until:DateTime64(3, 'UTC')} "
        f"AND {is_out_of_bounds(value, metric.scale, least, greatest)} "
        f"ORDER BY arrayMax([{', '.join(far)}]) DESC, time DESC, trace_id LIMIT {_EXAMPLES}",
        {
            "app": key.app,
            "environment": key.environment,
            "evaluator": metric.evaluator.id,
            "since": since,
            "until": until,
        },
    )
    return [row["trace_id"] for row in rows]
