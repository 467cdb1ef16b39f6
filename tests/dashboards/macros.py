"""Expands a dashboard's SQL as Grafana (variables, $__conditionalAll) and the ClickHouse plugin 4.x (macros) do."""

import re
from collections.abc import Mapping
from datetime import datetime

Choice = str | list[str]  # "$__all" stands for all


def expanded(sql: str, start: datetime, end: datetime, interval_s: int, chosen: Mapping[str, Choice]) -> str:
    """Ready for ClickHouse; raises where anything is left that nobody would expand."""
    sql = _conditional_all(sql, chosen)
    for name, choice in chosen.items():
        values = choice if isinstance(choice, list) else [choice]
        quoted = ",".join("'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'" for value in values)
        sql = sql.replace(f"${{{name}:singlequote}}", quoted).replace(f"${{{name}}}", ",".join(values))
    first, last = f"toDateTime({int(start.timestamp())})", f"toDateTime({int(end.timestamp())})"
    interval = f"INTERVAL {max(interval_s, 1)} second"
    sql = re.sub(r"\$__timeFilter\(([^()]*)\)", rf"\1 >= {first} AND \1 <= {last}", sql)
    sql = re.sub(r"\$__timeInterval\(([^()]*)\)", rf"toStartOfInterval(toDateTime(\1), {interval})", sql)
    sql = sql.replace("$__interval_s", str(max(interval_s, 1))).replace("$__fromTime", first).replace("$__toTime", last)
    left = re.findall(r"\$\w+|\$\{[^}]*\}", sql)
    if left:
        raise ValueError(f"nothing expands {left} in {sql}")
    return sql


def _conditional_all(sql: str, chosen: Mapping[str, Choice]) -> str:
    """`$__conditionalAll(condition, $variable)`: the condition, or 1=1 where the variable stands for all."""
    opening = "$__conditionalAll("
    while (begin := sql.find(opening)) >= 0:
        depth, comma, at = 1, 0, begin + len(opening)
        while depth:
            depth += {"(": 1, ")": -1}.get(sql[at], 0)
            comma = at if sql[at] == "," and depth == 1 else comma
            at += 1
        condition, variable = sql[begin + len(opening) : comma], sql[comma + 1 : at - 1].strip().removeprefix("$")
        every = chosen[variable] in ("$__all", ["$__all"])
        sql = sql[:begin] + ("1=1" if every else condition) + sql[at:]
    return sql
