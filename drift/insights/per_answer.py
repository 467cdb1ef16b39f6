"""Which model, and which application, is fastest, slowest, cheapest and most expensive, by successful answer.

An answer counts where the application did not fail and the answer is not blank. What the others cost is paid too: it is
part of what an answer costs. How long they took is not.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from drift.causes.rows import kept
from drift.insights.extremes import Apart, Costs, Estimate, apart, confidence_of_each, per_good, quantile
from drift.insights.insight import Finding, Period
from drift.insights.shares import Interval
from drift.phrases import number, whereabouts
from drift.windows.bins import LOG_ORIGIN, LOG_STEP
from sinks.clickhouse.database import Database

EVALUATOR = "operations"
LEAST = 100  # answers of each
MOST_ROWS = 1_000_000
_QUANTILES = {0.5: "median", 0.95: "95th percentile"}
_LIVE = (
    "run_id = 'live' AND evaluator = {evaluator:String} AND time >= {start:DateTime64(3, 'UTC')} "
    "AND time < {end:DateTime64(3, 'UTC')}"
)


@dataclass(frozen=True, slots=True)
class Answers:
    """Of one model, or of all: seconds of the good ones, in logarithmic bins, and costs of all."""

    seconds: Mapping[int, int]
    costs: Costs

    def __add__(self, other: "Answers") -> "Answers":
        a, b = self.costs, other.costs
        return Answers(
            Counter(self.seconds) + Counter(other.seconds),
            Costs(a.n + b.n, a.good + b.good, a.total + b.total, a.squares + b.squares, a.total_good + b.total_good),
        )


Answered = Mapping[tuple[str, str, str], Answers]  # by application, environment and model


def answers(database: Database, period: Period) -> dict[tuple[str, str, str], Answers]:
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
                WHERE {_LIVE} AND status = 'scored' AND {kept(min(1.0, MOST_ROWS / max(count["n"], 1)))}
            )
            GROUP BY app, environment, model, bin
        )
        GROUP BY app, environment, model ORDER BY app, environment, model""",
        within,
    )
    return {
        (row["app"], row["environment"], row["model"]): Answers(
            {bin_: n for bin_, n in row["seconds"].items() if n},
            Costs(row["n"], row["good"], row["total"], row["squares"], row["total_good"]),
        )
        for row in rows
    }


def extremes_per_answer(found: Answered) -> list[Finding]:
    """Of the models of each application, and of the applications of each environment; those that are sure."""
    models: dict[tuple[str, str], dict[str, Answers]] = {}
    apps: dict[str, dict[str, Answers]] = {}
    for (app, environment, model), own in sorted(found.items()):
        models.setdefault((app, environment), {})[model or "(none named)"] = own
        there = apps.setdefault(environment, {})
        there[app] = there[app] + own if app in there else own
    told = [one for (app, environment), of in models.items() for one in _compared("model", of, environment, app)]
    return told + [one for environment, of in apps.items() for one in _compared("application", of, environment)]


def _compared(by: str, groups: Mapping[str, Answers], environment: str, app: str = "") -> Iterator[Finding]:
    """`app` is empty where applications are compared."""
    for share, name in _QUANTILES.items():
        timed = {name: one for name, one in groups.items() if _timed(one) >= LEAST}
        if told := _apart(timed, partial(_latency, share), _timed):
            yield _finding("speed", by, f"{name} latency", "s", told, environment, app)
    priced = {name: one for name, one in groups.items() if one.costs.good >= LEAST}
    if told := _apart(priced, lambda one, sure: per_good(one.costs, sure), lambda one: one.costs.good):
        yield _finding("cost", by, "cost per answer", "usd", told, environment, app)


def _timed(one: Answers) -> int:
    return sum(one.seconds.values())


def _latency(share: float, one: Answers, confidence: float) -> tuple[float, Interval] | None:
    return quantile(one.seconds, share, confidence)


def _apart(
    groups: Mapping[str, Answers],
    estimate: Callable[[Answers, float], tuple[float, Interval] | None],
    count: Callable[[Answers], int],
) -> Apart | None:
    sure = confidence_of_each(max(1, len(groups)))
    told = {name: estimate(one, sure) for name, one in groups.items()}
    return apart([Estimate(name, count(groups[name]), *one) for name, one in told.items() if one is not None])


def _finding(type_: str, by: str, figure: str, unit: str, told: Apart, environment: str, app: str) -> Finding:
    """About applications it is told to those who run the one that is slowest, or most expensive."""
    best, worst = ("fastest", "slowest") if type_ == "speed" else ("cheapest", "most expensive")
    least, greatest = told.least, told.greatest
    where = whereabouts(app, environment) if app else f"all applications{f' ({environment})' if environment else ''}"
    return Finding(
        type=type_,
        app=app or greatest.name,
        environment=environment,
        identity=("per_answer", by, figure),
        description=(
            f"{where}: of {told.compared} {by}s {least.name} is {best} and {greatest.name} {worst}: {figure} "
            f"{number(least.value, unit)} on {least.n} successful answers against {number(greatest.value, unit)} on "
            f"{greatest.n}, {told.ratio.low:.3g} to {told.ratio.high:.3g} times as much."
        ),
        attributes={
            "kind": "per_answer",
            "by": by,
            "figure": figure,
            "unit": unit,
            "least": _told(least),
            "greatest": _told(greatest),
            "ratio": greatest.value / least.value,
            "ratio_interval": list(told.ratio),
            "compared": told.compared,
        },
        examples=(),
        actions=(
            f"Compare the quality of {least.name} with that of {greatest.name} before any traffic moves: "
            "ragwatch replay, ragwatch compare.",
            "Look whether their questions, contexts and answers are of like length: tokens take time and money.",
        ),
    )


def _told(one: Estimate) -> dict[str, Any]:
    return {"name": one.name, "answers": one.n, "value": one.value, "interval": list(one.interval)}
