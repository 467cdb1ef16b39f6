"""Turn records into rows: decode, sample, evaluate, make rows. Live lanes and replays share it.

The same records give the same rows however they are cut into slices. No record is lost: it is in the rows, in the
dead letters, or counted as skipped by a lane that leaves it to `fast`.
"""

import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from math import inf
from operator import attrgetter
from typing import NamedTuple

from msgspec.structs import replace

from ragtide.drift.topics import TopicModel
from ragtide.evaluators.errors import BadRecord
from ragtide.evaluators.outcome import Finding
from ragtide.evaluators.plan import PreparedEvaluator
from ragtide.evaluators.resources import Batch, Resources
from ragtide.evaluators.run import run_all
from ragtide.evaluators.spec import Lane
from ragtide.sinks.rows import LIVE, PROBE, Block, DirtyRow
from ragtide.stream.ingest.adjustments import Adjustments
from ragtide.stream.ingest.answer_features import AnswerColumns
from ragtide.stream.ingest.canonical_json import decode_canonical
from ragtide.stream.ingest.decoders import Decoders
from ragtide.stream.ingest.decoding import Limits, decode_trace
from ragtide.stream.ingest.embeddings import embed_questions, with_topics
from ragtide.stream.ingest.enriched import is_only_for_judges, resolve_enrichment
from ragtide.stream.ingest.estimation import Companions
from ragtide.stream.ingest.masked_names import name_masking_of, new_chunk_ids, with_chunk_ids
from ragtide.stream.ingest.masking import masking_of
from ragtide.stream.ingest.question_hash import question_hash_of
from ragtide.stream.ingest.records import DeadLetter, Record, broker_time, check_readable
from ragtide.stream.ingest.rows import (
    ScoreKey,
    TraceContext,
    dead_letter_row,
    explanation_rows,
    score_rows,
    text_row,
    trace_row,
    with_context,
    with_not_sampled,
)
from ragtide.stream.ingest.sampling import Sampler, without_traces
from ragtide.stream.ingest.timeliness import EventBounds, refuse_sent
from ragtide.stream.settings.loader import Settings

_STATUS = attrgetter("status")


class Interval(NamedTuple):
    """The interval [start_s, end_s), in seconds since 1970."""

    start_s: float
    end_s: float

    def contains(self, second: float) -> bool:
        """Whether the instant is within the interval."""
        return self.start_s <= second < self.end_s


@dataclass(slots=True)
class SliceResult:
    """Result of a slice. `newest` is the latest event time, never ahead of the broker's timestamp."""

    block: Block = field(default_factory=Block)
    dead: list[DeadLetter] = field(default_factory=list)
    decoded: int = 0
    skipped: Counter[str] = field(default_factory=Counter)  # by reason: left to `fast`, expired, or out of the period
    adjustments: Adjustments = field(default_factory=Adjustments)  # of what was decoded
    evidence_cut: Counter[str] = field(default_factory=Counter)  # by evaluator
    findings: dict[ScoreKey, tuple[Finding, ...]] = field(default_factory=dict)  # of the rows that have some
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)  # by evaluator and status
    without_vector: Counter[str] = field(default_factory=Counter)  # questions, by reason
    newest: datetime | None = None


class Pipeline:
    """Turns slices of records into blocks of one run. Safe to call from one thread at a time.

    `lane` None (replays) does the work of every lane at once. `timely` limits event times against the broker's. Of
    `period`, where given, are traces by event time and what cannot be read by the broker's; the rest is skipped.
    Beyond `event_bounds`, where given, records are dead letters.
    Messages for judges alone are for the live lane `judge`: elsewhere the sample decides, and they are skipped.
    `companions` score every trace for the estimates of the plan's judges; they have no rows.
    `topics` gives the topic models that hold now, by application; `clock` is the worker's, in seconds since 1970.
    """

    def __init__(
        self,
        plan: Sequence[PreparedEvaluator],
        resources: Resources,
        settings: Settings,
        *,
        lane: Lane | None,
        run_id: str = LIVE,
        timely: bool = True,
        interval: Interval | None = None,
        event_bounds: EventBounds | None = None,
        companions: Sequence[PreparedEvaluator] = (),
        topics: Callable[[], Mapping[str, TopicModel]] = dict,
        clock: Callable[[], float] = time.time,
        new_mark: Callable[[], str] = lambda: uuid.uuid4().hex,
    ) -> None:
        self.lane = lane
        self.run_id = run_id
        self.plan = tuple(plan)
        self._writes_traces = lane is None or lane == "fast"
        self._takes_requests = lane == "judge" and run_id == LIVE
        lanes = {prepared.evaluator.lane for prepared in plan} | ({"fast"} if self._writes_traces else set())
        self._lanes = tuple(sorted(lanes))
        self._sampler = Sampler(settings.sampling, self.plan, companions, takes_requests=self._takes_requests)
        self._companions = Companions(self.plan, companions, settings)
        self._resources = resources
        self._decoders = Decoders(settings.kafka)
        self._limits = Limits.of(settings.ingest, settings.retention, timely=timely)
        self._batch_records, self._batch_bytes = settings.worker.batch_records, settings.worker.batch_bytes
        self._base_s = settings.windows.base_s
        self._store_texts = settings.privacy.store_texts != "off"
        self._embeds = lane in (None, "model") and settings.privacy.stores_embeddings
        self._masking = masking_of(settings.privacy, settings.evaluators)
        self._names = name_masking_of(settings.privacy, settings.evaluators)
        key = settings.privacy.hash_key.get_secret_value().encode()
        self._user_key = key if settings.privacy.hash_users else None
        self._hash_question = question_hash_of(settings.privacy)
        self._answers = AnswerColumns.of(
            settings.rules, zip(self.plan, self._sampler.rates, strict=True), self._hash_question
        )
        self._interval = interval
        self._event_bounds = event_bounds
        self._topics = topics
        self._clock = clock
        self._new_mark = new_mark

    def process(self, records: Sequence[Record]) -> SliceResult:
        """Process every record of the slice. Blocks, so call it from a thread."""
        result = SliceResult()
        ctxs = self._decode(records, result)
        requests = [ctx for ctx in ctxs if is_only_for_judges(ctx.record)]
        traces = [ctx for ctx in ctxs if not is_only_for_judges(ctx.record)] if requests else ctxs
        for batch in self._batches(traces):
            shared = self._resources.batch()
            stored = self._with_masked_names(batch)
            if self._writes_traces:
                self._trace_rows(stored, result.block, shared)
            self._evaluate(batch, stored, result, shared)
        for batch in self._batches(requests):
            self._evaluate(batch, self._with_masked_names(batch), result, self._resources.batch())
        self._mark_dirty(ctxs, result.block)
        return result

    def _decode(self, records: Sequence[Record], result: SliceResult) -> list[TraceContext]:
        """Decode the traces; of several messages about one trace with the same key only the newest."""
        by_trace: dict[str, TraceContext] = {}
        repeats: list[TraceContext] = []
        newest_s = 0.0
        limits, decoders, own_run = self._limits, self._decoders, self.run_id
        live = own_run == LIVE
        timeliness, now_s = limits.timeliness, self._clock()
        oldest_s, latest_ms = timeliness.bounds(now_s) if timeliness is not None else (0.0, inf)
        for record in records:
            try:
                if timeliness is not None and not 0 < record.timestamp <= latest_ms:
                    check_readable(record)  # of a batch that cannot be read the letter says that, and its offsets
                    refuse_sent(record, now_s)
                known = resolve_enrichment(record) if record.headers else record
                if known is not record and is_only_for_judges(known) and not self._takes_requests:
                    result.skipped["for_judges"] += 1
                    continue
                decoder = decoders[record.topic] if known is record else decode_canonical  # who enriches writes that
                trace, seconds = decode_trace(known, limits, decoder, result.adjustments)
                if self._event_bounds is not None:
                    self._event_bounds.check(seconds)
            except BadRecord as bad:
                self._dead_letter(record, bad, result)
                continue
            if self._interval is not None and not self._interval.contains(seconds):
                result.skipped["out_of_period"] += 1
                continue
            if seconds < oldest_s:
                result.skipped["expired"] += 1
                continue
            broker_s = record.timestamp / 1000
            at_s = broker_s if 0 < broker_s < seconds else seconds
            if known is not record:  # its event time is old news, and must not hold the watermark back
                at_s = broker_time(record).timestamp()
            if at_s > newest_s:
                newest_s = at_s
            ctx = with_context(trace, known, PROBE if live and trace.probe else own_run, int(seconds))
            if by_trace.setdefault(trace.trace_id, ctx) is not ctx:
                repeats.append(ctx)
            result.decoded += 1
        if newest_s:
            result.newest = datetime.fromtimestamp(newest_s, UTC)
        return _newest_per_key([*by_trace.values(), *repeats]) if repeats else list(by_trace.values())

    def _dead_letter(self, record: Record, bad: BadRecord, result: SliceResult) -> None:
        if self._interval is not None and record.timestamp > 0 and not self._interval.contains(record.timestamp / 1000):
            result.skipped["out_of_period"] += 1
            return
        if not self._writes_traces:
            result.skipped[bad.reason] += 1
            return
        letter = DeadLetter(record, bad.reason, "decode", bad.detail)
        result.dead.append(letter)
        result.block.dead_letters.append(dead_letter_row(letter, self.run_id))

    def _batches(self, ctxs: list[TraceContext]) -> Iterator[list[TraceContext]]:
        batch: list[TraceContext] = []
        size = 0
        for ctx in ctxs:
            length = len(ctx.record.value or b"")
            if batch and (len(batch) >= self._batch_records or size + length > self._batch_bytes):
                yield batch
                batch, size = [], 0
            batch.append(ctx)
            size += length
        if batch:
            yield batch

    def _with_masked_names(self, batch: list[TraceContext]) -> list[TraceContext]:
        """Mask the names of the traces that rows are made of."""
        names = self._names
        return batch if names is None else [replace(ctx, trace=names.mask(ctx.trace)) for ctx in batch]

    def _trace_rows(self, batch: list[TraceContext], block: Block, shared: Batch) -> None:
        user_key, hash_question = self._user_key, self._hash_question
        block.traces += [trace_row(ctx, user_key, hash_question) for ctx in batch]
        masking = self._masking
        if masking is not None:
            batch = [replace(ctx, trace=masking.mask(ctx.trace, shared)) for ctx in batch]
        if self._store_texts:
            block.texts += [text_row(ctx, with_rest=masking is None) for ctx in batch]

    def _evaluate(
        self, batch: list[TraceContext], stored: list[TraceContext], result: SliceResult, shared: Batch
    ) -> None:
        """Run all evaluators at once, whatever their sampling rates: their texts go to the encoder together.

        Evaluators see the traces as sent; rows are made of `stored`.
        """
        ids = [ctx.trace.trace_id for ctx in batch]
        traces, sizes = [ctx.trace for ctx in batch], [len(ctx.record.value or b"") for ctx in batch]
        cheap = self._companions.score(traces, shared, sizes)
        decided = self._sampler.decide(batch, cheap)
        plan = [
            without_traces(prepared, [ids[at] for at in decisions.unscored])
            for prepared, decisions in zip(self.plan, decided, strict=True)
        ]
        outcomes = run_all(plan, traces, shared, sizes)
        if stored is not batch:
            ids_of = [new_chunk_ids(ctx.trace, named.trace) for ctx, named in zip(batch, stored, strict=True)]
            outcomes = [list(map(with_chunk_ids, column, ids_of)) for column in outcomes]
        batch = self._embed(stored, result, shared)
        for at, (prepared, decisions) in enumerate(zip(self.plan, decided, strict=True)):
            column = with_not_sampled(outcomes[at], batch, prepared, decisions.not_sampled)
            sums = self._companions.sums(at, column, decisions.weights, cheap, decisions.on_request)
            weights = decisions.row_weights
            scored = score_rows(batch, prepared, column, weights, result.evidence_cut, result.findings, sums)
            result.block.scores += scored
            if self._store_texts and prepared.evaluator.judge is not None:
                result.block.explanations += explanation_rows(scored, column, partial(self._masked, shared=shared))
            for status, number in Counter(map(_STATUS, scored)).items():
                result.outcomes[prepared.evaluator.id, status] += number

    def _masked(self, text: str, shared: Batch) -> str:
        """Mask a text that a judge wrote about traces, as theirs are."""
        return text if self._masking is None else self._masking.mask_text(text, shared)

    def _embed(self, batch: list[TraceContext], result: SliceResult, shared: Batch) -> list[TraceContext]:
        """Add topics to the traces, after the evaluators: their call of the encoder had most questions already."""
        encoder = self._resources.encoder
        if encoder is None or not self._embeds:
            return batch
        made = embed_questions(batch, shared, encoder.revision, self._topics())
        result.block.embeddings += self._answers.fill(made.rows, batch, shared)
        result.without_vector += made.without_vector
        return with_topics(batch, made.rows)

    def _mark_dirty(self, ctxs: list[TraceContext], block: Block) -> None:
        """Mark each base window that the block touches, per lane: the stored rows decide, never a clock."""
        base = self._base_s
        touched = {(ctx.run_id, ctx.trace.app, ctx.trace.environment, ctx.second // base * base) for ctx in ctxs}
        mark_id = self._new_mark()
        block.dirty += [
            DirtyRow(run_id, app, environment, lane, datetime.fromtimestamp(start, UTC), mark_id)
            for run_id, app, environment, start in sorted(touched)
            for lane in self._lanes
        ]


def _newest_per_key(ctxs: Sequence[TraceContext]) -> list[TraceContext]:
    """The newest trace per key of the tables; of equal versions the later message.

    A message for judges alone replaces no other: it has no rows of the other judges.
    """
    latest: dict[tuple[str, str, str, int, str, bool], TraceContext] = {}
    for ctx in ctxs:
        trace = ctx.trace
        place = (ctx.run_id, trace.app, trace.environment, ctx.second // 60, trace.trace_id)
        identity = (*place, is_only_for_judges(ctx.record))
        if ctx.version >= latest.setdefault(identity, ctx).version:
            latest[identity] = ctx
    return list(latest.values())
