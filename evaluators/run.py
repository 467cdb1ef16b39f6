"""Runs evaluators over a micro-batch. The only place where a crash becomes a `Failed`."""

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from math import inf
from pathlib import PurePath
from types import TracebackType
from typing import Any, TypeVar

import msgspec

from ragtide.evaluators.contract import validate_outcome
from ragtide.evaluators.errors import ends_process
from ragtide.evaluators.judge.calls import Asker, TraceCalls
from ragtide.evaluators.judge.driver import Held
from ragtide.evaluators.outcome import Failed, NotApplicable, Outcome
from ragtide.evaluators.plan import PreparedEvaluator
from ragtide.evaluators.resources import Batch
from ragtide.evaluators.runtime.memory_chunks import memory_chunks, prefetch_or_bisect
from ragtide.evaluators.spec import Ask, Budget, ModelRef
from ragtide.evaluators.trace import Artifact, Boxes, Chunk, Labels, Trace

_log = logging.getLogger(__name__)
Request = TypeVar("Request", bound=Hashable)
Owner = TypeVar("Owner", bound=Hashable)


def run_all(
    plan: Sequence[PreparedEvaluator], traces: Sequence[Trace], shared: Batch, sizes: Sequence[int] | None = None
) -> list[list[Outcome | None]]:
    """Return one outcome per evaluator and trace, in order: `[evaluator][trace]`. None if the task does not select it.

    All texts to embed go to the encoder in one call, then all asks of a model in one call each. If the results would
    take more memory than is set, the batch is split into portions. An error or a broken contract fails only the record
    that it is about. `sizes` are upper bounds of the characters of each trace, if the caller knows them. Raises
    `DeviceLost`.
    """
    if sizes is None:
        sizes = [_max_characters(trace) for trace in traces]
    runs = [_Run(prepared, traces, sizes, shared) for prepared in plan]
    every = range(len(traces))
    _hold_conversations(runs, traces, shared)
    texts = _by_trace(every, (request for run in runs for request in run.embeds(every)))
    for vector_chunk in memory_chunks(texts, shared.most_bytes):
        shared.make_room_for_vectors(vector_chunk.size_bytes)
        for encoder, of_encoder in _group_by_model(vector_chunk.keys).items():
            prefetch_or_bisect(shared.embedding_by(encoder).prefetch, of_encoder, where)
        asks = _by_trace(vector_chunk.traces, (request for run in runs for request in run.asks(vector_chunk.traces)))
        for answer_chunk in memory_chunks(asks, shared.most_bytes, vector_chunk.traces.start):
            shared.make_room_for_answers(answer_chunk.size_bytes)
            for model, of_model in _group_by_model(answer_chunk.keys).items():
                prefetch_or_bisect(partial(shared.prefetch_answers, model), of_model, where)
            for run in runs:
                run.score(answer_chunk.traces)
    return [run.outcomes() for run in runs]


def _hold_conversations(runs: Sequence["_Run"], traces: Sequence[Trace], shared: Batch) -> None:
    """Hold all conversations with the judge at the same time. `Batch.judge` finds their replies."""
    calls_of = [TraceCalls(trace.app) for trace in traces] if any(run.converses for run in runs) else []
    held = [one for at, calls in enumerate(calls_of) for run in runs for one in run.conversations(at, calls)]
    if held:
        shared.hold(held)


def _by_trace(traces: range, requests: Iterable[tuple[int, Mapping[Request, int]]]) -> list[dict[Request, int]]:
    """Merge the requests of all evaluators by trace, each once, with its size."""
    keys: list[dict[Request, int]] = [{} for _ in traces]
    for i, sizes in requests:
        keys[i - traces.start].update(sizes)
    return keys


def _group_by_model(keys: Iterable[tuple[Owner, Request]]) -> Mapping[Owner, list[Request]]:
    """Group requests by encoder or model."""
    groups: defaultdict[Owner, list[Request]] = defaultdict(list)
    for model, request in keys:
        groups[model].append(request)
    return groups


class _Run:
    """One evaluator on one micro-batch. `results` holds the outcomes so far, `rows` the inputs still to score."""

    def __init__(
        self, prepared: PreparedEvaluator, traces: Sequence[Trace], sizes: Sequence[int], shared: Batch
    ) -> None:
        self.prepared = prepared
        self._shared = shared = shared.used_by(prepared.evaluator.id, prepared.encoder)
        self._id = prepared.evaluator.id
        self._batch_failure: Failed | None = None
        self.results: list[Outcome | None] = [None] * len(traces)
        self.rows: dict[int, Any] = {}
        evaluator, budget = prepared.evaluator, prepared.evaluator.budget
        unchecked = _always_fits(budget)
        for i, trace in enumerate(traces):
            if not prepared.selects(trace):
                continue
            try:
                view = evaluator.project(trace)
                if isinstance(view, NotApplicable):
                    self.results[i] = view
                elif sizes[i] > unchecked and _too_long(budget, view, shared):
                    self.results[i] = NotApplicable("too_long")
                else:
                    self.rows[i] = view
            except BaseException as error:  # the class of its inputs may reject some values
                if ends_process(error):
                    raise
                self.results[i] = self._crash_failure(error)

    @property
    def converses(self) -> bool:
        """Whether a row is still to score by a conversation with the judge."""
        return self.prepared.evaluator.judge is not None and bool(self.rows)

    def conversations(self, trace: int, calls: TraceCalls) -> Iterator[Held]:
        """Yield the conversation about a trace, if there is one. An error in it recurs when the row is scored."""
        use = self.prepared.evaluator.judge
        if use is None or trace not in self.rows:
            return
        try:
            conversation = use.converse(self.rows[trace], self._shared, self.prepared.params)
        except BaseException as error:  # code of others: a plain function may raise before it returns a generator
            if ends_process(error):
                raise
            return
        if isinstance(conversation, Generator):
            yield Held(conversation, Asker(self._id, calls, use.records_per_hour(self.prepared.params)))

    def embeds(self, traces: range) -> Iterator[tuple[int, dict[tuple[str, str], int]]]:
        """Yield the texts that its rows will embed, by trace, each with its encoder and its size.

        A row whose `embeds` raises is `Failed`.
        """
        encoder = self.prepared.encoder
        for i, sizes in self._requests(self.prepared.evaluator.embeds, self._shared.size_of_text, traces):
            yield i, {(encoder, text): size for text, size in sizes.items()}

    def asks(self, traces: range) -> Iterator[tuple[int, dict[tuple[ModelRef, Ask], int]]]:
        """Yield what its rows will ask models, likewise. All texts are embedded by then."""
        return self._requests(self.prepared.evaluator.asks, self._shared.size_of_ask, traces)

    def _requests(
        self,
        requests_of: Callable[[Any, Batch, Any], Iterable[Request]] | None,
        size_of: Callable[[Request], int],
        traces: range,
    ) -> Iterator[tuple[int, dict[Request, int]]]:
        if requests_of is None:
            return
        for i, row in self._rows_of(traces).items():
            try:
                yield i, {request: size_of(request) for request in requests_of(row, self._shared, self.prepared.params)}
            except BaseException as error:  # code of others
                if ends_process(error):
                    raise
                self.results[i] = self._crash_failure(error)
                del self.rows[i]

    def score(self, traces: range) -> None:
        """Score the remaining rows of these traces."""
        rows = self._rows_of(traces)
        for i, outcome in zip(rows, self._score_bisecting(list(rows.values())), strict=True):
            self.results[i] = outcome

    def _rows_of(self, traces: range) -> dict[int, Any]:
        if len(traces) == len(self.results):
            return dict(self.rows)
        return {i: self.rows[i] for i in traces if i in self.rows}

    def outcomes(self) -> list[Outcome | None]:
        """Return one outcome per trace, in order, and log failures."""
        failures: Counter[str] = Counter()
        if Failed in set(map(type, self.results)):
            failures.update(f"{o.kind}: {o.detail}" for o in self.results if isinstance(o, Failed))
        if self._batch_failure and not failures:
            _log.warning("evaluator %s failed on records together and on none alone: %s", self._id, self._batch_failure)
        for why, count in failures.items():
            _log.warning("evaluator %s failed on %d of %d records: %s", self._id, count, len(self.results), why)
        return self.results

    def _score_bisecting(self, rows: list[Any]) -> Iterator[Outcome]:
        """Yield one outcome per row. A batch that fails is halved until the bad record is alone."""
        if not rows:
            return
        evaluator = self.prepared.evaluator
        try:
            batch = evaluator.score(rows, self._shared, self.prepared.params)
            given = [] if isinstance(batch, Outcome) else list(islice(batch, len(rows) + 1))
            if len(given) == len(rows):
                yield from [validate_outcome(evaluator, outcome) for outcome in given]
                return
        except BaseException as error:  # code of others: the isolation boundary
            if ends_process(error):
                raise
            failed = self._crash_failure(error)
        else:
            failed = Failed("contract", _wrong_count(batch, len(given), len(rows)))
        if len(rows) == 1:
            yield failed
            return
        self._batch_failure = failed
        middle = len(rows) // 2
        yield from self._score_bisecting(rows[:middle])
        yield from self._score_bisecting(rows[middle:])

    def _crash_failure(self, error: BaseException) -> Failed:
        return Failed("crashed", where(error, self.prepared.evaluator.score.__module__))


def _wrong_count(batch: object, given: int, records: int) -> str:
    if isinstance(batch, Outcome):
        return f"gave one {type(batch).__name__} for a batch: declare it with per_record=True, or give one for each row"
    return f"gave {'more' if given > records else 'fewer'} outcomes than records"


def texts_of(value: object) -> Iterator[str]:
    """Yield every text inside a trace or an evaluator's inputs. A chunk or an artifact counts with its text only."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (Chunk, Artifact)):
        yield value.text or ""
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from texts_of(item)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from texts_of(item)
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from texts_of(getattr(value, name))
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            yield from texts_of(getattr(value, name))


def _max_characters(trace: Trace) -> int:
    """Return an upper bound of the trace's characters: its size as JSON, ten times faster than counting."""
    try:
        return len(msgspec.json.encode(trace))
    except (TypeError, ValueError):  # a surrogate, or an attribute of another type
        return sum(map(len, texts_of(trace)))


def _always_fits(budget: Budget) -> float:
    """Return a size as JSON that is within every limit: a sentence, an item and a region take a character or more."""
    if budget.tokens is not None:
        return -1  # an encoder may count special tokens
    limits = (budget.characters, budget.items, budget.sentences, budget.regions)
    return min((limit for limit in limits if limit is not None), default=inf)


def _too_long(budget: Budget, view: object, shared: Batch) -> bool:
    if budget.items is not None and not _has_at_most(budget.items, view):
        return True
    if budget.regions is not None and regions_in(view) > budget.regions:
        return True
    limits: tuple[tuple[int | None, Callable[[str], int]], ...] = (
        (budget.characters, len),
        (budget.sentences, lambda text: len(shared.sentences(text))),
        (budget.tokens, shared.tokens),
    )
    given = [(most, measure) for most, measure in limits if most is not None]
    texts = list(texts_of(view)) if given else []
    return any(sum(map(measure, texts)) > most for most, measure in given)


def _has_at_most(most: int, view: Any) -> bool:
    """Whether the lists and mappings in an evaluator's inputs have at most so many members."""
    left = most
    for members in lengths_in(view):
        left -= members
        if left < 0:
            return False
    return True


def lengths_in(view: Any) -> Iterator[int]:
    """Yield the length of each list and mapping in an evaluator's inputs, nested ones too, without regions."""
    waiting = [getattr(view, name) for name in view.__dataclass_fields__]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Labels):
            waiting += (value.expected, value.predicted, value.scores)
        elif isinstance(value, (tuple, list, Mapping)):
            yield len(value)
            waiting += value.values() if isinstance(value, Mapping) else value


def regions_in(view: Any) -> int:
    """Return the length of the longer list of boxes in an evaluator's inputs."""
    values = [getattr(view, name) for name in view.__dataclass_fields__]
    sides = [side for value in values if isinstance(value, Boxes) for side in (value.expected, value.predicted)]
    return max((len(side) for side in sides if side), default=0)


def where(error: BaseException, module: str = "") -> str:
    """Name the error and its last line in the module, without the message, which may quote users."""
    steps = []
    step: TracebackType | None = error.__traceback__
    while step is not None:
        steps.append((step.tb_frame.f_globals.get("__name__"), step.tb_frame.f_code.co_filename, step.tb_lineno))
        step = step.tb_next
    own = [step for step in steps if step[0] == module] or steps[-1:]
    place = "".join(f" at {PurePath(file).name}:{line}" for _, file, line in own[-1:])
    return f"{type(error).__name__}{place}"
