"""Work that evaluators share, done once for all of them."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from copy import copy
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np

from ragtide.evaluators.encoder import Encoder
from ragtide.evaluators.errors import Unavailable
from ragtide.evaluators.judge.calls import Asker, Conversation, Judge, TraceCalls
from ragtide.evaluators.judge.driver import Driver, Held, Replies
from ragtide.evaluators.models import Model
from ragtide.evaluators.outcome import Failed, NotApplicable
from ragtide.evaluators.runtime.memory_chunks import size_of_row
from ragtide.evaluators.runtime.vector_cache import VectorCache
from ragtide.evaluators.settings import CACHE_BYTES, PORTION_BYTES
from ragtide.evaluators.spec import SHARED, Ask, Made, ModelRef, Sentence, Vectors
from ragtide.evaluators.text.sentences import split

Key = TypeVar("Key", bound=Hashable)


class Resources:
    """Encoders, other models and caches, which outlive a micro-batch. One per process, thread-safe."""

    def __init__(
        self,
        encoder: Encoder | None = None,
        cache_bytes: int = CACHE_BYTES,
        models: Mapping[ModelRef, Model] | None = None,
        answers_bytes: int = CACHE_BYTES,
        portion_bytes: int = PORTION_BYTES,
        encoders: Mapping[str, Encoder] | None = None,
        judge: Judge | None = None,
    ) -> None:
        self.encoder = encoder
        self.encoders = encoders or {}  # the others, by name
        self.models = models or {}
        self.judge = judge
        self.cache = VectorCache(cache_bytes)
        self.answers = VectorCache(answers_bytes)
        self.portion_bytes = portion_bytes
        self.largest_portion_bytes = 0  # so far

    def finish(self) -> None:
        """Say that all results are stored."""
        if self.judge is not None:
            self.judge.finish()

    def close(self) -> None:
        """Close the judge. Nothing else is open."""
        if self.judge is not None:
            self.judge.close()

    def record_size(self, size_bytes: int) -> None:
        """Record the size of a portion, for the maximum so far."""
        self.largest_portion_bytes = max(self.largest_portion_bytes, size_bytes)

    def batch(self) -> "Batch":
        """Start a micro-batch. It is used by one thread, then dropped."""
        return Batch(self)

    def encoder_named(self, name: str) -> Encoder | None:
        """Return the shared encoder or another one."""
        return self.encoder if name == SHARED else self.encoders.get(name)

    def vectors(self, texts: Sequence[str], name: str = SHARED) -> Vectors:
        """Return unit vectors of distinct texts. Those not in the cache come from one call of the encoder.

        Raises `FloatingPointError` if a vector is not finite: compared with a threshold it would be a bad score.
        """
        encoder = self.encoder_named(name)
        if encoder is None:
            raise Unavailable("no encoder is loaded; an evaluator that embeds must declare Need.EMBEDDING")
        names = [f"{name}\0{text}" for text in texts]
        return _rows_by_cache(self.cache, names, texts, lambda fresh: _finite(encoder, fresh), encoder.dimension)

    def ask(self, model: ModelRef, asks: Sequence[Ask]) -> Vectors:
        """Return answers to distinct asks. Those not in the cache come from one call of the model."""
        if model not in self.models:
            raise Unavailable(f"{model.need} model {model.name!r} is not loaded; an evaluator must declare its models")
        names = ["\0".join((model.need, model.name, *model.labels, *map(str, map(len, ask)), *ask)) for ask in asks]
        return _rows_by_cache(self.answers, names, asks, self.models[model].answer, model.columns)


class Batch:
    """The `Shared` of one micro-batch. It keeps every sentence, vector and answer."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._results: defaultdict[Callable[[str], Any], dict[str, Any]] = defaultdict(dict)
        self._encoder = SHARED
        self._replies: Replies = {}
        self._asker = Asker("", TraceCalls(""))
        self._vectors: dict[str, _Rows[str]] = {}
        self._answers: dict[ModelRef, _Rows[Ask]] = {}
        self._vectors_bytes = self._answers_bytes = 0

    def sentences(self, text: str) -> tuple[Sentence, ...]:
        """See `Shared.sentences`."""
        return self.once(split, text)

    def once(self, make: Callable[[str], Made], text: str) -> Made:
        """See `Shared.once`."""
        known = self._results[make]
        if text not in known:
            known[text] = make(text)
        made: Made = known[text]
        return made

    @property
    def most_bytes(self) -> int:
        """Maximum bytes for the vectors of a portion, and again for its answers."""
        return self._resources.portion_bytes // 2

    def size_of_text(self, text: str) -> int:
        """Estimate the bytes of a text and its vector."""
        encoder = self._resources.encoder_named(self._encoder)
        return size_of_row(len(text), encoder.dimension if encoder else 0)

    def size_of_ask(self, asked: tuple[ModelRef, Ask]) -> int:
        """Estimate the bytes of an ask and its answer."""
        model, ask = asked
        return size_of_row(sum(map(len, ask)), model.columns)

    def make_room_for_vectors(self, size_bytes: int) -> None:
        """Drop the vectors so far if the new ones would exceed the limit."""
        if self._vectors_bytes + size_bytes > self.most_bytes:
            self._vectors.clear()
            self._vectors_bytes = 0
        self._vectors_bytes += size_bytes
        self._resources.record_size(self._vectors_bytes + self._answers_bytes)

    def make_room_for_answers(self, size_bytes: int) -> None:
        """Drop the answers so far if the new ones would exceed the limit."""
        if self._answers_bytes + size_bytes > self.most_bytes:
            self._answers.clear()
            self._answers_bytes = 0
        self._answers_bytes += size_bytes
        self._resources.record_size(self._vectors_bytes + self._answers_bytes)

    def used_by(self, evaluator: str, encoder: str) -> "Batch":
        """Return a view of the same batch for an evaluator, that embeds with this encoder."""
        view = self.embedding_by(encoder)
        view._asker = Asker(evaluator, TraceCalls(""))
        return view

    def embedding_by(self, encoder: str) -> "Batch":
        """Return a view of the same batch that embeds with this encoder."""
        view = copy(self)
        view._encoder = encoder
        return view

    def hold(self, conversations: Sequence[Held]) -> None:
        """Hold conversations with the judge at the same time. Their replies are kept for `judge`."""
        if self._resources.judge is None:
            raise Unavailable("no judge endpoint is set; an evaluator with `judge` must need Need.JUDGE")
        Driver(self._resources.judge, self._replies).hold(conversations)

    def judge(self, conversation: Conversation[Made]) -> Made | Failed | NotApplicable:
        """See `Shared.judge`. Calls that were held before are not sent again."""
        held = Held(conversation, self._asker)
        self.hold([held])
        if held.error is not None:
            raise held.error
        found: Made | Failed | NotApplicable = held.result
        return found

    def prefetch(self, texts: Iterable[str]) -> None:
        """Load the vectors of all texts, with at most one encoder call."""
        self._rows_of_texts().prefetch(texts)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Shared.embed`. The result is a copy."""
        encoder = self._resources.encoder_named(self._encoder)
        return self._rows_of_texts().of(texts, encoder.dimension if encoder else 0)

    def prefetch_answers(self, model: ModelRef, asks: Iterable[Ask]) -> None:
        """Load the answers to all asks, with at most one call of the model."""
        self._rows_of_answers(model).prefetch(asks)

    def ask(self, model: ModelRef, asks: Sequence[Ask]) -> Vectors:
        """See `Shared.ask`. The result is a copy."""
        return self._rows_of_answers(model).of(asks, model.columns)

    def tokens(self, text: str) -> int:
        """Count the tokens of the text, or its words without an encoder."""
        encoder = self._resources.encoder_named(self._encoder)
        return encoder.count_tokens([text]) if encoder else len(text.split())

    def _rows_of_texts(self) -> "_Rows[str]":
        if self._encoder not in self._vectors:
            self._vectors[self._encoder] = _Rows(partial(self._resources.vectors, name=self._encoder))
        return self._vectors[self._encoder]

    def _rows_of_answers(self, model: ModelRef) -> "_Rows[Ask]":
        if model not in self._answers:
            self._answers[model] = _Rows(lambda asks: self._resources.ask(model, asks))
        return self._answers[model]


class _Rows(Generic[Key]):
    """Rows by key in one matrix, which grows by doubling. Each key is looked up once."""

    def __init__(self, look_up: Callable[[Sequence[Key]], Vectors]) -> None:
        self._look_up = look_up
        self._places: dict[Key, int] = {}
        self._matrix: Vectors | None = None

    def prefetch(self, keys: Iterable[Key]) -> None:
        missing = [key for key in dict.fromkeys(keys) if key not in self._places]
        if not missing:
            return
        rows = self._look_up(missing)
        first, end = len(self._places), len(self._places) + len(missing)
        if self._matrix is None:
            self._matrix = rows
        else:
            if end > len(self._matrix):
                grown = np.empty((max(end, 2 * first), rows.shape[1]), np.float32)
                grown[:first] = self._matrix[:first]
                self._matrix = grown
            self._matrix[first:end] = rows
        self._places.update((key, first + i) for i, key in enumerate(missing))

    def of(self, keys: Sequence[Key], columns: int) -> Vectors:
        """Return one row per key, in order."""
        self.prefetch(keys)
        if self._matrix is None:
            return np.zeros((0, columns), np.float32)
        return self._matrix[[self._places[key] for key in keys]]


def _finite(encoder: Encoder, texts: Sequence[str]) -> Vectors:
    vectors = encoder.encode(texts)
    if not np.isfinite(vectors).all():
        raise FloatingPointError(f"{encoder.revision} gives vectors that are not finite")
    return vectors


def _rows_by_cache(
    cache: VectorCache,
    names: Sequence[str],
    keys: Sequence[Key],
    look_up: Callable[[Sequence[Key]], Vectors],
    columns: int,
) -> Vectors:
    """Return one row per key: from the cache, the rest from one call, which then goes into the cache."""
    known = cache.get(names)
    missing = [i for i, row in enumerate(known) if row is None]
    if missing:
        fresh = look_up([keys[i] for i in missing])
        cache.put([names[i] for i in missing], fresh)
        for i, row in zip(missing, fresh, strict=True):
            known[i] = row
    return np.array(known, np.float32).reshape(len(keys), columns)
