"""SQL of quality: metrics judged over a time range by the lines of their rules."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ragtide.dashboards.rule_lines import RuleLine
from ragtide.dashboards.sql import HERE, OPEN_PROBLEMS, Tables, among, counts, wrong
from ragtide.drift.rules import ROUNDING
from ragtide.drift.sql import array, text

_FLOAT = "CAST(NULL, 'Nullable(Float64)')"


@dataclass(frozen=True, slots=True)
class Judge:
    """The lines of rules as expressions over a column, or a variable, that names the metric."""

    rule_lines: Sequence[RuleLine]
    metric: str = "metric"

    @property
    def names(self) -> list[str]:
        """Metrics that have a line."""
        return [each.metric for each in self.rule_lines]

    @property
    def line(self) -> str:
        """Border between good and bad records; NULL without one."""
        return self._of((each.line for each in self.rule_lines), _FLOAT)

    @property
    def sign(self) -> str:
        """1 where small values are bad, -1 where large ones are; 0 without a line."""
        return self._of((1 if each.is_min else -1 for each in self.rule_lines), "0")

    @property
    def limit(self) -> str:
        """Greatest good share of bad records; -1 where the mean is judged."""
        return self._of((-1.0 if each.limit is None else each.limit for each in self.rule_lines), "-1.")

    @property
    def own(self) -> str:
        """Condition: windows have a number of their own, which is no mean over records."""
        return f"has({array((text(each.metric) for each in self.rule_lines if each.own), 'String')}, {self.metric})"

    def windows(self, source: str) -> str:
        """FROM: rows of `source` (FROM and WHERE of windows) with `bad_n`, `told_n` and `level_n`.

        `bad_n` are the records on the wrong side of the line. `level_n` / `told_n` is the mean of a window, or its own
        number; windows add up by both.
        """
        edge = self._of((each.edge for each in self.rule_lines), "0")
        lined = f"SELECT *, {self.sign} AS sign, {edge} AS edge, {self.own} AS own {source}"
        return (
            f"FROM (SELECT *, {wrong('sign', 'edge')} AS bad_n, if(own, scored * isNotNull(value), scored) AS told_n, "
            f"if(own, ifNull(value, 0) * scored, sum) AS level_n FROM ({lined}))"
        )

    def passes(self, mean: str, bad_share: str) -> str:
        """Condition: the mean, or the share of bad records where records are judged, is within the limit."""
        within = f"({mean} - {self.line}) * {self.sign} >= -{ROUNDING} * abs({self.line})"
        return f"if({self.limit} < 0, {within}, {bad_share} <= {self.limit})"

    def _of(self, values: Iterable[float], otherwise: str) -> str:
        if not self.rule_lines:
            return otherwise
        names = ", ".join(map(text, self.names))
        return f"transform({self.metric}, [{names}], [{', '.join(map(repr, values))}], {otherwise})"


def overview(tables: Tables, rule_lines: Sequence[RuleLine]) -> str:
    """One row per metric: mean, share of bad records, sample size, coverage; the bad ones first."""
    judge = Judge(rule_lines)
    more = ", sum(bad_n) AS wrong_n, sum(told_n) AS told, sum(level_n) AS level"
    by_metric = counts(judge.windows(tables.covering(among(judge.names), HERE)), more)
    problems = f"SELECT metric FROM {tables.name('problems')} WHERE {OPEN_PROBLEMS}"
    open_ = f"metric IN ({problems}) OR splitByChar('.', metric)[1] IN ({problems})"  # findings are of an evaluator
    states = (
        f"multiIf({open_}, 'problem', isNull(mean), 'no data', {judge.passes('mean', '`bad records`')}, 'good', 'bad')"
    )
    return (
        f"WITH {judge.limit} AS most SELECT metric, sum(level) / nullIf(sum(told), 0) AS mean, "
        f"if(most < 0, {judge.line}, NULL) AS `limit of mean`, "
        "sum(wrong_n) / nullIf(sum(scored_n), 0) AS `bad records`, "
        f"if(most < 0, NULL, most) AS `limit of bad records`, {states} AS state, sum(scored_n) AS scored, "
        "sum(scored_n) / nullIf(sum(applicable_n), 0) AS `of applicable`, "
        f"sum(scored_n) / nullIf(sum(seen_n), 0) AS `of all` FROM ({by_metric}) "
        "GROUP BY metric ORDER BY indexOf(['problem', 'bad', 'good', 'no data'], state), metric"
    )
