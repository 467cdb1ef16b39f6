"""The rule that makes an alert of each open problem, with the labels that its alert in Alertmanager has."""

from collections.abc import Mapping
from dataclasses import dataclass

from ragtide.dashboards.alerting.labels import LabelColumns, alertname_sql, evaluator_sql, line_sql
from ragtide.dashboards.alerting.links import Links
from ragtide.dashboards.alerting.rule import Rule
from ragtide.dashboards.sql import Tables
from ragtide.drift.problems import INHIBITED_BY_APP, INHIBITED_BY_EVALUATOR, LEAK_TYPES, OBJECTIVE, Problem
from ragtide.drift.settings import SEVERITIES
from ragtide.drift.sql import text
from ragtide.drift.sql import texts as listed
from ragtide.drift.text import one_line, scope_label

PROBLEM_RULE = "problems"
PROBLEM_TITLE = "ragtide problem"  # also label `alertname` of its alerts
_LONGEST_DESCRIPTION = 3000
_MOST_TEXTS = 1000  # alerts with a description of their own: Grafana compares each with each alert
# Where; then type, metric and segment. Without an application, it is a problem of ragtide itself.
_WHERE = "{{ with $labels.app }}{{ . }}{{ else }}ragtide{{ end }}{{ with $labels.environment }} ({{ . }}){{ end }}"
_WHAT = "{{ $labels.type }}{{ with $labels.metric }}, {{ . }}{{ end }}{{ with $labels.segment }}, {{ . }}{{ end }}"
_SUMMARY = f"{_WHERE}: {{{{ $labels.type }}}}"  # of labels that a group shares: Grafana shows a common one
_PLACE = f"{_WHERE}: {_WHAT}"
_SHORT_PLACE = (  # of 80 characters at most
    '{{ with $labels.app }}{{ printf "%.28s" . }}{{ else }}ragtide{{ end }}: {{ printf "%.20s" $labels.type }}'
    '{{ with $labels.metric }}, {{ printf "%.28s" . }}{{ end }}'
)
_SEVERITIES = ", ".join(map(text, SEVERITIES))


@dataclass(frozen=True, slots=True)
class ProblemRule:
    """Open problems as alerts, without symptoms and muted problems, `wait_s` after they opened; leaks at once.

    `with_objectives` is false if burn-rate rules say the same as problems of objectives.
    """

    tables: Tables
    labels: LabelColumns
    links: Links
    wait_s: float = 30.0
    with_objectives: bool = True

    def rule(self) -> Rule:
        """Return the rule. If ClickHouse cannot be asked, alerts stay as they are."""
        texts = {"title": line_sql("o.title"), "description": _description(), "open": "toFloat64(1)"}
        return Rule(
            name=PROBLEM_RULE,
            title=PROBLEM_TITLE,
            sql=f"{self._select({'open': 'toFloat64(1)'})} ORDER BY problem_id",
            texts=f"{self._select(texts)} ORDER BY {_rank('severity')} DESC, problem_id LIMIT {_MOST_TEXTS}",
            limit=0,
            annotations={
                "title": _text("title", _SHORT_PLACE),
                "summary": _SUMMARY,
                "description": _text("description", f"{{{{ $labels.problem }}}}: {_PLACE}"),
                **self.links.of_problem(),
            },
            on_error="KeepLast",
            for_s=0,
        )

    def _select(self, others: Mapping[str, str]) -> str:
        kind = "multiIf(s.opened_by != '', s.opened_by, notEmpty(o.kinds), o.kinds[1], 'threshold')"
        given: Mapping[str, str] = {
            "problem": alertname_sql(kind),
            "app": "o.app",
            "environment": "o.environment",
            "severity": "o.severity",
            "type": "o.type",
            "metric": "o.metric",
            "evaluator": evaluator_sql("o.metric"),
            "segment": "if(o.segment = '', '', concat(o.segment, '=', o.segment_value))",
            "model": "o.model",
            "problem_id": "o.problem_id",
        }
        return self.labels.select(given, others, self._problems())

    def _problems(self) -> str:
        """FROM and WHERE: `o` is the problem, `p` its parent, `s` has the kind that opened it."""
        name = self.tables.name
        # Only columns that are compared: a join copies what it reads.
        parents = (
            "SELECT problem_id, episode, app, environment, model, aspect, metric, segment, severity "
            f"FROM {name('problems')} WHERE (problem_id, episode) IN "
            f"(SELECT parent_id, parent_episode FROM {name('problem_groups')} FINAL WHERE parent_id != '')"
        )
        muted = "o.muted_by != '' AND (o.muted_until IS NULL OR now64(3) < o.muted_until)"
        settled = (
            f"(o.opened_at <= now64(3) - toIntervalMillisecond({round(self.wait_s * 1000)}) "
            f"OR o.type IN {listed(LEAK_TYPES)})"
        )
        objectives = "" if self.with_objectives else f" AND o.segment != {text(OBJECTIVE)}"
        return (
            f"(SELECT * FROM {name('problems')} WHERE state = 'open' ORDER BY episode DESC LIMIT 1 BY problem_id) AS o "
            f"LEFT JOIN ({self.tables.opening_kinds()}) AS s ON o.problem_id = s.problem_id AND o.episode = s.episode "
            f"LEFT JOIN ({parents}) AS p ON o.parent_id = p.problem_id AND o.parent_episode = p.episode "
            f"WHERE NOT ({muted}) AND {settled}{objectives} AND NOT ({_says_enough()})"
        )


def problem_texts(problem: Problem, labels: Mapping[str, str]) -> dict[str, str]:
    """Return the texts that the rule's annotations have for a problem whose alert has these labels."""
    where = scope_label(labels.get("app", "ragtide"), labels.get("environment", ""))
    lines = [problem.description]
    lines += [f"Why: {problem.explanation}"] if problem.explanation else []
    lines += [f"To do: {problem.actions[0]}"] if problem.actions else []
    description = "\n".join(filter(None, map(one_line, lines)))[:_LONGEST_DESCRIPTION]
    found = {"title": one_line(problem.title), "summary": f"{where}: {labels['type']}", "description": description}
    return {name: text for name, text in found.items() if text}


def _says_enough() -> str:
    """Write `ragtide.drift.problems.speaks_for`: the parent is as severe, or the symptom means nothing beside it.

    A parent that is not known any more says nothing.
    """
    same_evaluator = f"{_before_dot('o.metric')} = {_before_dot('p.metric')}"
    expected = [f"p.aspect = 'missing' AND o.aspect IN {listed(INHIBITED_BY_APP)}"]
    expected += [
        f"p.aspect = {text(cause)} AND o.aspect IN {listed(others)} AND {same_evaluator}"
        for cause, others in INHIBITED_BY_EVALUATOR.items()
    ]
    same_place = "p.app = o.app AND p.environment = o.environment AND p.model IN ('', o.model) AND p.segment = ''"
    means_nothing = f"{same_place} AND ({' OR '.join(expected)})"
    return f"ifNull(p.problem_id, '') != '' AND ({_rank('o.severity')} <= {_rank('p.severity')} OR {means_nothing})"


def _before_dot(metric: str) -> str:
    return f"splitByChar('.', {metric})[1]"


def _rank(severity: str) -> str:
    return f"indexOf([{_SEVERITIES}], {severity})"


def _description() -> str:
    lines = [
        line_sql("o.description"),
        f"if(o.explanation = '', '', concat('Why: ', {line_sql('o.explanation')}))",
        f"if(empty(o.actions), '', concat('To do: ', {line_sql('o.actions[1]')}))",
    ]
    whole = f"arrayStringConcat(arrayFilter(line -> line != '', [{', '.join(lines)}]), '\\n')"
    return f"substringUTF8({whole}, 1, {_LONGEST_DESCRIPTION})"


def _text(name: str, otherwise: str) -> str:
    """Write a text of the second query; `otherwise` where it has no row for the alert."""
    missing = f"{{{{ else }}}}{otherwise}{{{{ end }}}}"
    return f"{{{{ with $values.T }}}}{{{{ with .Labels.{name} }}}}{{{{ . }}}}{missing}{missing}"
