"""Find the model and the application that are fastest, slowest, cheapest and most expensive.

By successful answer: the application did not fail and the answer is not blank. The costs of the others are part of what
an answer costs; how long they took is not counted. Each interval holds with all the others at 95 % together
(`confidence_of_each`), so the ratio of the ends of the two extremes is an interval of their ratio."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from ragtide.drift.insights.model import Insight, Period
from ragtide.drift.stats.proportions import CONFIDENCE, Interval, z_score
from ragtide.drift.stats.sampling import in_sample
from ragtide.drift.text import number, scope_label
from ragtide.drift.windows.histogram import LOG_ORIGIN, LOG_STEP
from ragtide.sinks.clickhouse.database import Database

MIN_RATIO = 1.1  # times as great: what is nobody's business


class Estimate(NamedTuple):
    """A positive number of `n` records, and its interval."""

    name: str
    n: int
    value: float
    interval: Interval


@dataclass(frozen=True, slots=True)
class ExtremePair:
    """`ratio` is the greatest over the least."""

    lowest: Estimate
    highest: Estimate
    ratio: Interval
    compared: int


@dataclass(frozen=True, slots=True)
class Costs:
    """Sums over `n` records with a cost, of which `good` came to something: costs, squares, and costs of the good."""

    n: int
    good: int
    total: float
    squares: float
    total_good: float


def confidence_of_each(count: int) -> float:
    """Of one of so many intervals (Bonferroni)."""
    return 1 - (1 - CONFIDENCE) / count


def find_extremes(estimates: Sequence[Estimate]) -> ExtremePair | None:
    """None where there are not two, or where their ratio may be below the margin, or without end."""
    if len(estimates) < 2:
        return None
    ranked = sorted(estimates, key=lambda one: (one.value, one.name))
    lowest, highest = ranked[0], ranked[-1]
    if lowest.interval.low <= 0 or highest.interval.low < MIN_RATIO * lowest.interval.high:
        return None
    ratio = Interval(highest.interval.low / lowest.interval.high, highest.interval.high / lowest.interval.low)
    return ExtremePair(lowest, highest, ratio, len(ranked))


def quantile(bins: Mapping[int, int], share: float, confidence: float) -> tuple[float, Interval] | None:
    """The quantile of values in logarithmic bins, all at least 0, with the interval between two of them that holds it.

    Of n values so many lie below the quantile as of n throws hit with that share: their ranks are the binomial's own
    quantiles, and no shape is assumed (David and Nagaraja 2003, 7.1). None for too few values. Bins are of 1 %.
    """
    from scipy.stats import binom

    n = sum(bins.values())
    low, high = int(binom.ppf((1 - confidence) / 2, n, share)), int(binom.isf((1 - confidence) / 2, n, share)) + 1
    if low < 1 or high > n:
        return None
    middle = _bin_of_rank(bins, max(1, math.ceil(share * n)))
    return _value_in_bin(middle, 0.5), Interval(
        _value_in_bin(_bin_of_rank(bins, low), 0), _value_in_bin(_bin_of_rank(bins, high), 1)
    )


def cost_per_good(costs: Costs, confidence: float) -> tuple[float, Interval] | None:
    """What one good record costs, the costs of bad ones with it; None where it cannot be told, as where all is free.

    The ratio of two sums, the error of its logarithm by the delta method.
    """
    if costs.n < 2 or not costs.good or costs.total <= 0 or not math.isfinite(costs.squares):
        return None
    ratio = costs.total / costs.good
    residuals = costs.squares - 2 * ratio * costs.total_good + ratio**2 * costs.good
    error = math.sqrt(max(0.0, residuals) * costs.n / (costs.n - 1)) / costs.total
    reach = math.exp(z_score(confidence) * error)
    return ratio, Interval(ratio / reach, ratio * reach)


def _bin_of_rank(bins: Mapping[int, int], rank: int) -> int:
    """The bin of the value with that rank, from 1."""
    passed = 0
    for index in sorted(bins):
        passed += bins[index]
        if passed >= rank:
            return index
    raise ValueError(f"rank {rank} of {passed} values")


def _value_in_bin(index: int, part: float) -> float:
    """A place in a bin: its lower edge at 0, its upper at 1."""
    return 0.0 if index <= 0 else math.exp((index - LOG_ORIGIN + part) * LOG_STEP)


EVALUATOR = "operations"
MIN_ANSWERS = 100  # answers of each
MAX_ROWS = 1_000_000
_QUANTILES = {0.5: "median", 0.95: "95th percentile"}
_LIVE = (
    "run_id = 'live' AND evaluator = {evaluator:String} AND time >= {start:DateTime64(3, 'UTC')} "
    "AND time < {end:DateTime64(3, 'UTC')}"
)


@dataclass(frozen=True, slots=True)
class AnswerTotals:
    """Of one model, or of all: seconds of the good ones, in logarithmic bins, and costs of all."""

    seconds: Mapping[int, int]
    costs: Costs

    def __add__(self, other: "AnswerTotals") -> "AnswerTotals":
        a, b = self.costs, other.costs
        return AnswerTotals(
            Counter(self.seconds) + Counter(other.seconds),
            Costs(a.n + b.n, a.good + b.good, a.total + b.total, a.squares + b.squares, a.total_good + b.total_good),
        )


TotalsByGroup = Mapping[tuple[str, str, str], AnswerTotals]  # by application, environment and model


def read_answer_totals(database: Database, period: Period) -> dict[tuple[str, str, str], AnswerTotals]:
    """Of the period's live traces by application, environment and model, of a million at most, by lot."""
    within: dict[str, Any] = {"evaluator": EVALUATOR, "start": period.start, "end": period.end}
    (count,) = database.rows(f"SELECT count() AS n FROM scores WHERE {_LIVE}", within)
    rows = database.rows(
        f"""
        SELECT app, environment, model, sumMap(map(bin, timed)) AS seconds, sum(priced) AS n, sum(bought) AS good,
            sum(spent) AS total, sum(squared) AS squares, sum(spent_well) AS total_good
        FROM (
            SELECT app, environment, model, bin, countIf(well AND has_seconds) AS timed, countIf(has_cost) AS priced,
                countIf(well AND has_cost) AS bought, sum(cost) AS spent, sum(cost * cost) AS squared,
                sumIf(cost, well) AS spent_well
            FROM (
                SELECT app, environment, model, metrics['error'] = 0 AND metrics['empty_answer'] = 0 AS well,
                    mapContains(metrics, 'cost_usd') AS has_cost, metrics['cost_usd'] AS cost,
                    metrics['latency_seconds'] AS lasted, mapContains(metrics, 'latency_seconds') AS has_seconds,
                    toInt32(if(lasted > 0, {LOG_ORIGIN} + floor(log(lasted) / {LOG_STEP!r}), 0)) AS bin
                FROM scores FINAL
                WHERE {_LIVE} AND status = 'scored' AND {in_sample(min(1.0, MAX_ROWS / max(count["n"], 1)))}
            )
            GROUP BY app, environment, model, bin
        )
        GROUP BY app, environment, model ORDER BY app, environment, model""",
        within,
    )
    return {
        (row["app"], row["environment"], row["model"]): AnswerTotals(
            {bin_: n for bin_, n in row["seconds"].items() if n},
            Costs(row["n"], row["good"], row["total"], row["squares"], row["total_good"]),
        )
        for row in rows
    }


def speed_and_cost(found: TotalsByGroup) -> list[Insight]:
    """Of the models of each application, and of the applications of each environment; those that are sure."""
    models: dict[tuple[str, str], dict[str, AnswerTotals]] = {}
    apps: dict[str, dict[str, AnswerTotals]] = {}
    for (app, environment, model), own in sorted(found.items()):
        models.setdefault((app, environment), {})[model or "(none named)"] = own
        there = apps.setdefault(environment, {})
        there[app] = there[app] + own if app in there else own
    told = [one for (app, environment), of in models.items() for one in _compare("model", of, environment, app)]
    return told + [one for environment, of in apps.items() for one in _compare("application", of, environment)]


def _compare(by: str, groups: Mapping[str, AnswerTotals], environment: str, app: str = "") -> Iterator[Insight]:
    """`app` is empty where applications are compared."""
    for share, name in _QUANTILES.items():
        timed = {name: one for name, one in groups.items() if _timed_count(one) >= MIN_ANSWERS}
        if told := _extremes(timed, partial(_latency, share), _timed_count):
            yield _insight("speed", by, f"{name} latency", "s", told, environment, app)
    priced = {name: one for name, one in groups.items() if one.costs.good >= MIN_ANSWERS}
    if told := _extremes(priced, lambda one, sure: cost_per_good(one.costs, sure), lambda one: one.costs.good):
        yield _insight("cost", by, "cost per answer", "usd", told, environment, app)


def _timed_count(one: AnswerTotals) -> int:
    return sum(one.seconds.values())


def _latency(share: float, one: AnswerTotals, confidence: float) -> tuple[float, Interval] | None:
    return quantile(one.seconds, share, confidence)


def _extremes(
    groups: Mapping[str, AnswerTotals],
    estimate: Callable[[AnswerTotals, float], tuple[float, Interval] | None],
    count: Callable[[AnswerTotals], int],
) -> ExtremePair | None:
    sure = confidence_of_each(max(1, len(groups)))
    told = {name: estimate(one, sure) for name, one in groups.items()}
    return find_extremes([Estimate(name, count(groups[name]), *one) for name, one in told.items() if one is not None])


def _insight(type_: str, by: str, figure: str, unit: str, told: ExtremePair, environment: str, app: str) -> Insight:
    """About applications it is told to those who run the one that is slowest, or most expensive."""
    best, worst = ("fastest", "slowest") if type_ == "speed" else ("cheapest", "most expensive")
    lowest, highest = told.lowest, told.highest
    where = scope_label(app, environment) if app else f"all applications{f' ({environment})' if environment else ''}"
    return Insight(
        type=type_,
        app=app or highest.name,
        environment=environment,
        identity=("per_answer", by, figure),
        description=(
            f"{where}: of {told.compared} {by}s {lowest.name} is {best} and {highest.name} {worst}: {figure} "
            f"{number(lowest.value, unit)} on {lowest.n} successful answers against {number(highest.value, unit)} on "
            f"{highest.n}, {told.ratio.low:.3g} to {told.ratio.high:.3g} times as much."
        ),
        attributes={
            "kind": "per_answer",
            "by": by,
            "figure": figure,
            "unit": unit,
            "least": _attributes(lowest),
            "greatest": _attributes(highest),
            "ratio": highest.value / lowest.value,
            "ratio_interval": list(told.ratio),
            "compared": told.compared,
        },
        examples=(),
        actions=(
            f"Compare the quality of {lowest.name} with that of {highest.name} before any traffic moves: "
            "ragtide replay, ragtide compare.",
            "Look whether their questions, contexts and answers are of like length: tokens take time and money.",
        ),
    )


def _attributes(one: Estimate) -> dict[str, Any]:
    return {"name": one.name, "answers": one.n, "value": one.value, "interval": list(one.interval)}
