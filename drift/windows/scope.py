"""Which windows a statement speaks of."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from drift.windows import sql
from sinks.rows import LIVE, PROBE

MINUTE = 60
# All versions of a row stand in one minute, so that where a statement's times are whole minutes, FINAL needs no part of
# other minutes. Servers from 26.3 on read every part of every day unless told so.
WHOLE_MINUTES: Mapping[str, int] = {"defer_partition_pruning_after_final": 0}
STREAMED = (LIVE, PROBE)  # runs that a watermark closes; any other closes when it is complete


class WindowKey(NamedTuple):
    """One window of one application; `start` in seconds since 1970."""

    run_id: str
    app: str
    environment: str
    start: int


@dataclass(frozen=True, slots=True)
class Scope:
    """Windows of one size and one lane's evaluators: those listed or, where none are, every one in [first, end).

    `others` are the evaluators left to the other lanes; one that nobody knows belongs to every lane.
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
        return self.first // MINUTE * MINUTE, -(-self.end // MINUTE) * MINUTE

    def rows(self, start: str, *, evaluators: bool = True) -> str:
        """Condition on rows of scores or traces, `start` being the expression of their window; applied after FINAL."""
        first, end = self.minutes
        conditions = self._keys(evaluators)
        conditions.append(f"time >= toDateTime64({first}, 3, 'UTC') AND time < toDateTime64({end}, 3, 'UTC')")
        conditions.append(self._listed(start))
        return " AND ".join(conditions)

    def stored(self, size_s: int) -> str:
        """Condition on rows of `windows` of a size that divides the scope's."""
        conditions = [*self._keys(True), f"size_s = {size_s}"]
        conditions.append(f"start >= toDateTime({self.first}, 'UTC') AND start < toDateTime({self.end}, 'UTC')")
        if self.windows:
            conditions.append(self._listed(f"toUInt32(intDiv(toUnixTimestamp(start), {self.size_s}) * {self.size_s})"))
        return " AND ".join(conditions)

    def _keys(self, evaluators: bool) -> list[str]:
        keys = [f"run_id IN {sql.texts(self.runs)}"]
        if self.windows:
            keys.append(f"app IN {sql.texts(sorted({w.app for w in self.windows}))}")
            keys.append(f"environment IN {sql.texts(sorted({w.environment for w in self.windows}))}")
        if evaluators and self.others:
            keys.append(f"evaluator NOT IN {sql.texts(self.others)}")
        return keys

    def _listed(self, start: str) -> str:
        """Hashed, so that no index can look at it: it would hide versions of a row that stand in other windows."""
        hashes = (
            f"cityHash64({sql.text(w.run_id)}, {sql.text(w.app)}, {sql.text(w.environment)}, toUInt32({w.start}))"
            for w in self.windows
        )
        return f"cityHash64(run_id, app, environment, {start}) IN ({', '.join(hashes)})"


def listed(windows: Iterable[WindowKey], size_s: int, others: Sequence[str], most: int = 100) -> Iterator[Scope]:
    """Scopes of neighbouring windows, so that none reads long stretches in which nothing changed."""
    chunk: list[WindowKey] = []
    for window in sorted(windows, key=lambda w: w.start):
        if chunk and (len(chunk) >= most or window.start > chunk[-1].start + 5 * size_s):
            yield _scope(chunk, size_s, others)
            chunk = []
        chunk.append(window)
    if chunk:
        yield _scope(chunk, size_s, others)


def _scope(windows: Sequence[WindowKey], size_s: int, others: Sequence[str]) -> Scope:
    return Scope(
        size_s=size_s,
        runs=tuple(sorted({window.run_id for window in windows})),
        first=windows[0].start,
        end=windows[-1].start + size_s,
        others=tuple(others),
        windows=tuple(windows),
    )
