"""Check error budgets that burn too fast to last their period, long before they are spent.

The burn rate is the share of bad records over the share that the objective allows: at 1 the budget lasts its period
exactly. It must be high in a long window, so that it matters, and in a short one, so that it still burns. Windows and
rates are those of Google's Site Reliability Workbook, chapter 5, "Multiwindow, Multi-Burn-Rate Alerts": 2 % of the
budget within 1/720 of the period (of 30 days: an hour, at 14.4 times the rate), 5 % within 1/120 (six hours, 6 times),
10 % within a tenth (three days), each with a short window of a twelfth. Windows scale with the period: over three days
of a period of three the third pair would open when the whole budget is spent. A problem clears once no pair of windows
has three quarters of its rate.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

import numpy as np

from ragtide.drift import sql
from ragtide.drift.array_types import Integers
from ragtide.drift.checks.engine import Check, CheckContext, CumulativeCounts, Observation
from ragtide.drift.problems import Detection, ProblemKey, bad_share_attributes, build_details
from ragtide.drift.rules import ROUNDING
from ragtide.drift.settings import Objective, Severity, WindowSettings
from ragtide.drift.stats import binomial_tail, calendar
from ragtide.drift.text import percent, scope_label
from ragtide.drift.windows import MetricRef, bin_bounds, count_out_of_bounds, is_out_of_bounds
from ragtide.sinks.clickhouse.database import Database

FINE_S = 6 * calendar.HOUR_S  # intervals up to this length are read from base windows
_CLEAR_FRACTION = 0.75
MIN_BAD = 5  # in the long window: with fewer a single record more or less decides
_EXAMPLES = 10


class BurnWindow(NamedTuple):
    """A pair of windows, in seconds; the budget burns too fast if both reach this rate."""

    long_s: int
    short_s: int
    rate: float
    severity: Severity


class _BudgetPart(NamedTuple):
    """A share of the budget, spent within one of `parts` parts of its period."""

    parts: int
    budget: float
    severity: Severity


_BUDGET_PARTS = (
    _BudgetPart(720, 0.02, "critical"),
    _BudgetPart(120, 0.05, "critical"),
    _BudgetPart(10, 0.1, "warning"),
)
_SHORT_WINDOW_DIVISOR = 12  # the long window over the short one


def burn_windows(period_s: int, windows: WindowSettings) -> list[BurnWindow]:
    """Return the pairs for a budget of that period, fastest first, in base windows; beyond six hours in whole hours.

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
    """Return the size of the windows that long intervals are read from."""
    return calendar.HOUR_S if calendar.HOUR_S in windows.all_sizes_s else windows.base_s


def _lookbacks(objective: Objective, pairs: Sequence[BurnWindow]) -> list[int]:
    """Return the lengths of all windows, and the objective's period; seconds, ascending."""
    return sorted({_period_s(objective), *(s for pair in pairs for s in (pair.long_s, pair.short_s))})


def _period_s(objective: Objective) -> int:
    return objective.period_days * calendar.DAY_S


class BudgetUse(NamedTuple):
    """Records of an interval, and how many are bad."""

    records: int
    bad: int

    def rate(self, objective: Objective) -> float:
        """Return the burn rate; 0 without records."""
        return self.bad / self.records / (1 - objective.target) if self.records else 0.0


def fastest_burn(
    pairs: Sequence[BurnWindow],
    use: Mapping[int, BudgetUse],
    objective: Objective,
    min_sample: int,
    fraction: float = 1.0,
) -> BurnWindow | None:
    """Return the first pair with this fraction of its rate in both windows; `use` by their lengths in seconds."""
    for burn_window in pairs:
        long, short = use[burn_window.long_s], use[burn_window.short_s]
        enough = long.records >= min_sample and long.bad >= MIN_BAD
        if enough and min(long.rate(objective), short.rate(objective)) >= fraction * burn_window.rate * (1 - ROUNDING):
            return burn_window
    return None


def within_noise(long: BudgetUse, objective: Objective, chance: float) -> bool:
    """Tell whether chance alone explains so many bad records if the budget is spent exactly within its period."""
    return chance < 1 and binomial_tail(long.bad, long.records, 1 - objective.target) > chance


class ErrorBudgets(Check):
    """An objective's error budget burns too fast in an application."""

    kind = "slo_burn"
    job = "objectives"

    def judged_until(self, ctx: CheckContext, key: ProblemKey, now: datetime) -> datetime | None:
        """Return the end of the last base window before the lane's watermark; now, if the objective is gone."""
        objective = ctx.rules.objective(key.segment_value, key.app)
        if objective is None or objective.metric != key.metric:
            return now
        until = _closed_until(ctx, objective)
        return None if until is None else calendar.utc(until)

    def observe(self, ctx: CheckContext, now: datetime) -> Iterator[Observation]:
        """Observe every objective of every application on closed windows; a lane without a watermark has no state."""
        for objective in (one for one in ctx.rules.objectives if one.enabled):
            until = _closed_until(ctx, objective)
            if until is None:
                continue
            pairs = burn_windows(_period_s(objective), ctx.windows)
            for (app, environment), use in _budget_use(ctx, objective, pairs, until).items():
                if ctx.rules.objective(objective.name, app) is objective:
                    yield _observation(ctx, _key(objective, app, environment), objective, pairs, use, until)

    def history(self, ctx: CheckContext, first: int, until: int) -> Iterator[tuple[int, Observation]]:
        """Observe at each end of a base window; records before `first` count."""
        instants = np.arange(first + ctx.windows.base_s, until + 1, ctx.windows.base_s)
        for objective in (one for one in ctx.rules.objectives if one.enabled):
            pairs = burn_windows(_period_s(objective), ctx.windows)
            for key, windows in _window_counts(ctx, objective, first, until).items():
                if ctx.rules.objective(objective.name, key.app) is not objective:
                    continue
                uses = {length: windows.use(length, instants) for length in _lookbacks(objective, pairs)}
                for nth, at in enumerate(instants.tolist()):
                    use = {length: some[nth] for length, some in uses.items()}
                    yield at, _observation(ctx, key, objective, pairs, use, at)


def _closed_until(ctx: CheckContext, objective: Objective) -> int | None:
    watermark = ctx.watermarks.get(ctx.metrics[objective.metric].evaluator.lane)
    return None if watermark is None else calendar.floor(watermark.timestamp(), ctx.windows.base_s)


def _observation(
    ctx: CheckContext,
    key: ProblemKey,
    objective: Objective,
    pairs: Sequence[BurnWindow],
    use: Mapping[int, BudgetUse],
    until: int,
) -> Observation:
    own, records = ctx.rules.of(key.app), use[_period_s(objective)].records
    burning = fastest_burn(pairs, use, objective, own.min_sample)
    if burning is not None and not within_noise(use[burning.long_s], objective, own.chance):
        return Observation(key, "bad", partial(_detection, ctx, key, objective, burning, use, until), records)
    uncleared = fastest_burn(pairs, use, objective, own.min_sample, _CLEAR_FRACTION)
    return Observation(key, "good" if uncleared is None else "unclear", None, records)


class _WindowCounts(NamedTuple):
    """Cumulative records and bad ones: of base windows, and of windows of `long_s`."""

    short: tuple[CumulativeCounts, CumulativeCounts]
    long: tuple[CumulativeCounts, CumulativeCounts]
    long_s: int

    def use(self, length: int, until: Integers) -> list[BudgetUse]:
        """Return the use in the `length` seconds before each time; long intervals as `observe` reads them."""
        if length <= FINE_S:
            records, bad = (one.within(until - length, until) for one in self.short)
        else:
            running = until // self.long_s * self.long_s
            records, bad = (
                long.within(until - length, running) + short.within(running, until)
                for long, short in zip(self.long, self.short, strict=True)
            )
        return [BudgetUse(*one) for one in zip(records.tolist(), bad.tolist(), strict=True)]


def _window_counts(ctx: CheckContext, objective: Objective, first: int, until: int) -> dict[ProblemKey, _WindowCounts]:
    base_s, long_s, metric = ctx.windows.base_s, hour_s(ctx.windows), ctx.metrics[objective.metric]
    begin = first // long_s * long_s
    app = "" if objective.app is None else f"AND app = {sql.text(objective.app)}"
    rows = ctx.database.rows(
        f"""
        SELECT app, environment, arraySort(groupArrayIf((at, n, wrong), size_s = {base_s})) AS short,
            arraySort(groupArrayIf((at, n, wrong), size_s = {long_s})) AS long
        FROM (
            SELECT app, environment, size_s, toUnixTimestamp(start) AS at, sum(scored) AS n,
                sum({count_out_of_bounds(*bin_bounds(metric.scale, *objective.bounds(metric.metric)))}) AS wrong
            FROM windows FINAL
            WHERE run_id = 'live' AND metric = {sql.text(objective.metric)} AND segment = '' {app} AND (
                (size_s = {base_s} AND start >= toDateTime({begin - FINE_S}, 'UTC')) OR
                (size_s = {long_s} AND start >= toDateTime({max(begin - _period_s(objective), 0)}, 'UTC'))
            ) AND start < toDateTime({until}, 'UTC')
            GROUP BY app, environment, size_s, at
        ) GROUP BY app, environment ORDER BY app, environment"""
    )
    return {
        _key(objective, row["app"], row["environment"]): _WindowCounts(
            _counts(row["short"]), _counts(row["long"]), long_s
        )
        for row in rows
    }


def _counts(windows: Sequence[tuple[int, int, int]]) -> tuple[CumulativeCounts, CumulativeCounts]:
    records, bad = (CumulativeCounts.of((one[0], one[nth]) for one in windows) for nth in (1, 2))
    return records, bad


def _budget_use(
    ctx: CheckContext, objective: Objective, pairs: Sequence[BurnWindow], until: int
) -> dict[tuple[str, str], dict[int, BudgetUse]]:
    """Return use by application and environment, for each window length and for the objective's period.

    Short intervals from base windows; longer ones from hourly windows, and base windows for the current hour.
    """
    base_s, long_s, metric = ctx.windows.base_s, hour_s(ctx.windows), ctx.metrics[objective.metric]
    running, recent = until // long_s * long_s, until - FINE_S
    least, greatest = objective.bounds(metric.metric)
    within = {
        length: f"size_s = {base_s} AND at >= {until - length}"
        if length <= FINE_S
        else f"(size_s = {long_s} AND at >= {until - length} AND at < {running}) "
        f"OR (size_s = {base_s} AND at >= {running})"
        for length in _lookbacks(objective, pairs)
    }
    sums = ", ".join(f"sumIf(scored, {one}) AS n{s}, sumIf(wrong, {one}) AS wrong{s}" for s, one in within.items())
    app = "" if objective.app is None else f"AND app = {sql.text(objective.app)}"
    rows = ctx.database.rows(
        f"""
        SELECT app, environment, {sums} FROM (
            SELECT app, environment, size_s, toUnixTimestamp(start) AS at, scored,
                {count_out_of_bounds(*bin_bounds(metric.scale, least, greatest))} AS wrong
            FROM windows FINAL
            WHERE run_id = 'live' AND metric = {sql.text(objective.metric)} AND segment = '' {app} AND (
                (size_s = {base_s} AND start >= toDateTime({min(recent, running)}, 'UTC')) OR
                (size_s = {long_s} AND start >= toDateTime({until - _period_s(objective)}, 'UTC'))
            ) AND start < toDateTime({until}, 'UTC')
        ) GROUP BY app, environment ORDER BY app, environment"""
    )
    return {
        (row["app"], row["environment"]): {s: BudgetUse(row[f"n{s}"], row[f"wrong{s}"]) for s in within} for row in rows
    }


def _key(objective: Objective, app: str, environment: str) -> ProblemKey:
    return ProblemKey(app, environment, "", "level", objective.metric, "objective", objective.name)


def _detection(
    ctx: CheckContext,
    key: ProblemKey,
    objective: Objective,
    burn_window: BurnWindow,
    use: Mapping[int, BudgetUse],
    until: int,
) -> Detection:
    long, period = use[burn_window.long_s], use[_period_s(objective)]
    metric = ctx.metrics[objective.metric]
    least, greatest = objective.bounds(metric.metric)
    left = 1 - period.rate(objective)
    budget = f"{percent(left)} of the budget is left" if left > 0 else "The budget is spent"
    message = (
        f"{scope_label(key.app, key.environment)}: objective {objective.name} burns its error budget at "
        f"{long.rate(objective):.3g} times the allowed rate. {long.bad} of {long.records} traces of the last "
        f"{_length(burn_window.long_s)} failed {objective.metric} (target: {objective.target * 100:g} % good over "
        f"{objective.period_days} days). {budget}."
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
    since, end = calendar.utc(until - burn_window.long_s), calendar.utc(until)
    details = build_details(
        ErrorBudgets.kind,
        key,
        metric,
        message,
        attributes,
        ctx.rules,
        severity=burn_window.severity,
        examples=_examples(ctx.database, key, objective, metric, since, end),
        rule_id=f"objective:{objective.name}",
    )
    return Detection(key, details, since, end)


def _length(seconds: int) -> str:
    if seconds >= 2 * calendar.DAY_S:
        return f"{seconds / calendar.DAY_S:.3g} days"
    return f"{seconds / calendar.HOUR_S:.3g} h" if seconds >= calendar.HOUR_S else f"{seconds / 60:.3g} min"


def _examples(
    database: Database, key: ProblemKey, objective: Objective, metric: MetricRef, since: datetime, until: datetime
) -> list[str]:
    """Return ids of bad traces of the long window, the worst first."""
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
