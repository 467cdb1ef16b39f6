"""SQL of what windows have of their own: metrics made of their parts, in whole and by class.

Nothing is computed here that the roll-up has not: a point of a graph is one window's number. Over a time range a table
has the mean of windows, each by the records it rests on; of shares, that is the share over the whole range.
"""

from collections.abc import Mapping, Sequence

from ragtide.dashboards.sql import Tables
from ragtide.drift.sql import text

_SERIES = "arrayStringConcat(arrayFilter(part -> part != '', [environment, model, prompt_version]), ' ')"


def own_values(tables: Tables, names: Mapping[str, str]) -> str:
    """A time series per metric, called as `names` says, and per environment, model and prompt version.

    Where a point of the graph holds several windows, it is the newest one's number.
    """
    each = ", ".join(
        f"argMaxIf(value, (start, version), metric = {text(metric)}) AS `{name}`" for metric, name in names.items()
    )
    return (
        f"SELECT $__timeInterval(start) AS time, {_SERIES} AS series, {each} {tables.windows(names)} "
        "GROUP BY time, series ORDER BY time, series"
    )


def by_class(tables: Tables, names: Mapping[str, str], per: Sequence[str]) -> str:
    """A row per class, or whatever metrics have a series for: their means, and on how many records; the largest first.

    `per` is the metrics' own.
    """
    each = ", ".join(
        f"sumIf(value * scored, metric = {text(metric)}) / nullIf(sumIf(scored, metric = {text(metric)}), 0) "
        f"AS `{name}`, sumIf(scored, metric = {text(metric)}) AS `of {name}`"
        for metric, name in names.items()
    )
    order = ", ".join(f"`of {name}` DESC" for name in names.values())
    return (
        f"SELECT segment_value AS `{'/'.join(per)}`, {each} {tables.windows(names, '/'.join(per))} "
        f"WHERE isNotNull(value) GROUP BY segment_value ORDER BY {order}, segment_value LIMIT 1000"
    )
