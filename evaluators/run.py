"""Runs evaluators over a micro-batch: the only place where a crash becomes a `Failed`."""

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from math import inf
from pathlib import PurePath
from types import TracebackType
from typing import Any, TypeVar

import msgspec

from evaluators.contract import held
from evaluators.errors import DeviceLost
from evaluators.outcome import Failed, NotApplicable, Outcome
from evaluators.plan import Prepared
from evaluators.portions import have_at_hand, portions
from evaluators.resources import Batch
from evaluators.spec import Ask, Budget, ModelRef
from evaluators.trace import Artifact, Boxes, Chunk, Trace

_log = logging.getLogger(__name__)
Told = TypeVar("Told", bound=Hashable)
Who = TypeVar("Who", bound=Hashable)


def run_all(
    plan: Sequence[Prepared], traces: Sequence[Trace], shared: Batch, sizes: Sequence[int] | None = None
) -> list[list[Outcome | None]]:
    """One outcome per evaluator and trace, in order: `[evaluator][trace]`; None where the task does not select it.

    All texts that any evaluator will embed go to the encoder in one call, then all asks of a model to it in one; where
    what comes of them would take more memory than is set, portion by portion. What raises, or breaks the contract,
    costs exactly the record it is about. `sizes`: how many characters each trace has at most, where the caller knows.
    Raises `DeviceLost`.
    """
    if sizes is None:
        sizes = [_at_most(trace) for trace in traces]
    runs = [_Run(prepared, traces, sizes, shared) for prepared in plan]
    every = range(len(traces))
    texts = _by_trace(every, (told for run in runs for told in run.embeds(every)))
    for embedded in portions(texts, shared.most_bytes):
        shared.make_room_for_vectors(embedded.size_bytes)
        for encoder, of_encoder in _grouped(embedded.keys).items():
            have_at_hand(shared.embedding_by(encoder).prefetch, of_encoder, _where)
        asks = _by_trace(embedded.traces, (told for run in runs for told in run.asks(embedded.traces)))
        for asked in portions(asks, shared.most_bytes, embedded.traces.start):
            shared.make_room_for_answers(asked.size_bytes)
            for model, of_model in _grouped(asked.keys).items():
                have_at_hand(partial(shared.prefetch_answers, model), of_model, _where)
            for run in runs:
                run.score(asked.traces)
    return [run.outcomes() for run in runs]


def _by_trace(traces: range, told: Iterable[tuple[int, Mapping[Told, int]]]) -> list[dict[Told, int]]:
    """Of each trace what any evaluator told of it, each once, with its size."""
    keys: list[dict[Told, int]] = [{} for _ in traces]
    for i, sizes in told:
        keys[i - traces.start].update(sizes)
    return keys


def _grouped(keys: Iterable[tuple[Who, Told]]) -> Mapping[Who, list[Told]]:
    """What is told to each encoder or model."""
    groups: defaultdict[Who, list[Told]] = defaultdict(list)
    for who, told in keys:
        groups[who].append(told)
    return groups


class _Run:
    """One evaluator on one micro-batch: `settled` holds what is decided without scoring, `rows` what is left."""

    def __init__(self, prepared: Prepared, traces: Sequence[Trace], sizes: Sequence[int], shared: Batch) -> None:
        self.prepared = prepared
        self._shared = shared = shared.embedding_by(prepared.encoder)
        self._id = prepared.evaluator.id
        self._halved: Failed | None = None
        self.settled: list[Outcome | None] = [None] * len(traces)
        self.rows: dict[int, Any] = {}
        evaluator, budget = prepared.evaluator, prepared.evaluator.budget
        most = inf if budget.characters is None else budget.characters
        counted = any(limit is not None for limit in (budget.sentences, budget.tokens, budget.regions))
        for i, trace in enumerate(traces):
            if not prepared.selects(trace):
                continue
            try:
                view = evaluator.project(trace)
                if isinstance(view, NotApplicable):
                    self.settled[i] = view
                elif (counted or sizes[i] > most) and _too_long(budget, view, shared):
                    self.settled[i] = NotApplicable("too_long")
                else:
                    self.rows[i] = view
            except Exception as error:  # noqa: BLE001  # its inputs may be a class that refuses some values
                self.settled[i] = self._crashed(error)

    def embeds(self, traces: range) -> Iterator[tuple[int, dict[tuple[str, str], int]]]:
        """The texts that its rows say they will embed, each with its encoder and its size, by trace.

        A row that cannot say is settled as `Failed`.
        """
        encoder = self.prepared.encoder
        for i, sizes in self._told(self.prepared.evaluator.embeds, self._shared.size_of_text, traces):
            yield i, {(encoder, text): size for text, size in sizes.items()}

    def asks(self, traces: range) -> Iterator[tuple[int, dict[tuple[ModelRef, Ask], int]]]:
        """What its rows say they will ask of models, likewise; by then all texts are embedded."""
        return self._told(self.prepared.evaluator.asks, self._shared.size_of_ask, traces)

    def _told(
        self,
        tell: Callable[[Any, Batch, Any], Iterable[Told]] | None,
        size_of: Callable[[Told], int],
        traces: range,
    ) -> Iterator[tuple[int, dict[Told, int]]]:
        if tell is None:
            return
        for i, row in self._rows_of(traces).items():
            try:
                yield i, {told: size_of(told) for told in tell(row, self._shared, self.prepared.params)}
            except DeviceLost:
                raise
            except Exception as error:  # noqa: BLE001  # code of others
                self.settled[i] = self._crashed(error)
                del self.rows[i]

    def score(self, traces: range) -> None:
        """Settle what is left of these traces."""
        rows = self._rows_of(traces)
        for i, outcome in zip(rows, self._scored(list(rows.values())), strict=True):
            self.settled[i] = outcome

    def _rows_of(self, traces: range) -> dict[int, Any]:
        if len(traces) == len(self.settled):
            return dict(self.rows)
        return {i: self.rows[i] for i in traces if i in self.rows}

    def outcomes(self) -> list[Outcome | None]:
        """One per trace, in order."""
        failures: Counter[str] = Counter()
        if Failed in set(map(type, self.settled)):
            failures.update(f"{o.kind}: {o.detail}" for o in self.settled if isinstance(o, Failed))
        if self._halved and not failures:
            _log.warning("evaluator %s failed on records together and on none alone: %s", self._id, self._halved)
        for why, count in failures.items():
            _log.warning("evaluator %s failed on %d of %d records: %s", self._id, count, len(self.settled), why)
        return self.settled

    def _scored(self, rows: list[Any]) -> Iterator[Outcome]:
        """One outcome per row; a batch that fails is halved until the bad record is alone."""
        if not rows:
            return
        evaluator = self.prepared.evaluator
        try:
            given = list(islice(evaluator.score(rows, self._shared, self.prepared.params), len(rows) + 1))
            if len(given) == len(rows):
                yield from [held(evaluator, outcome) for outcome in given]
                return
        except DeviceLost:
            raise
        except Exception as error:  # noqa: BLE001  # code of others: the isolation boundary
            failed = self._crashed(error)
        else:
            count = "more" if len(given) > len(rows) else "fewer"
            failed = Failed("contract", f"gave {count} outcomes than records")
        if len(rows) == 1:
            yield failed
            return
        self._halved = failed
        middle = len(rows) // 2
        yield from self._scored(rows[:middle])
        yield from self._scored(rows[middle:])

    def _crashed(self, error: Exception) -> Failed:
        return Failed("crashed", _where(error, self.prepared.evaluator.score.__module__))


def texts_of(value: object) -> Iterator[str]:
    """Every text inside a trace or an evaluator's view of one; of a chunk or an artifact its text alone."""
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


def _at_most(trace: Trace) -> int:
    """No fewer characters than the trace's texts have: its size as JSON, since walking it takes ten times as long."""
    try:
        return len(msgspec.json.encode(trace))
    except (TypeError, ValueError):  # a surrogate, or an attribute of another type
        return sum(map(len, texts_of(trace)))


def _too_long(budget: Budget, view: object, shared: Batch) -> bool:
    if budget.regions is not None and _regions(view) > budget.regions:
        return True
    limits: tuple[tuple[int | None, Callable[[str], int]], ...] = (
        (budget.characters, len),
        (budget.sentences, lambda text: len(shared.sentences(text))),
        (budget.tokens, shared.tokens),
    )
    given = [(most, measure) for most, measure in limits if most is not None]
    texts = list(texts_of(view)) if given else []
    return any(sum(map(measure, texts)) > most for most, measure in given)


def _regions(view: Any) -> int:
    """How many the longer list of the boxes in an evaluator's view has."""
    values = [getattr(view, name) for name in view.__dataclass_fields__]
    sides = [side for value in values if isinstance(value, Boxes) for side in (value.expected, value.predicted)]
    return max((len(side) for side in sides if side), default=0)


def _where(error: BaseException, module: str = "") -> str:
    """What was raised and where, without its message: that may quote what users wrote."""
    steps = []
    step: TracebackType | None = error.__traceback__
    while step is not None:
        steps.append((step.tb_frame.f_globals.get("__name__"), step.tb_frame.f_code.co_filename, step.tb_lineno))
        step = step.tb_next
    own = [step for step in steps if step[0] == module] or steps[-1:]
    place = "".join(f" at {PurePath(file).name}:{line}" for _, file, line in own[-1:])
    return f"{type(error).__name__}{place}"
