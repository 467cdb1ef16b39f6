"""When to stop instead of emptying a topic into dead letters: too many consecutive ones, or too large a share. Pure."""

from collections import Counter, deque
from collections.abc import Sequence
from itertools import repeat

from ragtide.evaluators.errors import ConfigError
from ragtide.stream.ingest.records import DeadLetter, Record

WINDOW = 1000  # latest records of a topic that the share is taken of
OF_TRACES = (
    "Correct the producer: `ragtide validate FILE` says what to write. Or name the decoder of this format in "
    "kafka.decoders. To skip the records, take the topic out of kafka.topics, or raise worker.dead_letter_ratio and "
    "worker.dead_letter_run: then they become dead letters."
)
OF_LABELS = (
    "Correct the producer: docs/labels.md has the form of a label. To skip the records, raise "
    "worker.dead_letter_ratio and worker.dead_letter_run: then they become dead letters."
)
_GOOD = ""


class TooManyDeadLetters(ConfigError):
    """A topic has so many dead letters that a bad deployment is a likelier cause than bad records."""


class _TopicState:
    """The reasons of the latest records of a topic, `_GOOD` for those that are no dead letters."""

    __slots__ = ("dead", "in_a_row", "latest")

    def __init__(self) -> None:
        self.latest: deque[str] = deque(maxlen=WINDOW)
        self.dead = 0  # of the latest
        self.in_a_row = 0

    def add(self, reason: str) -> None:
        if len(self.latest) == WINDOW:
            self.dead -= self.latest[0] != _GOOD
        self.latest.append(reason)
        self.dead += reason != _GOOD
        self.in_a_row = self.in_a_row + 1 if reason else 0

    def add_good(self, count: int) -> None:
        self.in_a_row = 0
        self.latest.extend(repeat(_GOOD, min(count, WINDOW)))
        self.dead = sum(map(bool, self.latest)) if self.dead else 0


class DeadLetterLimit:
    """Raises `TooManyDeadLetters` for a topic; other topics are counted on their own. `advice` says what to do."""

    def __init__(self, ratio: float, run: int, advice: str = OF_TRACES) -> None:
        self._ratio = ratio
        self._run = run
        self._advice = advice
        self._topics: dict[str, _TopicState] = {}

    def check(self, records: Sequence[Record], letters: Sequence[DeadLetter]) -> None:
        """Count `records` of one topic, of which `letters` are dead."""
        if not records:
            return
        state = self._topics.setdefault(records[0].topic, _TopicState())
        if not letters:
            state.add_good(len(records))
            return
        reasons = {id(letter.record): letter.reason for letter in letters}
        for record in records:
            state.add(reasons.get(id(record), _GOOD))
            if state.in_a_row >= self._run:
                raise self._stop(f"the latest {state.in_a_row} records were all dead letters", state, record, letters)
            if len(state.latest) == WINDOW and state.dead > self._ratio * WINDOW:
                raise self._stop(
                    f"{state.dead} of the latest {WINDOW} records were dead letters", state, record, letters
                )

    def _stop(self, what: str, state: _TopicState, record: Record, letters: Sequence[DeadLetter]) -> TooManyDeadLetters:
        counts = Counter(filter(None, state.latest))
        shares = ", ".join(f"{reason} {count / counts.total():.0%}" for reason, count in counts.most_common(3))
        [(most, _)] = counts.most_common(1)
        example = next((letter for letter in letters if letter.reason == most), letters[-1])
        position = f"{example.record.topic}/{example.record.partition} offset {example.record.offset}"
        return TooManyDeadLetters(
            f"{what}, up to {record.topic}/{record.partition} offset {record.offset}; reasons: {shares}. Example: "
            f"{position}: {example.reason}{f', {example.detail}' if example.detail else ''}. Nothing of this slice was "
            f"committed. {self._advice} Then start the worker again."
        )
