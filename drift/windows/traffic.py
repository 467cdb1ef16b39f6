"""Count traces by the windows of lane `fast`, without reading the traces again."""

from collections.abc import Iterable

from ragtide.drift import sql
from ragtide.drift.windows.watermark import FAST_LANE
from ragtide.evaluators.spec import Evaluator

_RUN_ON_EVERY_TRACE = frozenset({"operations", "inputs"})


def traffic_metrics(evaluators: Iterable[Evaluator]) -> list[tuple[str, ...]]:
    """Return metrics whose windows count the traces: a few that run on every trace, then all, if those are off.

    One metric of an evaluator is enough: a closed window has a row for each declared one.
    """
    fast = [one for one in evaluators if one.lane == FAST_LANE]
    few = tuple(f"{one.id}.{one.metrics[0].key}" for one in fast if one.id in _RUN_ON_EVERY_TRACE)
    return [few, tuple(f"{one.id}.{one.metrics[0].key}" for one in fast)]


def live_windows(base_s: int, metrics: Iterable[str], since: int, until: int) -> str:
    """Condition: live base windows of these metrics, without segments, that start in [since, until)."""
    return (
        f"run_id = 'live' AND size_s = {base_s} AND metric IN {sql.texts(metrics)} AND segment = '' "
        f"AND start >= toDateTime({since}, 'UTC') AND start < toDateTime({until}, 'UTC')"
    )


def apps_condition(apps: Iterable[tuple[str, str]]) -> str:
    """Condition: one of these apps and environments."""
    return f"(app, environment) IN ({', '.join(f'({sql.text(app)}, {sql.text(where)})' for app, where in apps)})"


def select_traffic(windows: str) -> str:
    """Select app, environment, model, `at` (start, seconds since 1970) and `n` > 0, the traces of that window.

    Every evaluator of the lane has the same number, twice where its fingerprint changed.
    """
    return f"""
    SELECT app, environment, model, toUnixTimestamp(start) AS at, sum(most) AS n
    FROM (
        SELECT app, environment, model, start, prompt_version, max(seen) AS most FROM windows FINAL WHERE {windows}
        GROUP BY app, environment, model, start, prompt_version
    )
    GROUP BY app, environment, model, start HAVING n > 0"""
