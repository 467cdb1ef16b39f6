"""Rules about ragtide itself: they fire when it cannot report, because it stopped, waits or loses rows."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ragtide.dashboards.alerting.links import Links
from ragtide.dashboards.alerting.rule import Rule
from ragtide.dashboards.alerting_settings import GrafanaAlertingSettings
from ragtide.dashboards.pipeline_sql import PipelineQueries
from ragtide.dashboards.sql import Tables
from ragtide.dashboards.variable_sql import literal
from ragtide.drift.settings import RuleSettings
from ragtide.drift.sql import array

_HOUR_S = 3600
_LATE_MINUTES = 10
_SERVICE = {"service": "ragtide"}
_CRITICAL: Mapping[str, str] = {**_SERVICE, "severity": "critical"}
_WARNING: Mapping[str, str] = {**_SERVICE, "severity": "warning"}
_LIVE = "run_id = 'live'"
_LETTER = "(run_id, topic, partition, offset, time)"


@dataclass(frozen=True, slots=True)
class HealthRules:
    """Rules about jobs, outbox, lanes, workers, dead letters, evaluators, rows and the disk.

    The first one, the dead man's switch, fires as well where no job ever ran, where Grafana gets no data, and where
    ClickHouse cannot be asked.
    """

    tables: Tables
    queries: PipelineQueries
    links: Links
    rules: RuleSettings
    settings: GrafanaAlertingSettings
    silent_after_s: float

    def all(self) -> Iterator[Rule]:
        """Yield the rules that the settings do not leave out."""
        every = (
            self._jobs_stopped,
            self._outbox_waits,
            self._lane_behind,
            self._workers_silent,
            self._dead_letters,
            self._evaluator_failures,
            self._rows_late,
            self._disk_full,
        )
        left_out: frozenset[str] = frozenset(self.settings.leave_out)
        yield from (rule for rule in (make() for make in every) if rule.name not in left_out)

    def _jobs_stopped(self) -> Rule:
        return Rule(
            name="jobs-stopped",
            title="The jobs of ragtide stopped",
            sql="SELECT toFloat64(dateDiff('second', max(finished_at), now64(3))) AS silent_s "
            f"FROM {self.tables.name('job_runs')} WHERE job = 'watch'",
            limit=self.silent_after_s,
            labels=_CRITICAL,
            annotations=self._texts(
                "No ragtide jobs process does its work: windows are not closed and no problem is found.",
                f"Job `watch` last succeeded more than {self.silent_after_s:g} s ago, or ClickHouse cannot be asked. "
                "/ready of the jobs processes and their logs say why.",
            ),
            no_data="Alerting",
            on_error="Alerting",
        )

    def _outbox_waits(self) -> Rule:
        waits = "if(count() = 0, 0, toFloat64(dateDiff('second', min(written_at), now64(3))))"
        return Rule(
            name="outbox-waits",
            title="Notifications of ragtide wait to be sent",
            sql=f"SELECT {waits} AS waits_s FROM {self.tables.name('outbox')} FINAL WHERE state = 'pending'",
            limit=self.settings.outbox_s,
            labels=_WARNING,
            annotations=self._texts(
                "Notifications of problems wait to be sent.",
                f"The oldest message waits for more than {self.settings.outbox_s:g} s "
                "(ragtide_outbox_oldest_seconds). `ragtide notify list` and the log of the jobs say what the receiver "
                "answered.",
            ),
            on_error="OK",  # of a database that cannot be asked the first rule tells
        )

    def _lane_behind(self) -> Rule:
        return Rule(
            name="lane-behind",
            title="A lane of ragtide is behind",
            sql="SELECT toString(lane) AS lane, toString(topic) AS topic, toFloat64(max(behind)) AS behind_s "
            f"FROM ({self.queries.lanes()}) GROUP BY lane, topic ORDER BY lane, topic",
            limit=self.settings.behind_s,
            labels=_WARNING,
            annotations=self._texts(
                "Lane {{ $labels.lane }} is behind on topic {{ $labels.topic }}.",
                'Its newest record is {{ printf "%.0f" $values.A.Value }} s old, and others wait. Add workers, or look '
                "in their logs.",
            ),
            for_s=300,
        )

    def _workers_silent(self) -> Rule:
        return Rule(
            name="workers-silent",
            title="Workers of ragtide are silent",
            sql="SELECT toString(lane) AS lane, toFloat64(sum(silent)) AS partitions "
            f"FROM ({self.queries.lanes()}) GROUP BY lane ORDER BY lane",
            limit=0,
            labels=_CRITICAL,
            annotations=self._texts(
                "Partitions of lane {{ $labels.lane }} have no worker.",
                '{{ printf "%.0f" $values.A.Value }} partitions had no heartbeat for more than '
                f"{self.queries.heartbeat_timeout_s:g} s. Their records wait.",
            ),
            for_s=120,
        )

    def _dead_letters(self) -> Rule:
        limit = self.rules.dead_letters
        marked = f"SELECT {_LETTER} FROM {self.tables.name('dead_letter_marks')} FINAL"
        return Rule(
            name="dead-letters",
            title="Records of ragtide become dead letters",
            sql="SELECT toString(topic) AS topic, toFloat64(count()) AS letters "
            f"FROM {self.tables.name('dead_letters')} FINAL WHERE {_LIVE} AND $__timeFilter(ingested_at) "
            f"AND {_LETTER} NOT IN ({marked}) GROUP BY topic ORDER BY topic",
            limit=limit - 1,
            labels=_WARNING,
            annotations=self._texts(
                "Records of topic {{ $labels.topic }} cannot be used.",
                '{{ printf "%.0f" $values.A.Value }} became dead letters within an hour; '
                f"{limit} are too many. `ragtide dead-letters list` has the reasons.",
            ),
            lookback_s=_HOUR_S,
        )

    def _evaluator_failures(self) -> Rule:
        own = {one.evaluator: one.error_limit for one in self.rules.limits if one.app is None and one.evaluator}
        limits = {evaluator: limit for evaluator, limit in own.items() if limit is not None}
        limit = repr(self.rules.error_limit)
        if limits:
            names, values = array(map(literal, limits), "String"), array(map(repr, limits.values()), "Float64")
            limit = f"transform(evaluator, {names}, {values}, toFloat64({limit}))"
        return Rule(
            name="evaluator-failures",
            title="An evaluator of ragtide fails",
            sql=f"SELECT evaluator, lane, if(share > {limit}, toFloat64(share), 0) AS failed "
            f"FROM ({self.queries.failed_share(self.rules.min_sample)}) ORDER BY evaluator",
            limit=0,
            labels=_WARNING,
            annotations=self._texts(
                "Evaluator {{ $labels.evaluator }} fails.",
                "It failed on {{ humanizePercentage $values.A.Value }} of the traces of the last hour. Dashboard "
                "pipeline has the reasons.",
            ),
            for_s=300,
            lookback_s=_HOUR_S,
        )

    def _rows_late(self) -> Rule:
        late = "greatest(dateDiff('millisecond', time, ingested_at), 0) / 1000"
        return Rule(
            name="rows-late",
            title="Rows of ragtide are late",
            sql=f"SELECT toFloat64(quantileTDigest(0.95)({late})) AS late_s FROM {self.tables.name('traces')} "
            f"WHERE {_LIVE} AND ingested_at >= now64(3) - toIntervalMinute({_LATE_MINUTES}) AND NOT is_deleted "
            "AND bitAnd(bitShiftRight(version, 16), 65535) = 0 HAVING count() > 0",
            limit=self.settings.late_s,
            labels=_WARNING,
            annotations=self._texts(
                "Traces reach ClickHouse late: problems are found late.",
                '95 % of the traces of ten minutes were stored within {{ printf "%.0f" $values.A.Value }} s of their '
                "event; the others took longer. Lanes are behind, or the applications send late.",
            ),
            for_s=300,
        )

    def _disk_full(self) -> Rule:
        return Rule(
            name="disk-full",
            title="The disk of ClickHouse is nearly full",
            sql=f"SELECT toFloat64(used) AS used FROM ({self.queries.disk()})",
            limit=self.rules.disk_limit,
            labels=_CRITICAL,
            annotations=self._texts(
                "The disk of ClickHouse is nearly full: rows will be refused.",
                "{{ humanizePercentage $values.A.Value }} of it is used. Add space, or lower [retention].",
            ),
            for_s=300,
        )

    def _texts(self, summary: str, description: str) -> Mapping[str, str]:
        whole = f"{summary} {description}"  # a message shows descriptions only
        return {"title": summary, "summary": summary, "description": whole, **self.links.of_pipeline()}
