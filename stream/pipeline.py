"""Records become rows: decode, sample, evaluate, tabulate. The same for live agents and for replays.

The same records give the same rows however they are cut into slices, and nothing is lost: a
record is in the rows, in the dead letters, or counted as skipped by a lane that leaves them to `fast`.
"""

import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from operator import attrgetter
from typing import NamedTuple

from msgspec.structs import replace

from drift.topics.model import TopicModel
from evaluators.errors import BadRecord
from evaluators.plan import Prepared
from evaluators.resources import Batch, Resources
from evaluators.run import run_all
from evaluators.spec import Lane
from sinks.rows import LIVE, PROBE, Block, DirtyRow
from stream.ingest.answers import AnswerColumns
from stream.ingest.canonical import canonical
from stream.ingest.decoders import Decoders
from stream.ingest.decoding import Limits, decoded
from stream.ingest.embeddings import embedded, in_topics
from stream.ingest.enriched import as_known
from stream.ingest.masking import masking_of
from stream.ingest.question_hash import question_hash_of
from stream.ingest.records import DeadLetter, Record, broker_time
from stream.ingest.rows import Placed, dead_letter_row, placed, sampled_out_rows, score_rows, text_row, trace_row
from stream.ingest.sampling import leaving_out, rate_of, sampled
from stream.settings import Settings

_STATUS = attrgetter("status")


class Period(NamedTuple):
    """From `start_s` on and before `end_s`, in seconds since 1970."""

    start_s: float
    end_s: float

    def holds(self, second: float) -> bool:
        """Whether it lies within."""
        return self.start_s <= second < self.end_s


@dataclass(slots=True)
class Processed:
    """What a slice of records became. `newest` is the newest event time, none ahead of its broker's timestamp."""

    block: Block = field(default_factory=Block)
    dead: list[DeadLetter] = field(default_factory=list)
    decoded: int = 0
    skipped: Counter[str] = field(default_factory=Counter)  # by reason: left to `fast`, or out of the period
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)  # by evaluator and status
    without_vector: Counter[str] = field(default_factory=Counter)  # questions, by reason
    newest: datetime | None = None


class Pipeline:
    """Turns slices of records into blocks of one run. Safe to call from one thread at a time.

    `lane` None (replays) does the work of every lane at once. `timely` limits event times against the broker's. Of
    `period`, where given, are traces by event time and what cannot be read by the broker's; the rest is skipped.
    `topics` gives the topic models that hold now, by application.
    """

    def __init__(
        self,
        plan: Sequence[Prepared],
        resources: Resources,
        settings: Settings,
        *,
        lane: Lane | None,
        run_id: str = LIVE,
        timely: bool = True,
        period: Period | None = None,
        topics: Callable[[], Mapping[str, TopicModel]] = dict,
        new_mark: Callable[[], str] = lambda: uuid.uuid4().hex,
    ) -> None:
        self.lane = lane
        self.run_id = run_id
        self.plan = tuple(plan)
        self._keeps = lane is None or lane == "fast"
        lanes = {prepared.evaluator.lane for prepared in plan} | ({"fast"} if self._keeps else set())
        self._lanes = tuple(sorted(lanes))
        self._rates = [rate_of(settings.sampling, prepared) for prepared in self.plan]
        self._resources = resources
        self._decoders = Decoders(settings.kafka)
        self._limits = Limits.of(settings.ingest, timely=timely)
        self._batch_records, self._batch_bytes = settings.worker.batch_records, settings.worker.batch_bytes
        self._base_s = settings.windows.base_s
        self._texts = settings.privacy.store_texts != "off"
        self._embeds = lane in (None, "model") and settings.privacy.stores_embeddings
        self._masking = masking_of(settings.privacy, settings.evaluators)
        key = settings.privacy.hash_key.get_secret_value().encode()
        self._user_key = key if settings.privacy.hash_users else None
        self._hash_question = question_hash_of(settings.privacy)
        self._answers = AnswerColumns.of(settings.rules, zip(self.plan, self._rates, strict=True), self._hash_question)
        self._period = period
        self._topics = topics
        self._new_mark = new_mark

    def process(self, records: Sequence[Record]) -> Processed:
        """Every record accounted for; blocks, so call it from a thread."""
        done = Processed()
        places = self._placed(records, done)
        for batch in self._batches(places):
            shared = self._resources.batch()
            if self._keeps:
                self._tabulate(batch, done.block, shared)
            self._evaluate(batch, done, shared)
        self._mark(places, done.block)
        return done

    def _placed(self, records: Sequence[Record], done: Processed) -> list[Placed]:
        """The traces to work on: of several messages about one trace the newest, where its key is the same."""
        first: dict[str, Placed] = {}
        again: list[Placed] = []
        newest_s = 0.0
        limits, decoders, own_run = self._limits, self._decoders, self.run_id
        live = own_run == LIVE
        for record in records:
            try:
                known = as_known(record) if record.headers else record
                decoder = decoders[record.topic] if known is record else canonical  # who enriches writes that
                trace, seconds = decoded(known, limits, decoder)
            except BadRecord as bad:
                self._set_aside(record, bad, done)
                continue
            if self._period is not None and not self._period.holds(seconds):
                done.skipped["out_of_period"] += 1
                continue
            broker_s = record.timestamp / 1000
            at_s = broker_s if 0 < broker_s < seconds else seconds
            if known is not record:  # its event time is old news, and must not hold the watermark back
                at_s = broker_time(record).timestamp()
            if at_s > newest_s:
                newest_s = at_s
            place = placed(trace, known, PROBE if live and trace.probe else own_run, int(seconds))
            if first.setdefault(trace.trace_id, place) is not place:
                again.append(place)
            done.decoded += 1
        if newest_s:
            done.newest = datetime.fromtimestamp(newest_s, UTC)
        return _newest([*first.values(), *again]) if again else list(first.values())

    def _set_aside(self, record: Record, bad: BadRecord, done: Processed) -> None:
        if self._period is not None and record.timestamp > 0 and not self._period.holds(record.timestamp / 1000):
            done.skipped["out_of_period"] += 1
            return
        if not self._keeps:
            done.skipped[bad.reason] += 1
            return
        letter = DeadLetter(record, bad.reason, "decode", bad.detail)
        done.dead.append(letter)
        done.block.dead_letters.append(dead_letter_row(letter, self.run_id))

    def _batches(self, places: list[Placed]) -> Iterator[list[Placed]]:
        batch: list[Placed] = []
        size = 0
        for place in places:
            length = len(place.record.value or b"")
            if batch and (len(batch) >= self._batch_records or size + length > self._batch_bytes):
                yield batch
                batch, size = [], 0
            batch.append(place)
            size += length
        if batch:
            yield batch

    def _tabulate(self, batch: list[Placed], block: Block, shared: Batch) -> None:
        user_key, hash_question = self._user_key, self._hash_question
        block.traces += [trace_row(place, user_key, hash_question) for place in batch]
        masking = self._masking
        if masking is not None:
            batch = [replace(place, trace=masking.masked(place.trace, shared)) for place in batch]
        if self._texts:
            block.texts += [text_row(place, whole=masking is None) for place in batch]

    def _evaluate(self, batch: list[Placed], done: Processed, shared: Batch) -> None:
        """In one run, whatever share of the traces each evaluator sees: their texts go to the encoder together."""
        ids = [place.trace.trace_id for place in batch]
        left = {rate: [at for at, id_ in enumerate(ids) if not sampled(id_, rate)] for rate in set(self._rates)}
        plan = [
            leaving_out(prepared, [ids[at] for at in left[rate]])
            for prepared, rate in zip(self.plan, self._rates, strict=True)
        ]
        traces, sizes = [place.trace for place in batch], [len(place.record.value or b"") for place in batch]
        outcomes = run_all(plan, traces, shared, sizes)
        batch = self._embed(batch, done, shared)
        for prepared, rate, column in zip(self.plan, self._rates, outcomes, strict=True):
            weight = 1 / rate if rate else 0.0
            left_out = [batch[at] for at in left[rate]]
            scored = score_rows(batch, prepared, column, weight) + sampled_out_rows(left_out, prepared, weight)
            done.block.scores += scored
            for status, number in Counter(map(_STATUS, scored)).items():
                done.outcomes[prepared.evaluator.id, status] += number

    def _embed(self, batch: list[Placed], done: Processed, shared: Batch) -> list[Placed]:
        """The traces with their topics; after the evaluators, whose call to the encoder had most questions already."""
        encoder = self._resources.encoder
        if encoder is None or not self._embeds:
            return batch
        made = embedded(batch, shared, encoder.revision, self._topics())
        done.block.embeddings += self._answers.filled(made.rows, batch, shared)
        done.without_vector += made.without
        return in_topics(batch, made.rows)

    def _mark(self, places: list[Placed], block: Block) -> None:
        """One mark per lane and base window that the block touches: what was stored decides, never a clock."""
        base = self._base_s
        touched = {
            (place.run_id, place.trace.app, place.trace.environment, place.second // base * base) for place in places
        }
        mark_id = self._new_mark()
        block.dirty += [
            DirtyRow(run_id, app, environment, lane, datetime.fromtimestamp(start, UTC), mark_id)
            for run_id, app, environment, start in sorted(touched)
            for lane in self._lanes
        ]


def _newest(places: Sequence[Placed]) -> list[Placed]:
    """One per key of the tables; where versions are equal, the later message."""
    latest: dict[tuple[str, str, str, int, str], Placed] = {}
    for place in places:
        trace = place.trace
        identity = (place.run_id, trace.app, trace.environment, place.second // 60, trace.trace_id)
        if place.version >= latest.setdefault(identity, place).version:
            latest[identity] = place
    return list(latest.values())
