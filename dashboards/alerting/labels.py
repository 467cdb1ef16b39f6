"""SQL of the labels of alerts: those that `ragtide.drift.notify.alert` gives a problem, from the same columns.

Grafana names an alert after its rule, so label `problem` has the alertname of the problem's kind. Grafana leaves out
labels that are empty.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ragtide.dashboards.owners import route_number_sql
from ragtide.dashboards.variable_sql import literal
from ragtide.drift.notify import ALERT_PREFIX, LONGEST_LABEL, label_value
from ragtide.drift.routes import Route
from ragtide.drift.sql import array
from ragtide.evaluators.errors import ConfigError
from ragtide.sinks.alertmanager_settings import RESERVED_LABELS

PROBLEM = "problem"
# Labels that alerts in Grafana have and those in Alertmanager have not, and other columns of the rules' queries.
_TAKEN = (PROBLEM, "alert_source", "grafana_folder", "open", "burn", "records", "title", "description")
_COLUMNS = tuple(name for name in RESERVED_LABELS if name != "alertname")
_DIGEST = 12
_EMPTY = "''"
# White space and control characters of `one_line`: Python's str.split and the categories Cc, Zl and Zp.
_BLANK = r"[\\x{0}-\\x{20}\\x{7f}-\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}]+"


@dataclass(frozen=True, slots=True)
class LabelColumns:
    """Labels that routes and settings add to those of a problem. Raises `ConfigError` for a name of Grafana's own."""

    routes: Sequence[Route] = ()
    labels: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        if taken := sorted({*self._given()} & {*_TAKEN}):
            raise ConfigError(f"routes: alerts in Grafana have a label {taken[0]} already; choose another name")

    @property
    def names(self) -> tuple[str, ...]:
        """The columns in order: label `problem`, those of every problem, and the added ones."""
        return (PROBLEM, *_COLUMNS, *self._given())

    def select(self, given: Mapping[str, str], others: Mapping[str, str], source: str) -> str:
        """Write a query with a column of each label, and other columns.

        `given` has expressions over `source` of the labels that are not empty. It needs `app`, `metric` and `type`:
        owner and added labels are those of the first route that matches them.
        """
        number = route_number_sql(self.routes, given["app"], given["metric"], given["type"])
        places = {name: f"label_values[{place}]" for place, name in enumerate(given, 1)}
        places |= {"owner": _chosen([route.owner for route in self.routes], "")}
        places |= {name: _chosen(*values) for name, values in self._given().items()}
        labels = [f"{places.get(name, _EMPTY)} AS `{name}`" for name in self.names]
        inner = [f"{_values(given.values())} AS label_values", f"{number} AS route_number"]
        inner += [f"{expression} AS {name}" for name, expression in others.items()]
        return f"SELECT {', '.join([*labels, *others])} FROM (SELECT {', '.join(inner)} FROM {source})"

    def _given(self) -> dict[str, tuple[list[str], str]]:
        """Values of each added label: by route, and without one."""
        every = dict(self.labels or {})
        names = dict.fromkeys([*every, *(name for route in self.routes for name in route.labels)])
        return {
            name: ([route.labels.get(name, every.get(name, "")) for route in self.routes], every.get(name, ""))
            for name in names
            if name not in RESERVED_LABELS
        }


def line_sql(text: str) -> str:
    """Write a text without line breaks and control characters."""
    return f"replaceRegexpAll({text}, '{_BLANK}', ' ')"


def alertname_sql(kind: str) -> str:
    """Write the alertname of a kind."""
    part = "concat(upper(substring(part, 1, 1)), lower(substring(part, 2)))"
    return f"concat('{ALERT_PREFIX}', arrayStringConcat(arrayMap(part -> {part}, splitByChar('_', {kind}))))"


def evaluator_sql(metric: str) -> str:
    """Write the evaluator of a metric; empty for a name without one."""
    return f"if(position({metric}, '.') > 0, splitByChar('.', {metric})[1], '')"


def _values(texts: Iterable[str]) -> str:
    """Write texts as values of labels: on one line, long ones shortened with a digest."""
    lines = (
        f"arrayMap(one -> trim(BOTH ' ' FROM if(match(one, '^[ -~]*$'), one, {line_sql('one')})), "
        f"{array((f'toString({text})' for text in texts), 'String')})"
    )
    digest = f"substring(lower(hex(SHA256(one))), 1, {_DIGEST})"
    cut = f"concat(substringUTF8(one, 1, {LONGEST_LABEL - _DIGEST - 1}), '~', {digest})"
    return f"arrayMap(one -> if(lengthUTF8(one) <= {LONGEST_LABEL}, one, {cut}), {lines})"


def _chosen(by_route: Sequence[str], otherwise: str) -> str:
    """Write the value of the route that matches."""
    values = [label_value(one) for one in (otherwise, *by_route)]
    if len(set(values)) == 1:
        return literal(values[0])
    return f"{array(map(literal, values), 'String')}[route_number + 1]"
