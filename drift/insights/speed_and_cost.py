"""Find the model and the application that are fastest, slowest, cheapest and most expensive.

By successful answer: the application did not fail and the answer is not blank. What the others cost is part of the cost
of an answer; how long they took is not counted. All intervals hold together at 95 % (`confidence_of_each`), so the
ratio of the ends of the two extremes is an interval of their ratio."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from operator import add
from typing import Any, NamedTuple

from ragtide.drift.insights.data import PeriodData
from ragtide.drift.insights.model import IN_PERIOD, AppEnvironment, Insight, estimate, insight
from ragtide.drift.stats import CONFIDENCE, Interval, in_sample, z_score
from ragtide.drift.text import number
from ragtide.drift.windows import LOG_ORIGIN, LOG_STEP, quantile

MIN_RATIO = 1.1  # a smaller ratio does not matter


class Estimate(NamedTuple):
    """A positive number of `n` records, and its interval."""

    name: str
    n: int
    value: float
    interval: Interval

    @property
    def figures(self) -> dict[str, Any]:
        """All of it."""
        return {"name": self.name, "answers": self.n, "value": self.value, "interval": self.interval}


class ExtremePair(NamedTuple):
    """The extremes of `compared` estimates; `ratio` is the highest over the lowest."""

    lowest: Estimate
    highest: Estimate
    ratio: Interval
    compared: int


class Costs(NamedTuple):
    """Sums over `n` records with a cost, `good` of them successful: costs, their squares, and costs of the good."""

    n: int
    good: int
    total: float
    squares: float
    total_good: float


def confidence_of_each(count: int) -> float:
    """Return the confidence of each of so many intervals (Bonferroni)."""
    return 1 - (1 - CONFIDENCE) / count


def find_extremes(estimates: Sequence[Estimate]) -> ExtremePair | None:
    """Return extremes; None if there are not two, or if their ratio may be below `MIN_RATIO` or has no upper limit."""
    if len(estimates) < 2:
        return None
    ranked = sorted(estimates, key=lambda one: (one.value, one.name))
    lowest, highest = ranked[0], ranked[-1]
    if lowest.interval.low <= 0 or highest.interval.low < MIN_RATIO * lowest.interval.high:
        return None
    ratio = Interval(highest.interval.low / lowest.interval.high, highest.interval.high / lowest.interval.low)
    return ExtremePair(lowest, highest, ratio, len(ranked))


def cost_per_good(costs: Costs, confidence: float) -> tuple[float, Interval] | None:
    """Return cost of all records per good one, and its interval; None if there is no estimate, as when all are free.

    A ratio of two sums; the error of its logarithm is by the delta method.
    """
    if costs.n < 2 or not costs.good or costs.total <= 0 or not math.isfinite(costs.squares):
        return None
    ratio = costs.total / costs.good
    residuals = costs.squares - 2 * ratio * costs.total_good + ratio**2 * costs.good
    error = math.sqrt(max(0.0, residuals) * costs.n / (costs.n - 1)) / costs.total
    reach = math.exp(z_score(confidence) * error)
    return ratio, Interval(ratio / reach, ratio * reach)


EVALUATOR = "operations"
MIN_ANSWERS = 100  # answers of each
MAX_ROWS = 1_000_000
_LIVE = f"run_id = 'live' AND evaluator = '{EVALUATOR}' AND {IN_PERIOD}"


class AnswerTotals(NamedTuple):
    """Of one model, or of all: seconds of the good answers, in logarithmic bins, and costs of all."""

    seconds: Mapping[int, int]
    costs: Costs


class Figure(NamedTuple):
    """What answers are compared in: a quantile of latencies, or the cost of an answer if that is None."""

    type: str
    name: str
    unit: str
    quantile: float | None

    def count(self, one: AnswerTotals) -> int:
        """How many good answers have it."""
        return one.costs.good if self.quantile is None else sum(one.seconds.values())

    def estimate(self, one: AnswerTotals, confidence: float) -> tuple[float, Interval] | None:
        """Return the figure and its interval."""
        if self.quantile is None:
            return cost_per_good(one.costs, confidence)
        return quantile(one.seconds, self.quantile, confidence)


_FIGURES = (
    Figure("speed", "median latency", "s", 0.5),
    Figure("speed", "95th percentile latency", "s", 0.95),
    Figure("cost", "cost per answer", "usd", None),
)


@insight(reads=PeriodData)
def speed_and_cost(data: PeriodData) -> Iterator[Insight]:
    """Compare the models of each application, and the applications of each environment."""
    if EVALUATOR not in data.evaluators:
        return
    models: dict[AppEnvironment, dict[str, AnswerTotals]] = {}
    apps: dict[str, dict[str, AnswerTotals]] = {}
    for (app, environment, model), own in _read_totals(data).items():
        models.setdefault(AppEnvironment(app, environment), {})[model or "(none named)"] = own
        totals = apps.setdefault(environment, {})
        totals[app] = _sum(totals[app], own) if app in totals else own
    for where, groups in models.items():
        yield from _compare("model", groups, where)
    for environment, groups in apps.items():
        yield from _compare("application", groups, AppEnvironment("", environment))


def _sum(a: AnswerTotals, b: AnswerTotals) -> AnswerTotals:
    return AnswerTotals(Counter(a.seconds) + Counter(b.seconds), Costs(*map(add, a.costs, b.costs)))


def _read_totals(data: PeriodData) -> dict[tuple[str, str, str], AnswerTotals]:
    """Totals of the period's live traces by application, environment and model; of a random million at most."""
    bound = data.period.bound
    (count,) = data.database.rows(f"SELECT count() AS n FROM scores WHERE {_LIVE}", bound)
    rows = data.database.rows(
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
        bound,
    )
    return {
        (row["app"], row["environment"], row["model"]): AnswerTotals(
            {bin_: n for bin_, n in row["seconds"].items() if n}, Costs(*(row[name] for name in Costs._fields))
        )
        for row in rows
    }


def _compare(by: str, groups: Mapping[str, AnswerTotals], where: AppEnvironment) -> Iterator[Insight]:
    for figure in _FIGURES:
        enough = {name: one for name, one in groups.items() if figure.count(one) >= MIN_ANSWERS}
        sure = confidence_of_each(max(1, len(enough)))
        found = ((name, figure.count(one), figure.estimate(one, sure)) for name, one in enough.items())
        if pair := find_extremes([Estimate(name, n, *one) for name, n, one in found if one is not None]):
            yield _insight(figure, by, pair, where)


def _insight(figure: Figure, by: str, pair: ExtremePair, where: AppEnvironment) -> Insight:
    """Make the insight; it belongs to the application that is slowest, or most expensive."""
    best, worst = ("fastest", "slowest") if figure.type == "speed" else ("cheapest", "most expensive")
    lowest, highest = pair.lowest, pair.highest
    everywhere = f"all applications{f' ({where.environment})' if where.environment else ''}"
    return Insight(
        type=figure.type,
        where=where if where.app else AppEnvironment(highest.name, where.environment),
        identity=("per_answer", by, figure.name),
        label="" if where.app else everywhere,
        message=(
            f"{highest.name} is the {worst} of {pair.compared} {by}s, {lowest.name} the {best}. "
            f"{figure.name.capitalize()}: {number(highest.value, figure.unit)} ({highest.n:,} successful answers) "
            f"against {number(lowest.value, figure.unit)} ({lowest.n:,}), {pair.ratio.low:.3g} to "
            f"{pair.ratio.high:.3g} times as much"
        ),
        figures={
            "kind": "per_answer",
            "by": by,
            "figure": figure.name,
            "unit": figure.unit,
            "least": lowest.figures,
            "greatest": highest.figures,
            **estimate("ratio", highest.value / lowest.value, pair.ratio),
            "compared": pair.compared,
        },
        actions=(
            f"Before you move traffic, compare the quality of {lowest.name} and {highest.name}: "
            "ragtide replay, ragtide compare.",
            "Check that their questions, contexts and answers have similar lengths: tokens take time and money.",
        ),
    )
