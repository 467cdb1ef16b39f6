"""When to stop instead of emptying a topic into dead letters: too many consecutive ones, or too large a share. Pure."""

from collections import Counter, deque
from collections.abc import Container, Sequence
from itertools import repeat

from ragtide.evaluators.errors import ConfigError
from ragtide.stream.ingest.records import Record

WINDOW = 1000  # latest records that the share is taken of


class DeadLetterLimit:
    """Raises `ConfigError` once a bad deployment is a likelier cause than a bad record."""

    def __init__(self, ratio: float, run: int) -> None:
        self._ratio = ratio
        self._run = run
        self._latest: deque[bool] = deque(maxlen=WINDOW)
        self._dead = 0  # of the latest
        self._in_a_row = 0

    def check(self, records: Sequence[Record], dead: Container[int], reasons: Counter[str]) -> None:
        """Count `records`; those with their `id` in `dead` are dead letters, for these reasons."""
        if not reasons:
            self._in_a_row = 0
            self._latest.extend(repeat(False, min(len(records), WINDOW)))
            self._dead = sum(self._latest) if self._dead else 0
            return
        for record in records:
            bad = id(record) in dead
            if len(self._latest) == WINDOW:
                self._dead -= self._latest[0]
            self._latest.append(bad)
            self._dead += bad
            self._in_a_row = self._in_a_row + 1 if bad else 0
            if self._in_a_row >= self._run:
                raise self._stop(f"the latest {self._in_a_row} records were all dead letters", record, reasons)
            if len(self._latest) == WINDOW and self._dead > self._ratio * WINDOW:
                raise self._stop(f"{self._dead} of the latest {WINDOW} records were dead letters", record, reasons)

    @staticmethod
    def _stop(what: str, record: Record, reasons: Counter[str]) -> ConfigError:
        most = ", ".join(f"{reason} ({count})" for reason, count in reasons.most_common(3))
        return ConfigError(
            f"{what}, up to {record.topic}/{record.partition} offset {record.offset}; reasons: {most}. Nothing of this "
            "slice was committed. Correct the producer, or raise worker.dead_letter_ratio and worker.dead_letter_run. "
            "Then start the worker again."
        )
