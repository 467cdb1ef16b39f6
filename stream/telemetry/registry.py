"""Every operational metric, named once, with its meaning and what to do about it; served at /metrics."""

from collections.abc import Sequence
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

_FAST = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
_SLOW = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)


@dataclass(frozen=True, slots=True)
class Described:
    """What the documentation says of a metric."""

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

        self.records = self._counter(
            "records", "Records worked off.", "None while traffic flows: see lag and /live.", "lane"
        )
        self.skipped = self._counter(
            "records_skipped",
            "Records that this lane left out, by reason; lanes other than fast skip what they cannot decode.",
            "Look at the dead letters of lane fast.",
            "lane",
            "reason",
        )
        self.dead_letters = self._counter(
            "dead_letters",
            "Records set aside on the dead-letter topic.",
            "`ragwatch dead-letters list` says why; mend the producer, then replay or drop them.",
            "lane",
            "stage",
            "reason",
        )
        self.outcomes = self._counter(
            "outcomes",
            "Outcomes of evaluators, by status.",
            "Growing `failed`: the reasons are in the log and in table scores.",
            "evaluator",
            "status",
        )
        self.without_vector = self._counter(
            "questions_without_vector",
            "Questions that table embeddings has no vector of, by reason.",
            "`encoder_failed`: the log has the error. `too_long`: no question, as a rule; mend the producer.",
            "reason",
        )
        self.process_seconds = self._histogram(
            "process_seconds",
            "Time to decode and evaluate what was worked off in one go.",
            "Near the session timeout: lower worker.slice_records.",
            _SLOW,
            "lane",
        )
        self.rows = self._counter("rows_written", "Rows stored, by table.", "Compare with records.", "table")
        self.write_seconds = self._histogram(
            "write_seconds", "Time to store one block.", "Over a second: look at the sink's load.", _FAST
        )
        self.write_retries = self._counter(
            "write_retries", "Blocks that the sink could not take yet.", "The log says what the sink answered."
        )
        self.sink_blocked_seconds = self._gauge(
            "sink_blocked_seconds",
            "How long the sink has been unable to take rows; 0 while it works.",
            "Bring the sink back: nothing is lost, records wait in the topic.",
        )
        self.set_aside = self._counter(
            "rows_set_aside", "Rows that the sink refused for their content.", "See the dead letters.", "table"
        )
        self.in_flight_bytes = self._gauge(
            "in_flight_bytes",
            "Bytes of records fetched and not yet stored.",
            "At worker.in_flight_bytes fetching waits: the sink or the evaluators are the bottleneck.",
            "lane",
        )
        self.fetch_paused_seconds = self._counter(
            "fetch_paused_seconds",
            "Time in which nothing was fetched, since worker.in_flight_bytes waited for the sink or the evaluators.",
            "Growing with sink_blocked_seconds: the sink; without: start another worker of this lane.",
            "lane",
        )
        self.begun_anew = self._counter(
            "partitions_begun_anew",
            "Partitions that began before what was committed of them: their topic was deleted and made again.",
            "Nothing is missed of the new one; who deleted it, and did all of the old one come through? See the log.",
            "lane",
        )
        self.cache_bytes = self._gauge(
            "cache_bytes",
            "Memory of what is kept of models' work from one batch to the next: `vectors`, `answers`.",
            "At its limit and the lane slow: raise evaluators.encoder.cache_bytes or answers_cache_bytes.",
            "lane",
            "cache",
        )
        self.cache_limit_bytes = self._gauge(
            "cache_limit_bytes",
            "The most that a cache may take.",
            "Of each process of the lane: count it once per worker.",
            "lane",
            "cache",
        )
        self.portion_bytes = self._gauge(
            "portion_bytes",
            "Memory of the largest portion of a micro-batch so far, as it is counted: tokens, vectors and answers.",
            "Beyond its limit: one record is larger. Always near it: records go to models in more calls than need be.",
            "lane",
        )
        self.portion_limit_bytes = self._gauge(
            "portion_limit_bytes",
            "The most that a portion may take, evaluators.portion_bytes.",
            "Of each process of the lane: count it once per worker.",
            "lane",
        )
        self.card_bytes = self._gauge(
            "card_bytes",
            "Memory of a GPU that models and their work take, what is kept for the next batch with it.",
            "At its limit and the log says out of memory: fewer workers on the card, or raise evaluators.card_bytes.",
            "lane",
            "card",
        )
        self.card_limit_bytes = self._gauge(
            "card_limit_bytes",
            "The most that a process may take of a GPU: evaluators.card_bytes, or all that the card has.",
            "Of each process of the lane: count it once per worker.",
            "lane",
            "card",
        )
        self.model_bytes = self._gauge(
            "model_bytes",
            "Weights of a loaded model, as they are on disk; in bfloat16 or int8 they take a half or a quarter.",
            "Too much for the machine: `ragwatch models list` says who needs it.",
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
            "Age of the newest record worked off of a partition where more waits; 0 where nothing does, "
            "and nothing before the first was.",
            "Growing: start another worker of this lane.",
            "lane",
            "topic",
            "partition",
        )
        self.labels = self._counter(
            "labels",
            "Labels stored, by what they are for: `to_join` with their traces, `verdict` alone; `not_kept`: facts that "
            "cannot be joined, since texts are masked or not stored.",
            "`not_kept`: nothing can use them while privacy.store_texts is not full.",
            "kind",
        )
        self.label_joins = self._counter(
            "label_joins",
            "Labelled traces by result: `sent` through the lanes again; `no_trace` yet: joined when it comes; "
            "`no_texts` or `not_whole`: not stored, or not in full; `no_topic`: its topic is not read and kafka.topics "
            "names none but patterns; `too_big` for ingest.max_bytes or the topic.",
            "`no_trace` growing: the sender of labels has other ids. `no_texts`: raise retention.texts_days.",
            "result",
        )
        self.job_runs = self._counter(
            "job_runs", "Runs of scheduled jobs, by result.", "`failed`: the log has the reason.", "job", "result"
        )
        self.job_seconds = self._histogram(
            "job_seconds", "Time one run of a job took.", "Above its interval: give it more time.", _SLOW, "job"
        )
        self.job_success_time = self._gauge(
            "job_last_success_timestamp_seconds",
            "When a job last succeeded; table job_runs says the same, and an alert in Grafana watches it.",
            "Older than a few intervals: no `ragwatch jobs` process leads, or the sink is away.",
            "job",
        )
        self.expired_marks = self._counter(
            "window_marks_expired",
            "Changes that came after the scores of their day were deleted: no window was computed anew.",
            "Backfill what is older than retention.traces_days into a run of its own.",
        )
        self.explanations = self._counter(
            "explanations",
            "Looks for the cause of a problem, by result.",
            "`failed`: the log has the reason; a problem is tried three times.",
            "result",
        )
        self.topic_model_age_seconds = self._gauge(
            "topic_model_age_seconds",
            "Since when the topics of an application's questions hold, of those that asked within topics.period_days; "
            "by the leader of the jobs.",
            "Above a few of topics.every_s: job `topics` fails, its log has the reason, or too little is asked "
            "(topics.from_questions).",
            "app",
        )
        self.topic_model_failures = self._counter(
            "topic_model_failures",
            "Looks for newer topics (every topics.refresh_s) that a lane could not take.",
            "Growing: traces are placed in topics that are old by now, or in none; the log says why.",
            "lane",
        )
        self.outbox_waiting = self._gauge(
            "outbox_waiting",
            "Messages that wait for Grafana, as the leader of the jobs last saw it.",
            "Growing: Grafana is away or refuses us; the log and column `why` of table outbox say which.",
        )
        self.outbox_failing = self._gauge(
            "outbox_failing",
            "Those of them that were tried in vain.",
            "While others are sent: Grafana fails on these alone, and each is tried ever more rarely; as above.",
        )
        self.outbox_oldest_seconds = self._gauge(
            "outbox_oldest_seconds",
            "For how long the oldest of them has waited.",
            "Above a few of jobs.every_s: as above. Nothing is lost within retention.outbox_days.",
        )
        self.outbox_refused = self._gauge(
            "outbox_refused",
            "Messages that Grafana refused for their content and that are not sent again.",
            "Column `why` of table outbox has Grafana's reason.",
        )
        self.leader = self._gauge(
            "jobs_leader", "1 in the process that leads the jobs.", "Sum over processes must be 1."
        )

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
        full = f"ragwatch_{name}"
        self.described.append(Described(full + "_total" * (kind == "counter"), kind, meaning, action, labels))
        return full
