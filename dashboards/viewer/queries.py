"""Expand the SQL of dashboards: the variables and macros of our subset, and nothing else.

Grafana expands variables and `$__conditionalAll` in the browser, and the ClickHouse plugin the other macros on its
server. Here one pass over the author's text expands all. Values are encoded, so none contains a macro or ends a string.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

ALL = "$__all"
Choice = str | Sequence[str]  # of a variable; ALL stands for all values

_CONDITIONAL = "$__conditionalAll("
_PART = re.compile(
    r"\$__timeFilter\((?P<filter>[^()]*)\)"
    r"|\$__timeInterval\((?P<interval>[^()]*)\)"
    r"|\$__(?P<macro>interval_s|fromTime|toTime)(?!\w)"
    r"|\$\{(?P<variable>\w+):percentencode\}"
    r"|(?P<conditional>\$__conditionalAll\()"
    r"|(?P<unknown>\$(?=[\w{])|\[\[(?=\w+(?::\w+)?\]\])[\w{]*)"
)
_NAMED = re.compile(r"\$\{(\w+):percentencode\}|,\s*\$(\w+)\s*\)")
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~")


class UnknownMacro(ValueError):
    """A statement has a macro or a form of variable outside of the subset."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Time range (whole seconds), step of graphs, and the chosen values of all variables."""

    start: datetime
    end: datetime
    interval_s: int
    chosen: Mapping[str, Choice]


def expand(sql: str, scope: Scope) -> str:
    """Make the statement ready for ClickHouse. Raises UnknownMacro for what the subset does not have."""
    first, last = (f"toDateTime({int(time.timestamp())})" for time in (scope.start, scope.end))
    step = max(scope.interval_s, 1)
    fixed = {"interval_s": str(step), "fromTime": first, "toTime": last}
    written: list[str] = []
    at = 0
    while found := _PART.search(sql, at):
        written.append(sql[at : found.start()])
        at = found.end()
        kind = found.lastgroup
        if kind == "filter":
            written.append(f"{found['filter']} >= {first} AND {found['filter']} <= {last}")
        elif kind == "interval":
            written.append(f"toStartOfInterval(toDateTime({found['interval']}), INTERVAL {step} second)")
        elif kind == "macro":
            written.append(fixed[found["macro"]])
        elif kind == "variable":
            written.append(_percent_encoded(_chosen(found["variable"], scope)))
        elif kind == "conditional":
            condition, variable, at = _arguments(sql, at)
            written.append("1=1" if _is_all(_chosen(variable, scope)) else expand(condition, scope))
        else:
            raise UnknownMacro(f"the viewer does not know {sql[found.start() : found.start() + 30]!r}")
    return "".join(written) + sql[at:]


def variables_of(sql: str) -> list[str]:
    """Names of the variables that the statement reads, each once, in order."""
    return list(dict.fromkeys(first or second for first, second in _NAMED.findall(sql)))


def _arguments(sql: str, begin: int) -> tuple[str, str, int]:
    """Condition and variable of a `$__conditionalAll` whose parenthesis opened before `begin`, and where it ends."""
    depth, comma = 1, -1
    for at in range(begin, len(sql)):
        sign = sql[at]
        if sign == "(":
            depth += 1
        elif sign == ")":
            depth -= 1
            if not depth:
                name = sql[comma + 1 : at].strip()
                if comma < 0 or not re.fullmatch(r"\$\w+", name):
                    break
                return sql[begin:comma], name[1:], at + 1
        elif sign == "," and depth == 1:
            comma = at
    raise UnknownMacro(f"{_CONDITIONAL} without a condition and a $variable")


def _chosen(name: str, scope: Scope) -> Choice:
    if name not in scope.chosen:
        raise UnknownMacro(f"the dashboard has no variable {name}")
    return scope.chosen[name]


def _is_all(choice: Choice) -> bool:
    return choice in ("", ALL) if isinstance(choice, str) else list(choice) in ([], [""], [ALL])


def _percent_encoded(choice: Choice) -> str:
    text = choice if isinstance(choice, str) else "{" + ",".join(choice) + "}"
    return "".join(chr(byte) if byte in _UNRESERVED else f"%{byte:02X}" for byte in text.encode("utf-8", "replace"))
