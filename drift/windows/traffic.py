"""How many traces there were, as lane `fast` counted them: read from the windows, not from the traces again."""

from collections.abc import Iterable

from ragtide.drift import sql
from ragtide.drift.windows.watermark import FAST
from ragtide.evaluators.spec import Evaluator

_RUN_ON_EVERY_TRACE = frozenset({"operations", "inputs"})


def traffic_metrics(evaluators: Iterable[Evaluator]) -> list[tuple[str, ...]]:
    """Metrics whose windows say how many traces were seen: those that suffice, then all, for where these are off.

    One metric of an evaluator is enough: a closed window has a row for each that is declared.
    """
    fast = [one for one in evaluators if one.lane == FAST]
    few = tuple(f"{one.id}.{one.metrics[0].key}" for one in fast if one.id in _RUN_ON_EVERY_TRACE)
    return [few, tuple(f"{one.id}.{one.metrics[0].key}" for one in fast)]


def live_windows(base_s: int, metrics: Iterable[str], since: int, until: int) -> str:
    """Condition on live base windows of these metrics, uncut, that start in [since, until), seconds since 1970."""
    return (
        f"run_id = 'live' AND size_s = {base_s} AND metric IN {sql.texts(metrics)} AND segment = '' "
        f"AND start >= toDateTime({since}, 'UTC') AND start < toDateTime({until}, 'UTC')"
    )


def apps_condition(apps: Iterable[tuple[str, str]]) -> str:
    """Condition: one of these apps and environments."""
    return f"(app, environment) IN ({', '.join(f'({sql.text(app)}, {sql.text(where)})' for app, where in apps)})"


def select_traffic(windows: str) -> str:
    """SELECT of app, environment, model, `at` (start, seconds since 1970) and `n` > 0, the traces of that window.

    Every evaluator of the lane was told the same number; where its fingerprint changed it stands there twice.
    """
    return f"""
    SELECT app, environment, model, toUnixTimestamp(start) AS at, sum(most) AS n
    FROM (
        SELECT app, environment, model, start, prompt_version, max(seen) AS most FROM windows FINAL WHERE {windows}
        GROUP BY app, environment, model, start, prompt_version
    )
    GROUP BY app, environment, model, start HAVING n > 0"""
