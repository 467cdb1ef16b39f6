"""Expands a dashboard's SQL as Grafana (variables, $__conditionalAll) and the ClickHouse plugin 4.x (macros) do.

The formats are those of Grafana 11 to 13 (`formatRegistry.ts` of grafana/scenes) with their gaps: `singlequote` leaves
backslashes alone, an unknown format is `glob`, and macros are expanded after variables, so inside their values too.
"""

import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from urllib.parse import quote

Choice = str | list[str]  # "$__all" stands for all

# Every way in which Grafana's text may name a variable.
VARIABLE = re.compile(r"\$(\w+)|\[\[(\w+?)(?::(\w+))?\]\]|\$\{(\w+)(?:\.[^:^}]+)?(?::([^}]+))?\}")
# How JavaScript's String.replace would read the replacement: the plugin gives it a condition as it stands.
_JAVASCRIPT_PATTERN = re.compile(r"\$[$&`'0-9]")


def expanded(sql: str, start: datetime, end: datetime, interval_s: int, chosen: Mapping[str, Choice]) -> str:
    """Ready for ClickHouse; raises where anything is left that nobody would expand."""
    interpolated = interpolate(_conditional_all(sql, chosen), chosen)
    unknown = [match[0] for match in VARIABLE.finditer(interpolated) if not match[0].startswith("$__")]
    if unknown:
        raise ValueError(f"nothing expands {unknown} in {sql}")
    sql = interpolated
    first, last = f"toDateTime({int(start.timestamp())})", f"toDateTime({int(end.timestamp())})"
    interval = f"INTERVAL {max(interval_s, 1)} second"
    sql = re.sub(r"\$__timeFilter\(([^()]*)\)", rf"\1 >= {first} AND \1 <= {last}", sql)
    sql = re.sub(r"\$__timeInterval\(([^()]*)\)", rf"toStartOfInterval(toDateTime(\1), {interval})", sql)
    sql = sql.replace("$__interval_s", str(max(interval_s, 1))).replace("$__fromTime", first).replace("$__toTime", last)
    left = re.findall(r"\$\w+|\$\{[^}]*\}", sql)
    if left:
        raise ValueError(f"nothing expands {left} in {sql}")
    return sql


def interpolate(text: str, chosen: Mapping[str, Choice]) -> str:
    """Put in the variables in one pass, as Grafana does; what is none stays."""

    def of(match: re.Match[str]) -> str:
        name = match[1] or match[2] or match[4]
        if name not in chosen:
            return match[0]
        form = match[3] or match[5]
        return FORMATS.get(form, _glob)(name, chosen[name]) if form else _unformatted(name, chosen[name])

    return VARIABLE.sub(of, text)


def _encoded(text: str) -> str:
    """Encode as Grafana's encodeURIComponentStrict."""
    return quote(text, safe="-_.~")


def _quoting(mark: str, escapes: Mapping[str, str]) -> Callable[[str, Choice], str]:
    def of(_name: str, choice: Choice) -> str:
        values = choice if isinstance(choice, list) else [choice]
        return ",".join(f"{mark}{''.join(escapes.get(sign, sign) for sign in value)}{mark}" for value in values)

    return of


def _joined(by: str) -> Callable[[str, Choice], str]:
    return lambda _name, choice: by.join(choice) if isinstance(choice, list) else choice


def _glob(_name: str, choice: Choice) -> str:
    if isinstance(choice, list):
        return f"{{{','.join(choice)}}}" if len(choice) > 1 else "".join(choice)
    return choice


def _unformatted(_name: str, choice: Choice) -> str:
    """Give what the plugin's own format makes of a variable that names none."""
    return "'" + "','".join(choice) + "'" if isinstance(choice, list) else choice


def _percentencode(_name: str, choice: Choice) -> str:
    return _encoded(f"{{{','.join(choice)}}}" if isinstance(choice, list) else choice)


def _queryparam(name: str, choice: Choice) -> str:
    """Encode as Grafana's toUrlParams, which leaves some signs as they are."""
    values = choice if isinstance(choice, list) else [choice]
    return "&".join(f"var-{name}={quote(value, safe='-_.~@:$,;').replace('%20', '+')}" for value in values)


FORMATS: Mapping[str, Callable[[str, Choice], str]] = {
    "singlequote": _quoting("'", {"'": "\\'"}),
    "doublequote": _quoting('"', {'"': '\\"'}),
    "sqlstring": _quoting("'", {"'": "''", '"': '\\"'}),
    "percentencode": _percentencode,
    "queryparam": _queryparam,
    "json": lambda _name, choice: json.dumps(choice, ensure_ascii=False) if isinstance(choice, list) else choice,
    "csv": _joined(","),
    "raw": _joined(","),
    "pipe": _joined("|"),
    "text": _joined(" + "),
    "glob": _glob,
}


def _conditional_all(sql: str, chosen: Mapping[str, Choice]) -> str:
    """`$__conditionalAll(condition, $variable)`: the condition, or 1=1 where the variable is empty or All."""
    opening = "$__conditionalAll("
    while (begin := sql.rfind(opening)) >= 0:
        depth, comma, at = 1, 0, begin + len(opening)
        while depth:
            depth += {"(": 1, ")": -1}.get(sql[at], 0)
            comma = at if sql[at] == "," and depth == 1 else comma
            at += 1
        condition, variable = sql[begin + len(opening) : comma], sql[comma + 1 : at - 1].strip().removeprefix("$")
        if special := _JAVASCRIPT_PATTERN.search(condition):
            raise ValueError(f"the plugin would expand {special[0]} in {condition}")
        every = chosen[variable] in ("$__all", ["$__all"], "", [], [""])
        sql = sql[:begin] + ("1=1" if every else condition) + sql[at:]
    return sql
