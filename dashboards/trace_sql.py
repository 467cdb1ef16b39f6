"""SQL of one trace: which it is, its facts, scores, labels and problems, and the traces to choose from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragtide.dashboards.rule_lines import RuleLine
from ragtide.dashboards.sql import APP, Tables
from ragtide.dashboards.trace_evidence_sql import Field, Line, evidence, is_bad, lines_of, pieces
from ragtide.dashboards.trace_links import filled_template_sql
from ragtide.dashboards.variable_sql import in_variable, value
from ragtide.drift.sql import array, text
from ragtide.evaluators.spec import Evaluator

NEWEST = "newest"  # the choice of variable `worst` that sorts by time
_IS_ONE = "trace_id IN (given, trim(given)) AND given != ''"  # a pasted id may have white space around it
_RUN = f"run_id IN ({value('run')}, if({value('run')} = 'live', 'probe', {value('run')}))"
_HERE = f"{_RUN} AND {APP} AND {in_variable('environment')} AND {in_variable('model')} AND $__timeFilter(time)"
# Panels ask one after the other: the newest trace must be the same for all, and all its rows stored.
_SETTLED = "time <= $__toTime - toIntervalSecond(least(15, intDiv(dateDiff('second', $__fromTime, $__toTime), 20)))"
_ERRORS = f"({value('errors')} != 'only' OR error != '')"
_PLACE = "run_id = one.1 AND app = one.2 AND environment = one.3 AND time = one.4 AND trace_id = one.5"
_MOST_TRACES = 50
_QUESTION = 120  # characters of a question in the list


@dataclass(frozen=True, slots=True)
class TraceQueries:
    """Queries about the chosen trace. One that is named is found up to the end of the range, however old it is."""

    tables: Tables
    registry: Mapping[str, Evaluator]
    rule_lines: Mapping[str, RuleLine]

    def choices(self) -> str:
        """Return the chosen trace, else the newest or worst of the choice: what it was, and its failed metrics."""
        judged = [line for line in self._lines() if line.metric in self.rule_lines]
        line, sign = _by_metric(judged, "line", "0."), _by_metric(judged, "sign", "0")
        times = "arrayMap(p -> p.2, picks)"
        named = (
            f"{_RUN} AND {APP} AND trace_id IN (SELECT arrayJoin(arrayMap(p -> p.1, picks))) "
            f"AND time >= arrayMin({times}) AND time <= arrayMax({times})"
        )
        verdicts = (
            "SELECT trace_id, count() AS judged, countIf(bad) AS failed, argMaxIf(metric, short, bad) AS worst, "
            "argMaxIf(number, short, bad) AS worst_value FROM ("
            "SELECT trace_id, concat(evaluator, '.', pair.1) AS metric, pair.2 AS number, "
            f"{line} AS line, {sign} AS sign, {is_bad('number', 'line', 'sign')} AS bad, "
            "(line - number) * sign / greatest(abs(line), 0.01) AS short FROM ("
            "SELECT trace_id, evaluator, arrayJoin(CAST(metrics, 'Array(Tuple(String, Float64))')) AS pair "
            f"FROM ({self._newest('scores', 'trace_id, evaluator, status, metrics', named)}) WHERE status = 'scored')) "
            "WHERE sign != 0 GROUP BY trace_id"
        )
        asked = (
            f"SELECT trace_id, any(leftUTF8(ifNull(question, ''), {_QUESTION})) AS question "
            f"FROM ({self._newest('trace_texts', 'trace_id, question', named)}) GROUP BY trace_id"
        )
        columns = "time, trace_id, error, latency_s, cost_usd, environment, model, prompt_version"
        return (
            f"WITH {self._picks()} SELECT t.time AS time, t.trace_id AS trace_id, "
            "q.question AS question, "
            "if(s.judged = 0, NULL, s.failed) AS `failed metrics`, s.judged AS `of judged`, s.worst AS `worst metric`, "
            "if(s.worst = '', NULL, s.worst_value) AS `its value`, t.error AS error, "
            "t.latency_s AS latency, t.cost_usd AS cost, t.environment AS environment, t.model AS model, "
            f"t.prompt_version AS `prompt version` "
            f"FROM ({self._newest('traces', columns, named)}) AS t "
            f"LEFT JOIN ({verdicts}) AS s ON t.trace_id = s.trace_id "
            f"LEFT JOIN ({asked}) AS q ON t.trace_id = q.trace_id "
            "ORDER BY indexOf(arrayMap(p -> p.1, picks), t.trace_id), time DESC"
        )

    def text(self, field: Field) -> str:
        """Return the texts of a field in pieces, see `trace_evidence_sql.pieces`."""
        return pieces(self.tables, self._one(), _PLACE, self._evidence(), field)

    def evidence(self) -> str:
        """Return every place that an evaluator points at, by position alone; the worst first."""
        order = "indexOf(['bad', 'weak', 'noted', 'good'], verdict)"
        return (
            f"WITH {self._one()} SELECT verdict, evaluator, replaceAll(kind, '_', ' ') AS kind, "
            "field, chunk_id AS chunk, "
            f"start AS `from`, end AS `to`, score, nearest AS `nearest chunk` FROM ({self._evidence()}) "
            f"ORDER BY {order}, evaluator, number LIMIT 1000"
        )

    def scores(self) -> str:
        """Return each metric and each evaluator without one: value, line, verdict, why; failed ones first."""
        lines = self._lines()
        line, sign = _by_metric(lines, "line", "0."), _by_metric(lines, "sign", "0")
        bounds = "if(sign = 0 OR key = '', '', concat(if(sign = 1, '≥ ', '≤ '), toString(line)))"
        verdict = (
            "multiIf(status = 'failed', 'evaluator failed', status = 'not_applicable', 'not applicable', "
            f"status = 'sampled_out', 'not in the sample', sign = 0, 'no threshold', "
            f"{is_bad('number', 'line', 'sign')}, 'fail', 'pass')"
        )
        labels = (
            "arrayStringConcat(arrayMap((k, v) -> concat(k, ' = ', v), mapKeys(categories), "
            "mapValues(categories)), ', ')"
        )
        order = "['fail', 'evaluator failed', 'pass', 'no threshold', 'not applicable', 'not in the sample']"
        explained = f"SELECT evaluator, version, explanation FROM {self._name('explanations')} FINAL WHERE {_PLACE}"
        return (
            f"WITH {self._one()} SELECT {verdict} AS verdict, metric, if(key = '', NULL, number) AS value, "
            f"{bounds} AS threshold, replaceAll(reason, '_', ' ') AS reason, {labels} AS labels, "
            "replaceAll(arrayStringConcat(findings, ', '), '_', ' ') AS findings, explanation FROM ("
            f"SELECT evaluator, status, reason, categories, findings, explanation, key, number, "
            f"if(key = '', toString(evaluator), concat(evaluator, '.', key)) AS metric, {line} AS line, {sign} AS sign "
            "FROM (SELECT evaluator, status, reason, categories, findings, explanation, "
            "arrayJoin(if(empty(metrics), [('', 0.)], "
            "arrayZip(CAST(mapKeys(metrics), 'Array(String)'), mapValues(metrics)))) AS pair, pair.1 AS key, "
            f"pair.2 AS number FROM {self._name('scores')} AS s FINAL "
            f"LEFT JOIN ({explained}) AS e USING (evaluator, version) WHERE {_PLACE})) "
            f"ORDER BY indexOf({order}, verdict), metric LIMIT 1000"
        )

    def facts(self) -> str:
        """Return what is known of the trace, a row each; without what was not recorded."""
        number = "ifNull(toString(round({}, 6)), '')".format
        facts = {
            "trace": "trace_id",
            "time": "concat(formatDateTime(time, '%Y-%m-%d %H:%i:%S'), ' UTC')",
            "application": "app",
            "environment": "environment",
            "run": "run_id",
            "model": "model",
            "model asked for": "if(model_requested = model, '', model_requested)",
            "provider": "provider",
            "prompt version": "prompt_version",
            "task": "task",
            "probe": "probe",
            "error": "error",
            "latency, s": number("latency_s"),
            "first token, s": number("first_token_s"),
            "cost, USD": number("cost_usd"),
            "input tokens": number("input_tokens"),
            "output tokens": number("output_tokens"),
            "session": "session_id",
            "user": "user_id",
            "categories": "arrayStringConcat(categories, ', ')",
            "segments": "arrayStringConcat(arrayMap((k, v) -> concat(k, ' = ', v), mapKeys(segments), "
            "mapValues(segments)), ', ')",
            "related traces": "if(relationships IN ('', '[]'), '', relationships)",
            "test case": "if(test_case IN ('', '{}'), '', test_case)",
            "message": "concat(topic, '/', toString(partition), '/', toString(offset))",
            "revision by labels": f"if({_REVISION} = 0, '', toString({_REVISION}))",
        }
        pairs = ", ".join(f"({text(name)}, toString({sql}))" for name, sql in facts.items())
        return (
            f"WITH {self._one()} SELECT fact.1 AS name, fact.2 AS value FROM (SELECT [{pairs}] AS facts "
            f"FROM {self._name('traces')} FINAL WHERE {_PLACE}) ARRAY JOIN facts AS fact WHERE fact.2 != ''"
        )

    def versions(self) -> str:
        """Return the fingerprint of each evaluator that saw the trace, and how many traces its row stands for."""
        return (
            f"WITH {self._one()} SELECT evaluator, bitAnd(version, 65535) AS version, fingerprint, "
            f"weight AS `stands for traces`, ingested_at AS `stored at` FROM {self._name('scores')} FINAL "
            f"WHERE {_PLACE} ORDER BY evaluator LIMIT 500"
        )

    def labels(self) -> str:
        """Return what people said of the trace, the newest first."""
        return (
            f"WITH {self._one()} SELECT time, author, thumbs, score, comment, expected AS `reference answers`, "
            f"relevance AS `grades of chunks`, classes FROM {self._name('labels')} FINAL "
            f"WHERE trace_id = one.5 AND trace_id != '' AND time <= $__toTime ORDER BY time DESC LIMIT 100"
        )

    def problems(self) -> str:
        """Return the problems that have named the trace as an example, the newest first."""
        ids = (
            f"SELECT problem_id FROM {self._name('problem_events')} WHERE app = one.2 AND has(examples, one.5) "
            "AND one.5 != ''"
        )
        return (
            f"WITH {self._one()} SELECT state, severity, type, metric, description, opened_at, problem_id, app "
            f"FROM {self._name('problems')} WHERE problem_id IN ({ids}) AND first_seen_at <= $__toTime "
            "ORDER BY first_seen_at DESC LIMIT 100"
        )

    def links(self, templates: Mapping[str, str]) -> str:
        """Return a row per template: name and URL of the trace in another tool; no row without a trace."""
        fields = {
            "trace_id": "one.5",
            "app": "one.2",
            "environment": "one.3",
            "run": "one.1",
            "session_id": "session_id",
            "time_ms": "toUnixTimestamp64Milli(time)",
        }
        listed = ", ".join(
            f"({text(name)}, {filled_template_sql(template, fields)})" for name, template in templates.items()
        )
        return (
            f"WITH {self._one()} SELECT link.1 AS tool, link.2 AS url FROM ("
            f"SELECT [{listed}] AS links FROM {self._name('traces')} FINAL WHERE {_PLACE}) ARRAY JOIN links AS link"
        )

    def sortable(self) -> str:
        """Return a query of the choices of variable `worst`: the newest, or a metric that the application has."""
        metrics = [
            f"{one.id}.{metric.key}" for one in self.registry.values() for metric in one.metrics if metric.primary
        ]
        listed = array(map(text, metrics), "String")
        return (
            f"SELECT {text(NEWEST)} AS value, 'newest first' AS label UNION ALL SELECT * FROM (SELECT "
            "DISTINCT metric AS value, "
            f"metric AS label {self.tables.choices(every_metric=True)} AND {_RUN} AND {APP} "
            f"AND has({listed}, metric) ORDER BY metric)"
        )

    def _picks(self) -> str:
        """Write the name `picks` of the traces to list: an array of (trace_id, time), in order.

        Without FINAL, for speed: what has been deleted is missing from the tables that are joined. Long ids stand in
        the statement once: it may be 256 KiB long.
        """
        traces = f"SELECT trace_id, time FROM {self._name('traces')} WHERE NOT is_deleted"
        one = f"{traces} AND {_RUN} AND {APP} AND {_IS_ONE} AND time <= $__toTime LIMIT 10"
        none = "given = ''"
        newest = (
            f"{traces} AND {none} AND sorted_by IN ('', {text(NEWEST)}) AND {_HERE} AND {_SETTLED} AND {_ERRORS} "
            f"ORDER BY time DESC, trace_id LIMIT 1 BY trace_id LIMIT {_MOST_TRACES}"
        )
        evaluator, key = (f"splitByChar('.', sorted_by, 2)[{at}]" for at in (1, 2))
        better = {
            f"{one.id}.{metric.key}": 1 if metric.better == "higher" else -1
            for one in self.registry.values()
            for metric in one.metrics
        }
        failed = f"SELECT trace_id FROM {self._name('traces')} WHERE {none} AND {_HERE} AND error != ''"
        of_evaluator = f"{none} AND {_HERE} AND {_SETTLED} AND evaluator = {evaluator}"
        by_score = (
            f"SELECT trace_id, time FROM ({self._newest('scores', 'trace_id, time, status, metrics', of_evaluator)}) "
            f"WHERE status = 'scored' AND mapContains(metrics, {key}) "
            f"AND ({value('errors')} != 'only' OR trace_id IN ({failed})) "
            f"ORDER BY metrics[{key}] * {_transform('sorted_by', better, '1')}, time DESC, trace_id "
            f"LIMIT {_MOST_TRACES}"
        )
        each = " UNION ALL ".join(
            f"SELECT groupArray((trace_id, time)) AS some FROM ({sql})" for sql in (one, newest, by_score)
        )
        named = f"{value('trace_id')} AS given, {value('worst')} AS sorted_by"
        return f"{named}, (SELECT groupArrayArray(some) FROM ({each})) AS picks"

    def _one(self) -> str:
        """Write the name `one` of the place of the first trace that is listed: (run, app, environment, time, id)."""
        ids, times = "arrayMap(p -> p.1, picks)", "arrayMap(p -> p.2, picks)"
        return (
            f"{self._picks()}, "
            "(SELECT (toString(run_id), toString(app), toString(environment), time, trace_id) "
            f"FROM {self._name('traces')} FINAL WHERE {_RUN} AND {APP} AND trace_id IN (SELECT arrayJoin({ids})) "
            f"AND time >= arrayMin({times}) AND time <= arrayMax({times}) "
            f"ORDER BY indexOf({ids}, trace_id), version DESC LIMIT 1) AS one"
        )

    def _newest(self, table: str, columns: str, where: str) -> str:
        """Return the rows that FINAL would, of a few traces: much faster, since it uses the index of trace ids."""
        key = f"run_id, app, environment{', evaluator' * (table == 'scores')}, toStartOfMinute(time), trace_id"
        rows = f"SELECT {columns}, is_deleted FROM {self._name(table)} WHERE {where}"
        return f"SELECT {columns} FROM ({rows} ORDER BY version DESC LIMIT 1 BY {key}) WHERE NOT is_deleted"

    def _evidence(self) -> str:
        return evidence(self.tables, _PLACE, self.registry, self._lines())

    def _lines(self) -> list[Line]:
        return lines_of(self.registry, self.rule_lines)

    def _name(self, table: str) -> str:
        return self.tables.name(table)


_REVISION = "bitAnd(bitShiftRight(version, 16), 65535)"  # of `ragtide.sinks.version`: labels that the trace carries


def _by_metric(lines: Sequence[Line], what: str, otherwise: str) -> str:
    return _transform("metric", {line.metric: getattr(line, what) for line in lines}, otherwise)


def _transform(column: str, values: Mapping[str, float], otherwise: str) -> str:
    names = array(map(text, values), "String")
    type_ = "Float64" if otherwise.endswith(".") else "Int8"
    return (
        f"transform(toString({column}), {names}, {array(map(repr, values.values()), type_)}, "
        f"CAST({otherwise}, '{type_}'))"
    )
