"""SQL of problems over their life, of one of them in detail, of insights and of notifications."""

from collections.abc import Mapping
from dataclasses import dataclass

from ragtide.dashboards.rule_lines import RuleLine
from ragtide.dashboards.runbook_links import runbook_panel_sql
from ragtide.dashboards.sql import Tables, words
from ragtide.dashboards.trace_links import trace_link_sql
from ragtide.dashboards.variable_sql import any_in_variable, in_variable, options, value
from ragtide.drift.sql import array, text

SEVERITIES = ("info", "warning", "critical")  # the least severe first
_SEVERITY = "indexOf(['info', 'warning', 'critical'], severity)"
_APP = f"(app = '' OR {in_variable('app')} AND {in_variable('environment')})"  # '': the system itself
_MATCHES = (
    f"{_APP} AND {in_variable('type')} AND {in_variable('severity')} AND {any_in_variable('kinds', 'kind')} "
    f"AND {any_in_variable('standards', 'standard')}"
)
_IN_RANGE = "first_seen_at <= $__toTime AND ifNull(resolved_at, now64(3)) >= $__fromTime"
_GIVEN = f"trim({value('problem')})"
_SEGMENT = "if(segment = '', '', concat(segment, ' = ', segment_value)) AS segment"
_RAW = "trim(BOTH '\"' FROM pair.2)"
_FIGURE = f"if(isNull(toFloat64OrNull({_RAW})), {_RAW}, toString(round(toFloat64OrZero({_RAW}), 4)))"
_MOST = 500  # problems of a table
_BARS = 25  # problems of the timeline
_POINTS = 240  # of the timeline
# Shown apart from the other attributes, or of no use to people.
_KEY_FIGURES = (
    *("value", "baseline", "threshold", "limit", "sample_size", "wrong", "traffic", "effect_size"),
    *("usual_low", "usual_high", "min", "max", "reasons", "since", "until"),
)
_WHERE = ("app", "environment", "model", "metric", "segment", "segment_value", "evaluator", "revision", "fingerprint")


@dataclass(frozen=True, slots=True)
class ProblemQueries:
    """Queries about problems that overlap the time range, and about the chosen one."""

    tables: Tables
    rule_lines: Mapping[str, RuleLine]
    trace_url: str = ""

    def choices(self, column: str, joined: str = "") -> str:
        """Return a query of the values of a column, of all problems up to the end of the range."""
        source = f"FROM {self._name('problems')}" + (f" ARRAY JOIN {joined} AS {column}" if joined else "")
        return (
            f"SELECT DISTINCT {options(column)} {source} WHERE {column} != '' AND first_seen_at <= $__toTime "
            "ORDER BY label"
        )

    def open_counts(self) -> str:
        """Count problems open at the end of the range, without symptoms, by severity, and the `unattended` ones.

        Nobody has acknowledged, accepted, muted or silenced an unattended problem.
        """
        counted = ", ".join(f"countIf(severity = {text(one)}) AS {one}" for one in SEVERITIES)
        free = f"acked_by = '' AND accepted_by = '' AND NOT ({_muted()}) AND NOT {self.tables.is_silenced()}"
        return (
            f"SELECT {counted}, countIf({free}) AS unattended FROM {self._name('problems')} "
            f"WHERE {_open_at_the_end()} AND {_MATCHES} AND {self.tables.is_parent(_APP)}"
        )

    def median_times(self) -> str:
        """Return the median seconds to `detect` and to `resolve`, of problems that opened in the range."""
        medians = ", ".join(
            f"if(count({one}_s) = 0, NULL, quantileExact(0.5)({one}_s)) AS {one}" for one in ("detect", "resolve")
        )
        return f"SELECT {medians} FROM ({self._durations()})"

    def listed(self) -> str:
        """Return the problems, open ones first, the most severe first."""
        kind = "if(opened_by = '', kinds[1], opened_by)"
        return (
            "SELECT severity, state, opened_at AS opened, description, app AS application, metric, type, "
            f"{_lasted()} AS lasted, {_handled()} AS handled, arrayStringConcat(kinds, ', ') AS "
            "`found by`, environment, "
            f"{_SEGMENT}, arrayStringConcat(standards, ', ') AS standards, problem_id, "
            f"parent_id AS `symptom of`, episode, {runbook_panel_sql(kind)} AS runbook "
            f"FROM (SELECT * FROM {self._name('problems')} WHERE {_MATCHES} AND "
            f"{in_variable('state')} AND {_IN_RANGE}) AS listed "
            f"LEFT JOIN ({self.tables.silenced_by()}) AS silences ON problem_id = silenced_id "
            f"LEFT JOIN ({self.tables.opening_kinds()}) AS opening USING (problem_id, episode) "
            f"ORDER BY indexOf(['open', 'pending', 'resolved'], state), {_SEVERITY} DESC, "
            f"first_seen_at DESC LIMIT {_MOST}"
        )

    def life_cycle(self) -> str:
        """Return a time series per problem: 1, 2 or 3 while it is open by its severity, 0 while it is pending."""
        length = "toInt64(toUInt32($__toTime)) - toInt64(toUInt32($__fromTime))"
        step = f"toUInt32(greatest(toInt64($__interval_s), intDiv({length}, {_POINTS}), 1))"
        newest = (
            f"SELECT problem_id FROM {self._name('problems')} WHERE {_MATCHES} AND "
            f"{in_variable('state')} AND {_IN_RANGE} "
            f"GROUP BY problem_id ORDER BY max(state = 'open') DESC, max(first_seen_at) DESC LIMIT {_BARS}"
        )
        key = "if(metric = '', toString(aspect), arrayElement(splitByChar('.', metric), -1))"
        label = words("app", key, "segment_value")
        state = (
            f"multiIf(at < first_seen_at OR at >= ifNull(resolved_at, now64(3)), NULL, "
            f"at < ifNull(opened_at, now64(3)), 0, toInt32({_SEVERITY}))"
        )
        return (
            f"SELECT toDateTime(at) AS time, any(name) AS problem, problem_id AS id, max(state) AS state FROM ("
            f"SELECT problem_id, {label} AS name, "
            f"arrayJoin(range(toUInt32($__fromTime), toUInt32(least($__toTime, now())) + 1, {step})) AS second, "
            f"toDateTime(second) AS at, {state} AS state "
            f"FROM {self._name('problems')} WHERE {_MATCHES} AND {_IN_RANGE} AND problem_id IN ({newest})) "
            "GROUP BY at, problem_id ORDER BY time, problem"
        )

    def what_happened(self) -> str:
        """Return the message, the likely cause and the steps to take of the chosen problem, a row each."""
        lines = (
            "arrayConcat([('what happened', description), ('likely cause', explanation)], "
            "arrayMap((step, i) -> (concat('what to do, ', toString(i)), step), actions, arrayEnumerate(actions)))"
        )
        return (
            f"WITH {self._one()} SELECT line.1 AS about, line.2 AS text FROM (SELECT {lines} AS every "
            f"{self._of_one()}) ARRAY JOIN every AS line WHERE line.2 != ''"
        )

    def facts(self) -> str:
        """Return what the chosen problem is and who has dealt with it, a row each."""
        moment = "ifNull(formatDateTime({}, '%Y-%m-%d %H:%i:%S'), '')".format
        facts = {
            "problem": "problem_id",
            "state": "concat(state, if(openings > 1, concat(', opened ', toString(openings), ' times'), ''))",
            "severity": "severity",
            "type": words("toString(type)", "code"),
            "application": "if(app = '', 'the system itself', app)",
            "environment": "environment",
            "model": "model",
            "metric": "metric",
            "segment": "if(segment = '', '', concat(segment, ' = ', segment_value))",
            "found by": "arrayStringConcat(kinds, ', ')",
            "no longer by": "if(state = 'open', arrayStringConcat(arrayFilter(k -> NOT "
            "has(active_kinds, k), kinds), ', '), '')",
            "standards": "arrayStringConcat(standards, ', ')",
            "rule": "rule_id",
            "began (UTC)": moment("since"),
            "opened (UTC)": moment("opened_at"),
            "resolved (UTC)": moment("resolved_at"),
            "acknowledged by": "acked_by",
            "accepted by": "accepted_by",
            "muted by": "muted_by",
            "muted until (UTC)": moment("muted_until"),
            "silenced in Alertmanager by": f"if(state = 'open', (SELECT any(silenced_by) FROM "
            f"({self.tables.silenced_by()}) WHERE silenced_id = one.1), '')",
        }
        return self._pairs(facts)

    def evidence(self) -> str:
        """Return the figures behind the chosen problem, the key ones first."""
        order = array(map(text, _KEY_FIGURES), "String")
        left_out = array(map(text, _WHERE), "String")
        return (
            f"WITH {self._one()} SELECT replaceAll(pair.1, '_', ' ') AS figure, {_FIGURE} AS value FROM ("
            f"SELECT JSONExtractKeysAndValuesRaw(attributes) AS every {self._of_one()}) ARRAY JOIN every AS pair "
            f"WHERE pair.2 NOT IN ('null', '\"\"', '[]', '{{}}', '[\"\"]') AND NOT has({left_out}, pair.1) "
            f"ORDER BY indexOf({order}, pair.1) = 0, indexOf({order}, pair.1), pair.1"
        )

    def cause(self) -> str:
        """Return the figures of the likely cause of the chosen problem; those of an object apart."""
        flat = (
            "arrayFlatten(arrayMap(pair -> if(startsWith(pair.2, '{'), arrayMap(part -> (concat(pair.1, ' ', part.1), "
            "part.2), JSONExtractKeysAndValuesRaw(pair.2)), [pair]), JSONExtractKeysAndValuesRaw(cause)))"
        )
        return (
            f"WITH {self._one()} SELECT replaceAll(pair.1, '_', ' ') AS figure, {_FIGURE} AS value FROM ("
            f"SELECT {flat} AS every {self._of_one()}) ARRAY JOIN every AS pair "
            "WHERE pair.2 NOT IN ('null', '\"\"', '[]', '{}') AND pair.1 NOT IN ('opening', 'attempt', 'again_at') "
            "ORDER BY pair.1"
        )

    def examples(self) -> str:
        """Return the example traces of the chosen problem, the worst first."""
        link = trace_link_sql("app", "trace", self.trace_url)
        return (
            f"WITH {self._one()} SELECT i AS rank, trace, {link} AS trace_link FROM (SELECT app, examples "
            f"{self._of_one()}) ARRAY JOIN examples AS trace, arrayEnumerate(examples) AS i WHERE trace != '' "
            "ORDER BY rank"
        )

    def events(self) -> str:
        """Return what happened to the chosen problem in all its episodes, the newest first."""
        return (
            f"WITH {self._one()} SELECT at AS time, episode, event, kind, severity, "
            "if(description = '', JSONExtractString(attributes, 'why'), description) AS message, actor AS `by`, "
            "until "
            f"FROM {self._name('problem_events')} FINAL WHERE problem_id = one.1 AND at <= $__toTime "
            f"ORDER BY at DESC, event_id LIMIT {_MOST}"
        )

    def figure(self) -> str:
        """Return a time series of the value that the chosen problem was judged by, its threshold and its baseline.

        It is the share of bad records where the rule judges that, the share without a score for coverage, the
        window's own number where it has one, else the mean.
        """
        names = array((text(name) for name in self.rule_lines), "String")
        edges = array((str(line.edge) for line in self.rule_lines.values()), "Int32")
        shares = array((text(name) for name, line in self.rule_lines.items() if line.share), "String")
        rule, low, high = "one.8.rule", "one.8.min", "one.8.max"
        edge = f"if(has({shares}, metric), toInt32(round(ifNull({low}, ifNull({high}, 0)) * 100)), "
        edge += f"transform(toString(metric), {names}, {edges}, toInt32(0)))"
        sign = f"if(isNotNull({low}), 1, -1)"
        wrong = f"sum(arraySum(mapValues(mapFilter((bin, n) -> bin * {sign} < {edge} * {sign}, bins))))"
        return (
            f"WITH {self._one()} SELECT $__timeInterval(start) AS time, "
            f"multiIf(one.9 = 'coverage', sum(failed) / nullIf(sum(applicable), 0), "
            f"{rule} IN ('share', 'any'), {wrong} / nullIf(sum(scored), 0), "
            "count(windows.value) > 0, avg(windows.value), sum(sum) / nullIf(sum(scored), 0)) AS value, "
            f"if({rule} IN ('share', 'any') OR one.9 = 'coverage', "
            f"if({rule} = 'any', 0, one.8.limit), one.8.threshold) AS threshold, "
            f"one.8.baseline AS baseline {self._windows()} "
            "GROUP BY time ORDER BY time"
        )

    def records(self) -> str:
        """Return a time series of the records that `figure` rests on."""
        return (
            f"WITH {self._one()} SELECT $__timeInterval(start) AS time, "
            f"sum(if(one.9 = 'coverage', applicable, scored)) AS records {self._windows()} GROUP BY time ORDER BY time"
        )

    def durations(self) -> str:
        """Return by type and severity how long detection and resolution took."""

        def of(which: str, name: str) -> str:
            column = f"{which}_s"
            return (
                f"count({column}) AS `{name}`, quantileExact(0.5)({column}) AS `{which}, median`, "
                f"quantileExact(0.9)({column}) AS `{which}, 90 %`"
            )

        return (
            f"SELECT type, severity, count() AS problems, {of('detect', 'detected')}, {of('resolve', 'resolved')} "
            f"FROM ({self._durations()}) GROUP BY type, severity ORDER BY problems DESC, type, "
            f"{_SEVERITY} DESC LIMIT 200"
        )

    def per_day(self) -> str:
        """Return a time series of the problems opened and resolved per day (UTC)."""
        of = f"FROM {self._name('problems')} WHERE {_MATCHES}"
        return (
            "SELECT greatest(toStartOfDay(toDateTime(at)), toDateTime($__fromTime)) AS time, sum(opens) AS opened, "
            "sum(1 - opens) AS resolved FROM ("
            f"SELECT assumeNotNull(opened_at) AS at, 1 AS opens {of} AND isNotNull(opened_at) UNION ALL "
            f"SELECT assumeNotNull(resolved_at) AS at, 0 AS opens {of} AND isNotNull(resolved_at)) "
            "WHERE $__timeFilter(at) GROUP BY time ORDER BY time"
        )

    def insights(self) -> str:
        """Return the insights whose period overlaps the range, the newest first."""
        return (
            "SELECT period_end AS until, type, description, app AS application, environment, period_start AS since, "
            "arrayStringConcat(actions, ' ') AS `what to do`, examples[1] AS `worst trace`, "
            "length(examples) AS `number of examples`, "
            f"{trace_link_sql('app', 'examples[1]', self.trace_url)} AS trace_link "
            f"FROM (SELECT * FROM {self._name('insights')} FINAL WHERE {_APP} "
            "AND period_start <= $__toTime AND period_end >= $__fromTime AND NOT withdrawn) "
            "ORDER BY until DESC, insight_id LIMIT 200"
        )

    def notifications(self) -> str:
        """Return the messages of the range by receiver and state."""
        return (
            "SELECT target AS receiver, state, count() AS messages, sum(attempts) AS attempts, "
            "min(written_at) AS oldest, "
            "max(updated_at) AS `last change`, argMax(why, (why != '', updated_at)) AS `last error` "
            f"FROM {self._name('outbox')} FINAL WHERE written_at <= $__toTime AND updated_at >= $__fromTime "
            "GROUP BY target, state ORDER BY indexOf(['pending', 'refused', 'sent'], state), receiver"
        )

    def _durations(self) -> str:
        """Return type, severity, and seconds to detect and to resolve, of problems that opened in the range."""
        began = (
            "SELECT problem_id AS id, episode AS number, min(since) AS began "
            f"FROM {self._name('problem_events')} FINAL WHERE event = 'opened' AND at <= $__toTime GROUP BY id, number"
        )
        seconds = "if(isNull({0}) OR isNull({1}), NULL, greatest(dateDiff('millisecond', {0}, {1}), 0) / 1000)".format
        return (
            f"SELECT type, severity, {seconds('began', 'opened_at')} AS detect_s, "
            f"{seconds('opened_at', 'resolved_at')} AS resolve_s FROM (SELECT * FROM {self._name('problems')} "
            f"WHERE {_MATCHES} AND isNotNull(opened_at) AND $__timeFilter(opened_at)) AS p "
            f"LEFT JOIN ({began}) AS b ON p.problem_id = b.id AND p.episode = b.number"
        )

    def _one(self) -> str:
        """Write the name `one` of the chosen problem: the newest episode of the id, else the worst of the choice.

        Its parts: id, episode, app, environment, metric, model, (segment, value), figures, aspect.
        """
        parts = "problem_id, episode, app, environment, metric, model, (segment, segment_value), figures, aspect"
        columns = f"({parts}) AS parts, first_seen_at AS seen"
        given = f"SELECT {columns}, 9 AS rank FROM {self._name('problems')} WHERE {_GIVEN} != '' "
        given += f"AND startsWith(problem_id, {_GIVEN}) AND first_seen_at <= $__toTime"
        rank = f"multiIf(state = 'open', 4, 0) + {_SEVERITY}"
        worst = f"SELECT {columns}, {rank} AS rank FROM {self._name('problems')} WHERE {_GIVEN} = '' AND {_MATCHES} "
        worst += f"AND {in_variable('state')} AND {_IN_RANGE}"
        return f"(SELECT argMax(parts, (rank, seen)) FROM ({given} UNION ALL {worst})) AS one"

    def _of_one(self) -> str:
        return (
            f"FROM {self._name('problems')} WHERE problem_id = one.1 AND episode = one.2 AND first_seen_at <= $__toTime"
        )

    def _pairs(self, facts: Mapping[str, str]) -> str:
        pairs = ", ".join(f"({text(name)}, toString({sql}))" for name, sql in facts.items())
        return (
            f"WITH {self._one()} SELECT fact.1 AS name, fact.2 AS value FROM (SELECT [{pairs}] AS facts "
            f"{self._of_one()}) ARRAY JOIN facts AS fact WHERE fact.2 != ''"
        )

    def _windows(self) -> str:
        """FROM and WHERE: the windows of the chosen problem's series, of the size that suits the range."""
        smallest, *larger = sorted(self.tables.sizes_s)
        cases = "".join(f"$__interval_s >= {size}, {size}, " for size in reversed(larger))
        size = f"multiIf({cases}{smallest})" if cases else f"{smallest}"
        return (
            f"FROM {self._name('windows')} AS windows FINAL WHERE run_id = 'live' AND size_s = {size} AND app = one.3 "
            "AND environment = one.4 AND metric = one.5 AND one.5 != '' AND (one.6 = '' OR model = one.6) "
            "AND segment = one.7.1 AND segment_value = one.7.2 AND $__timeFilter(start)"
        )

    def _name(self, table: str) -> str:
        return self.tables.name(table)


def _open_at_the_end() -> str:
    return "opened_at <= $__toTime AND (state = 'open' OR isNull(resolved_at) OR resolved_at > $__toTime)"


def _muted() -> str:
    return "muted_by != '' AND (isNull(muted_until) OR muted_until > now64(3))"


def _lasted() -> str:
    """Write the seconds for which it is or was open; NULL where it never was."""
    return "dateDiff('second', opened_at, ifNull(resolved_at, now64(3)))"


def _handled() -> str:
    """Write who has done what about it, in words."""
    until = "if(isNull(muted_until), '', concat(' until ', ifNull(formatDateTime(muted_until, '%Y-%m-%d %H:%i'), '')))"
    said = [
        "if(acked_by = '', '', concat('acknowledged by ', acked_by))",
        "if(accepted_by = '', '', concat('accepted by ', accepted_by))",
        f"if({_muted()}, concat('muted by ', muted_by, {until}), '')",
        "if(state = 'open' AND silenced_by != '', concat('silenced by ', silenced_by), '')",
    ]
    return f"arrayStringConcat(arrayFilter(s -> s != '', [{', '.join(said)}]), ', ')"
