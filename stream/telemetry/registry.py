"""Every operational metric, named once, with its meaning and what to do about it; served at /metrics."""

from collections.abc import Sequence
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

from ragtide.stream.telemetry import repeats
from ragtide.stream.telemetry.export_metrics import ExportMetrics
from ragtide.stream.telemetry.span_metrics import SpanMetrics

_FAST = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
_SLOW = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
_JUDGE = ("endpoint", "evaluator", "app")


@dataclass(frozen=True, slots=True)
class Described:
    """Documentation of a metric."""

    name: str
    kind: str
    meaning: str
    action: str
    labels: tuple[str, ...]


class Telemetry:
    """The metrics of one process. A second one has a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.described: list[Described] = []
        ProcessCollector(registry=self.registry)
        self.log_lines_counted = self._gauge(
            "log_lines_counted",
            "Log lines since the start that repeated an earlier line and were counted instead of written.",
            "Growing by hundreds per minute: a dependency is down. The log names it once per minute.",
        )
        self.log_lines_counted.set_function(repeats.count_repeats)

        self.records = self._counter(
            "records", "Records processed.", "Not growing while traffic flows: check lag and /live.", "lane"
        )
        self.skipped = self._counter(
            "records_skipped",
            "Records that the lane skipped, by reason. Lanes other than fast skip records that they cannot decode. "
            "`expired`: older than retention.traces_days. `for_judges`: for lane judge alone, after a thumbs-down.",
            "Check the dead letters of lane fast. `expired`: replay records that are still needed into a run of its "
            "own.",
            "lane",
            "reason",
        )
        self.dead_letters = self._counter(
            "dead_letters",
            "Records sent to the dead-letter topic.",
            "`ragtide dead-letters list` shows the reasons. Fix the producer, then replay or drop them.",
            "lane",
            "stage",
            "reason",
        )
        self.names_cut = self._counter(
            "names_cut",
            "Names in traces and labels longer than 256 characters, by field. Their start and a hash of the whole "
            "are stored.",
            "Fix the producer: the full name is never shown, compared or joined.",
            "lane",
            "field",
        )
        self.normalised = self._counter(
            "normalised",
            "Values in another form than the canonical one that were read, by rule and field. docs/reference/trace.md "
            "has the rules.",
            "Usually nothing. `ragtide validate` shows them by line, for a producer that should send another form.",
            "lane",
            "rule",
            "field",
        )
        self.unknown_fields = self._counter(
            "unknown_fields",
            "Traces with an unknown field that was probably meant to be measured, by application and field.",
            "Fix the producer: the log names the nearest field once, and `ragtide check` shows the latest ones.",
            "app",
            "field",
        )
        self.evidence_cut = self._counter(
            "evidence_cut",
            "Outcomes with more than 1,000 pieces of evidence. Only the first 1,000 are stored.",
            "Usually nothing: scores are based on all of them.",
            "evaluator",
        )
        self.outcomes = self._counter(
            "outcomes",
            "Outcomes of evaluators, by status.",
            "Growing `failed`: the log and table scores have the reasons.",
            "evaluator",
            "status",
        )
        self.judge_calls = self._counter(
            "judge_calls",
            "Replies of judges that were paid for, repairs included.",
            "More than expected: lower sampling.lanes.judge, or disable evaluators.",
            *_JUDGE,
        )
        self.judge_failures = self._counter(
            "judge_failures",
            "Calls of judges without a reply, by kind.",
            "docs/judge.md says what each kind means and what to do.",
            *_JUDGE,
            "kind",
        )
        self.judge_cached_replies = self._counter(
            "judge_cached_replies",
            "Replies of judges from the cache on disk. They cost nothing.",
            "If 0 although traces are evaluated repeatedly: set evaluators.judge.cache.path.",
            *_JUDGE,
        )
        self.judge_searches = self._counter(
            "judge_searches", "Answered searches of agents.", "Too many: lower max_steps of fact_check.", *_JUDGE
        )
        self.judge_tokens = self._counter(
            "judge_tokens",
            "Tokens of judge calls: input, input from the endpoint's cache (cached, part of input), output.",
            "Growing faster than the calls: answers or contexts have become longer.",
            *_JUDGE,
            "kind",
        )
        self.judge_cost_usd = self._counter(
            "judge_cost_usd",
            "Cost of judge calls in US dollars, by the prices in the settings.",
            "More than expected: lower sampling.lanes.judge. 0: set the prices of the endpoint.",
            *_JUDGE,
        )
        self.canary_scores = self._counter(
            "canary_scores",
            "Canaries that judges scored, failed to score or did not apply to, by status.",
            "Growing `failed`: table canary_scores has the reasons.",
            "evaluator",
            "status",
        )
        self.without_vector = self._counter(
            "questions_without_vector",
            "Questions without a vector in table embeddings, by reason.",
            "`encoder_failed`: check the log for the error. `too_long`: usually not a question; fix the producer.",
            "reason",
        )
        self.process_seconds = self._histogram(
            "process_seconds",
            "Seconds to decode and evaluate one slice of records.",
            "Near kafka.session_timeout_s: lower worker.slice_records.",
            _SLOW,
            "lane",
        )
        self.rows = self._counter("rows_written", "Rows stored, by table.", "Compare with records.", "table")
        self.write_seconds = self._histogram(
            "write_seconds", "Seconds to store one block.", "Above 1 s: check the load of ClickHouse.", _FAST
        )
        self.write_retries = self._counter(
            "write_retries",
            "Attempts to store a block that ClickHouse could not take yet.",
            "The log has ClickHouse's answer.",
        )
        self.sink_blocked_seconds = self._gauge(
            "sink_blocked_seconds",
            "Seconds since ClickHouse last took rows, while it takes none. 0 while it does.",
            "Restore ClickHouse. Nothing is lost: records wait in the topic.",
        )
        self.set_aside = self._counter(
            "rows_set_aside", "Rows that ClickHouse rejected for their content.", "Check the dead letters.", "table"
        )
        self.in_flight_bytes = self._gauge(
            "in_flight_bytes",
            "Bytes of records fetched and not yet stored.",
            "At worker.in_flight_bytes, fetching pauses: ClickHouse or the evaluators are the bottleneck.",
            "lane",
        )
        self.fetch_paused_seconds = self._counter(
            "fetch_paused_seconds",
            "Seconds in which fetching was paused at worker.in_flight_bytes.",
            "Growing with sink_blocked_seconds: ClickHouse is slow. Otherwise start another worker of this lane.",
            "lane",
        )
        self.offset_resets_total = self._counter(
            "partitions_begun_anew",
            "Partitions whose start moved before the committed offset: their topic was deleted and created again.",
            "Nothing of the new topic is missed. Check in the log whether all of the old one was processed.",
            "lane",
        )
        self.topics_stopped = self._gauge(
            "topics_stopped",
            "1 for a topic that the lane reads no further, because too many of its records are dead letters.",
            "The log has the reasons, an example and what to do. Then start the worker again.",
            "lane",
            "topic",
        )
        self.cache_bytes = self._gauge(
            "cache_bytes",
            "Bytes of model outputs cached between batches: `vectors`, `answers`.",
            "At its limit while the lane is slow: raise evaluators.encoder.cache_bytes or "
            "evaluators.answers_cache_bytes.",
            "lane",
            "cache",
        )
        self.cache_limit_bytes = self._gauge(
            "cache_limit_bytes",
            "Size limit of a cache, in bytes.",
            "Applies to each process of the lane: multiply by the number of workers.",
            "lane",
            "cache",
        )
        self.portion_bytes = self._gauge(
            "portion_bytes",
            "Bytes of the largest portion of a micro-batch so far, by estimate: tokens, vectors and model outputs.",
            "Above the limit: a single record is larger. Always near it: raise evaluators.portion_bytes for fewer "
            "model calls.",
            "lane",
        )
        self.portion_limit_bytes = self._gauge(
            "portion_limit_bytes",
            "Size limit of a portion, in bytes: evaluators.portion_bytes.",
            "Applies to each process of the lane: multiply by the number of workers.",
            "lane",
        )
        self.card_bytes = self._gauge(
            "card_bytes",
            "Bytes of GPU memory used by models, their work and cached blocks.",
            "At its limit, with out of memory in the log: run fewer workers per GPU, or raise evaluators.card_bytes.",
            "lane",
            "card",
        )
        self.card_limit_bytes = self._gauge(
            "card_limit_bytes",
            "Limit of GPU memory per process, in bytes: evaluators.card_bytes, or all of the GPU.",
            "Applies to each process of the lane: multiply by the number of workers.",
            "lane",
            "card",
        )
        self.model_bytes = self._gauge(
            "model_bytes",
            "Bytes of a loaded model's weights on disk. In bfloat16 or int8, memory use is a half or a quarter.",
            "Too much for the machine: `ragtide models list` shows the evaluators that need it.",
            "lane",
            "model",
        )
        self.lag_records = self._gauge(
            "lag_records",
            "Records that wait in a partition.",
            "Growing: start another worker of this lane.",
            "lane",
            "topic",
            "partition",
        )
        self.lag_seconds = self._gauge(
            "lag_seconds",
            "Age in seconds of the newest processed record of a partition with lag. 0 without lag; absent before the "
            "first record.",
            "Growing: start another worker of this lane.",
            "lane",
            "topic",
            "partition",
        )
        self.labels = self._counter(
            "labels",
            "Labels read, by result: `to_join` with traces, `verdict` alone, `not_kept` (not joinable, since texts "
            "are masked or not stored), `expired` (older than retention.labels_days).",
            "`not_kept`: set privacy.store_texts to full to use them. `expired`: send them again.",
            "kind",
        )
        self.label_joins = self._counter(
            "label_joins",
            "Labelled traces by result: `sent` through the lanes again; `no_trace` yet; `no_texts` or `not_whole` in "
            "store; `no_topic` (not read, and kafka.topics has only patterns); `too_big` for ingest.max_bytes or the "
            "topic.",
            "`no_trace` growing: the label sender uses other trace ids. `no_texts`: raise retention.texts_days.",
            "result",
        )
        self.job_runs = self._counter(
            "job_runs", "Runs of scheduled jobs, by result.", "`failed`: the log has the reason.", "job", "result"
        )
        self.job_seconds = self._histogram(
            "job_seconds",
            "Seconds that a run of a job took.",
            "Above the job's interval: raise the interval.",
            _SLOW,
            "job",
        )
        self.job_success_time = self._gauge(
            "job_last_success_timestamp_seconds",
            "Time of a job's last success. Table job_runs has it too, and a Grafana alert watches it.",
            "Older than a few intervals: no `ragtide jobs` process leads, or ClickHouse is down.",
            "job",
        )
        self.expired_marks = self._counter(
            "window_marks_expired",
            "Changes that came after the scores of their day had been deleted. No window was recomputed.",
            "Backfill data older than retention.traces_days into a run of its own.",
        )
        self.failed_windows = self._counter(
            "window_failures",
            "Failed attempts to store a window. The window stays marked and is retried after 1 to 10 minutes.",
            "Growing: a problem names the application and its error; the log names the window.",
        )
        self.segment_values_left_out = self._gauge(
            "segment_values_left_out",
            "Chosen segment values that count as __other__, because a segment's values exceed 32 KiB together.",
            "Lower windows.segment_values, or list the important values in windows.segments.",
        )
        self.replaced_rows = self._counter(
            "replaced_rows",
            "Rows of older messages about a trace that were deleted because the newest message has none, by table.",
            "Many: producers send traces again with another task, or evaluators were disabled.",
            "table",
        )
        self.explanations = self._counter(
            "explanations",
            "Searches for the cause of a problem, by result.",
            "`failed`: the log has the reason. Each problem is tried three times.",
            "result",
        )
        self.topic_model_age_seconds = self._gauge(
            "topic_model_age_seconds",
            "Age in seconds of an application's topic model, if it had questions within topics.period_days. Reported "
            "by the leader of the jobs.",
            "Above a few topics.every_s: job `topics` fails (check its log), or there are too few questions "
            "(topics.from_questions).",
            "app",
        )
        self.topic_model_failures = self._counter(
            "topic_model_failures",
            "Failed attempts of a lane to load newer topics, made every topics.refresh_s.",
            "Growing: traces get old topics or none. The log has the reason.",
            "lane",
        )
        self.outbox_waiting = self._gauge(
            "outbox_waiting",
            "Messages that wait for a target, as last seen by the leader of the jobs. Targets are grafana, "
            "webhook:NAME and topic:NAME.",
            "Growing: the target is down or rejects the credentials. `ragtide notify list` has the reason.",
            "target",
        )
        self.outbox_failing = self._gauge(
            "outbox_failing",
            "Waiting messages with at least one failed attempt.",
            "While others are sent: the target fails on these only. Retries slow down. See `ragtide notify list`.",
            "target",
        )
        self.outbox_oldest_seconds = self._gauge(
            "outbox_oldest_seconds",
            "Seconds that the oldest message has waited for a target.",
            "Above a few jobs.every_s: check the log and `ragtide notify list`. Nothing is lost within "
            "retention.outbox_days, or webhooks.retry_days.",
            "target",
        )
        self.outbox_refused = self._gauge(
            "outbox_refused",
            "Messages that a target refused for their content, or that were given up. They are not sent again.",
            "`ragtide notify list` has the reason.",
            "target",
        )
        self.alerts_firing = self._gauge(
            "alerts_firing",
            "Alerts that fire at an Alertmanager, by its URL, as last seen by the leader of the jobs.",
            "Differs between members of a cluster: one of them is down or refuses alerts. Check the log.",
            "url",
        )
        self.alerts_waiting = self._gauge(
            "alerts_waiting",
            "Alerts whose begin or end an Alertmanager has not accepted yet.",
            "Above 0 for longer than a minute: it is down or refuses the credentials. The log has the reason.",
            "url",
        )
        self.alerts_refused = self._gauge(
            "alerts_refused",
            "Alerts that an Alertmanager refused for their content. They are posted again once it changes.",
            "Column `why` of table alerts_posted has the reason.",
            "url",
        )
        self.leader = self._gauge(
            "jobs_leader", "1 in the process that leads the jobs, else 0.", "The sum over processes must be 1."
        )
        self.spans = SpanMetrics(self._counter, self._gauge)
        self.exported = ExportMetrics(self._counter, self._gauge)

    def _counter(self, name: str, meaning: str, action: str, *labels: str) -> Counter:
        full = self._describe(name, "counter", meaning, action, labels)
        return Counter(full, f"{meaning} {action}", labels, registry=self.registry)

    def _gauge(self, name: str, meaning: str, action: str, *labels: str) -> Gauge:
        full = self._describe(name, "gauge", meaning, action, labels)
        return Gauge(full, f"{meaning} {action}", labels, registry=self.registry)

    def _histogram(self, name: str, meaning: str, action: str, buckets: Sequence[float], *labels: str) -> Histogram:
        full = self._describe(name, "histogram", meaning, action, labels)
        return Histogram(full, f"{meaning} {action}", labels, registry=self.registry, buckets=buckets)

    def _describe(self, name: str, kind: str, meaning: str, action: str, labels: tuple[str, ...]) -> str:
        full = f"ragtide_{name}"
        self.described.append(Described(full + "_total" * (kind == "counter"), kind, meaning, action, labels))
        return full
