"""Scopes: which windows a statement reads."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ragtide.drift import sql
from ragtide.sinks.rows import LIVE, PROBE

MINUTE_S = 60
# All versions of a row stand in one minute, so that where a statement's times are whole minutes, FINAL needs no part of
# other minutes. Servers from 26.3 on read every part of every day without it.
WHOLE_MINUTES: Mapping[str, int] = {"defer_partition_pruning_after_final": 0}
STREAMED_RUNS = (LIVE, PROBE)  # runs that a watermark closes; any other closes when it is complete
MAX_NAME_BYTES = 512  # bytes that a statement writes down of a name; a longer one is known by its digest
_MAX_BYTES = 16_384  # of names in one statement's list of windows
_PREFIX = 64  # characters of a name by which the index finds those that have digests


class WindowKey(NamedTuple):
    """One window of one application; `start` in seconds since 1970."""

    run_id: str
    app: str
    environment: str
    start: int


@dataclass(frozen=True, slots=True)
class Scope:
    """Windows of one size and one lane's evaluators: those listed or, where none are, every one in [first, end).

    `others` are the evaluators left to the other lanes; an unknown one belongs to every lane.
    """

    size_s: int
    runs: tuple[str, ...]
    first: int
    end: int
    others: tuple[str, ...]
    windows: tuple[WindowKey, ...] = ()

    @property
    def minutes(self) -> tuple[int, int]:
        """[first, end) widened to whole minutes: the grain of the sorting keys.

        Two versions of a row may stand in one minute and in two base windows. FINAL must see both, so nothing finer may
        reach the index.
        """
        return self.first // MINUTE_S * MINUTE_S, -(-self.end // MINUTE_S) * MINUTE_S

    def rows_condition(self, start: str, *, evaluators: bool = True) -> str:
        """Condition on rows of scores or traces, `start` being the expression of their window; applied after FINAL."""
        first, end = self.minutes
        conditions = self._key_conditions(evaluators)
        conditions.append(f"time >= toDateTime64({first}, 3, 'UTC') AND time < toDateTime64({end}, 3, 'UTC')")
        conditions.append(self._listed_condition(start))
        return " AND ".join(conditions)

    def windows_condition(self, size_s: int, *, evaluators: bool = True) -> str:
        """Condition on rows of `windows` of a size that divides the scope's; without `evaluators`, of all of them."""
        conditions = [*self._key_conditions(evaluators), f"size_s = {size_s}"]
        conditions.append(f"start >= toDateTime({self.first}, 'UTC') AND start < toDateTime({self.end}, 'UTC')")
        if self.windows:
            conditions.append(
                self._listed_condition(f"toUInt32(intDiv(toUnixTimestamp(start), {self.size_s}) * {self.size_s})")
            )
        return " AND ".join(conditions)

    @property
    def _digests(self) -> bool:
        return any(_is_long(window) for window in self.windows)

    def _key_conditions(self, evaluators: bool) -> list[str]:
        keys = [f"run_id IN {sql.texts(self.runs)}"]
        if self.windows:
            keys.append(self._name_condition("app", sorted({w.app for w in self.windows})))
            keys.append(self._name_condition("environment", sorted({w.environment for w in self.windows})))
        if evaluators and self.others:
            keys.append(f"evaluator NOT IN {sql.texts(self.others)}")
        return keys

    def _name_condition(self, column: str, names: Sequence[str]) -> str:
        """For the index alone; which windows are meant, their hashes say."""
        if not self._digests:
            return f"{column} IN {sql.texts(names)}"
        beginnings = sorted({name[:_PREFIX] for name in names})
        return f"({' OR '.join(f'startsWith({column}, {sql.text(some)})' for some in beginnings)})"

    def _listed_condition(self, start: str) -> str:
        """Hashed, so that no index can look at it: it would hide versions of a row that stand in other windows."""
        app, environment, names = "app", "environment", [(w.app, w.environment) for w in self.windows]
        if self._digests:
            app, environment = sql.digest_of(app), sql.digest_of(environment)
            names = [(sql.digest(one), sql.digest(other)) for one, other in names]
        hashes = (
            f"cityHash64({sql.text(w.run_id)}, {sql.text(one)}, {sql.text(other)}, toUInt32({w.start}))"
            for w, (one, other) in zip(self.windows, names, strict=True)
        )
        return f"cityHash64(run_id, {app}, {environment}, {start}) IN ({', '.join(hashes)})"


def _is_long(window: WindowKey) -> bool:
    return max(len(window.app.encode()), len(window.environment.encode())) > MAX_NAME_BYTES


def batch_scopes(windows: Iterable[WindowKey], size_s: int, others: Sequence[str], limit: int = 100) -> Iterator[Scope]:
    """Scopes of neighbouring windows, so that none reads long intervals without changes.

    Each names a bounded number of bytes. Windows with long names have scopes of their own, so that no other pays for
    the slower search.
    """
    chunk: list[WindowKey] = []
    named = 0
    for window in sorted(windows, key=lambda w: (_is_long(w), w.start)):
        size = _named_bytes(window)
        if chunk and (
            len(chunk) >= limit
            or not 0 <= window.start - chunk[-1].start <= 5 * size_s
            or named + size > _MAX_BYTES
            or _is_long(window) != _is_long(chunk[-1])
        ):
            yield _scope(chunk, size_s, others)
            chunk, named = [], 0
        chunk.append(window)
        named += size
    if chunk:
        yield _scope(chunk, size_s, others)


def _named_bytes(window: WindowKey) -> int:
    return sum(min(len(name.encode()), MAX_NAME_BYTES) for name in window[:3])


def _scope(windows: Sequence[WindowKey], size_s: int, others: Sequence[str]) -> Scope:
    return Scope(
        size_s=size_s,
        runs=tuple(sorted({window.run_id for window in windows})),
        first=windows[0].start,
        end=windows[-1].start + size_s,
        others=tuple(others),
        windows=tuple(windows),
    )
