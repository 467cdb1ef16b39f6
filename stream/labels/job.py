"""Join labels with their stored traces and send those through the lanes again.

A trace is due if its newest rows were made with fewer labels than the tables hold. So the job may stop anywhere and run
twice: a message that is sent twice leaves the same rows.

With `judges`, a trace with a thumbs-down is sent to those of them that have not answered, once they have rows of it.
Who complains is no random choice, so all of that is on request, whatever the sample: its scores stand for no trace. An
answer that a judge gave before stays as it is.
"""

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal, NamedTuple

import msgspec

from ragtide.drift import cursors
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.version import revision_of
from ragtide.stream.ingest.stored_trace import rebuild_trace
from ragtide.stream.labels.joining import Facts, Message, enriched_message
from ragtide.stream.labels.stored import (
    JudgeRow,
    StoredTrace,
    VersionedTexts,
    batches,
    facts_of,
    judge_rows_of,
    recently_labelled,
    texts_of,
    traces_of,
)
from ragtide.stream.settings.sections import KafkaSettings
from ragtide.stream.settings.topics import PATTERN_MARK
from ragtide.stream.telemetry.registry import Telemetry

log = logging.getLogger(__name__)

CURSOR = "labels"
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
Result = Literal["sent", "no_trace", "no_texts", "not_whole", "no_topic", "too_big"]
Send = Callable[[Sequence[Message]], Sequence[bool]]


class _LastResult(NamedTuple):
    """Result of the last run for a trace."""

    result: Result
    version: int  # of its newest rows; 0: none
    revision: int  # how many labels there were


class LabelJob:
    """Remembers its last result per trace: runs overlap, because rows show up a little after their ingest time."""

    def __init__(
        self,
        database: Database,
        kafka: KafkaSettings,
        max_bytes: int,
        telemetry: Telemetry,
        send: Send,
    ) -> None:
        self._database = database
        self._kafka = kafka
        self._max_bytes = max_bytes
        self._telemetry = telemetry
        self._send = send
        self._last_results: dict[str, _LastResult] = {}

    def run(self, now: datetime, judges: Sequence[str] = ()) -> Mapping[Result, int]:
        """Send every trace that can be enriched; return the count of each result.

        `now` is the server's time, `judges` score traces with a thumbs-down. Raises `Transient`; the next run goes on.
        """
        database, done = self._database, Counter[Result]()
        trace_ids = recently_labelled(database, self._since(), judges)
        self._last_results = {id_: found for id_ in trace_ids if (found := self._last_results.get(id_)) is not None}
        for batch in batches(trace_ids):
            done += self._join(batch, judges)
        cursors.save(database, CURSOR, int(now.timestamp() * 1000))
        if done:
            summary = ", ".join(f"{result} {count}" for result, count in sorted(done.items()))
            log.info("joined labels with traces: %s", summary)
        return done

    def _since(self) -> datetime:
        since_ms = cursors.load(self._database, CURSOR)
        return datetime.fromtimestamp(since_ms / 1000, UTC) - cursors.INGEST_OVERLAP if since_ms else _NEVER

    def _join(self, trace_ids: Sequence[str], judges: Sequence[str]) -> Counter[Result]:
        facts = facts_of(self._database, trace_ids, disliked=bool(judges))
        traces = traces_of(self._database, trace_ids)
        disliked = {id_: trace for id_, trace in traces.items() if id_ in facts and facts[id_].is_disliked}
        rows = judge_rows_of(self._database, disliked, judges)
        requests = {id_: _judges_to_ask(rows.get(id_, ()), facts[id_]) for id_ in disliked}
        due = {
            id_: trace
            for id_, trace in traces.items()
            if id_ in facts and self._is_due(id_, trace, facts[id_], requests.get(id_, ()))
        }
        texts = texts_of(self._database, due)
        messages, results = {}, {}
        for id_, trace in due.items():
            made = self._build_message(trace, texts.get(id_), facts[id_], requests.get(id_, ()))
            if isinstance(made, Message):
                messages[id_] = made
            else:
                results[id_] = made
        results |= dict.fromkeys(facts.keys() - traces.keys(), "no_trace")
        results |= self._send_messages(messages)
        return self._count_new(results, traces, facts)

    def _is_due(self, trace_id: str, trace: StoredTrace, facts: Facts, judges: Sequence[str]) -> bool:
        version = trace.position.version
        on_its_way = _LastResult("sent", version, facts.revision)
        is_behind = revision_of(version) < facts.revision if facts.join else bool(judges)
        return is_behind and self._last_results.get(trace_id) != on_its_way

    def _build_message(
        self, trace: StoredTrace, stored: VersionedTexts | None, facts: Facts, judges: Sequence[str]
    ) -> Message | Result:
        if stored is None or stored.version != trace.position.version:
            return "no_texts"  # or not yet: texts are stored after the trace, and the next run tries again
        if not stored.texts.rest:
            return "not_whole"
        try:
            whole = rebuild_trace(stored.texts, trace.user_id)
        except msgspec.DecodeError:
            return "not_whole"  # another version of ragtide wrote it
        topic = self._topic(trace)
        if topic is None:
            return "no_topic"
        made = enriched_message(whole, trace.position, facts, topic, judges)
        return "too_big" if len(made.value) > self._max_bytes else made

    def _topic(self, trace: StoredTrace) -> str | None:
        """The topic of the trace if it is read, else the first that kafka.topics names, as for a trace from a file."""
        own = trace.position.topic
        if self._kafka.entry_of(own) is not None:
            return own
        return next((entry for entry in self._kafka.topics if not entry.startswith(PATTERN_MARK)), None)

    def _send_messages(self, messages: Mapping[str, Message]) -> dict[str, Result]:
        if not messages:
            return {}
        taken = self._send(list(messages.values()))
        return {id_: "sent" if known else "too_big" for id_, known in zip(messages, taken, strict=True)}

    def _count_new(
        self, results: Mapping[str, Result], traces: Mapping[str, StoredTrace], facts: Mapping[str, Facts]
    ) -> Counter[Result]:
        """Count the results that differ from the last run's."""
        new: Counter[Result] = Counter()
        for id_, result in results.items():
            version = traces[id_].position.version if id_ in traces else 0
            last_result = _LastResult(result, version, facts[id_].revision)
            new[result] += self._last_results.get(id_) != last_result
            self._last_results[id_] = last_result
        for result, count in new.items():
            self._telemetry.label_joins.labels(result).inc(count)
        return +new


def _judges_to_ask(rows: Sequence[JudgeRow], facts: Facts) -> list[str]:
    """Return the judges that score a disliked trace on request.

    Facts have all judges score it again: those that answered on request do so again, those of the sample within it.
    """
    if facts.join:
        return [row.evaluator for row in rows if not (row.is_answered and row.in_sample)]
    return [row.evaluator for row in rows if not row.is_answered and row.revision < facts.revision]
