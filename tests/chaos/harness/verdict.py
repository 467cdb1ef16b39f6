"""What is stored against what must be stored."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ragtide.sinks.clickhouse.database import Database
from tests.chaos.harness.model import SIZES_S, Expected, Rows, contents
from tests.drift.windows_model import Content, Key

_EXAMPLES = 5


@dataclass(slots=True)
class Verdict:
    """How many rows are lost, stand there twice (or for nothing that was sent), or say something else; windows too.

    `ended` says which processes ended by themselves; `unread` how many records no worker committed.
    """

    lost: int = 0
    doubled: int = 0
    wrong: int = 0
    wrong_windows: int = 0
    unread: int = 0
    ended: list[str] = field(default_factory=list)
    examples: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Whether all is as it must be."""
        return not (self.lost or self.doubled or self.wrong or self.wrong_windows or self.unread or self.ended)

    def __str__(self) -> str:
        told = f"lost {self.lost}, doubled {self.doubled}, wrong {self.wrong}, wrong windows {self.wrong_windows}"
        unread = f", unread {self.unread}" if self.unread else ""
        return f"{told}{unread}{''.join(f', {one}' for one in self.ended)}"

    def add(self, other: "Verdict") -> None:
        """Count the other's too."""
        for name in ("lost", "doubled", "wrong", "wrong_windows", "unread"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.ended += other.ended
        self.examples += other.examples


def judge(database: Database, expected: Expected) -> Verdict:
    """Every table and every window, each row of each."""
    verdict = Verdict()
    for table, (sql, told) in _STORED.items():
        judge_rows(verdict, table, expected.tables[table], [told(row) for row in database.rows(sql)])
    judge_windows(verdict, expected.windows, database.rows(_WINDOWS))
    del verdict.examples[_EXAMPLES:]
    return verdict


def judge_rows(verdict: Verdict, table: str, expected: Rows, found: Iterable[tuple[Hashable, object]]) -> None:
    """Into the verdict: each row that is expected must be found once, as it is, and no other one."""
    stored: dict[Hashable, list[object]] = {}
    for key, row in found:
        stored.setdefault(key, []).append(row)
    for key, rows in stored.items():
        more = len(rows) - (key in expected)
        verdict.doubled += more
        verdict.wrong += not more and rows != [expected[key]]
        if more or rows != [expected[key]]:
            verdict.examples.append(f"{table} {key}: {rows}, not {expected.get(key)}")
    lost = [key for key in expected if key not in stored]
    verdict.lost += len(lost)
    verdict.examples += [f"{table} {key}: lost" for key in lost[:1]]


def judge_windows(
    verdict: Verdict, expected: Mapping[tuple[int, Key], Mapping[str, object]], found: Iterable[dict[str, Any]]
) -> None:
    """A window that every trace left is one of zeros, or none."""
    stored: dict[tuple[int, Key], list[dict[str, object]]] = {}
    for row in found:
        key = Key(**{name: row[name] for name in Key._fields})
        stored.setdefault((row["size_s"], key), []).append(
            {name: row[name] for name in contents(key.metric, Content())}
        )
    for at in expected.keys() | stored.keys():
        wanted = expected.get(at, contents(at[1].metric, Content()))
        rows = stored.get(at, [])
        if rows != [wanted]:
            verdict.wrong_windows += 1
            verdict.examples.append(f"window of {at[0]} s {tuple(at[1])}: {rows}, not {wanted}")


def _trace(row: dict[str, Any]) -> tuple[Hashable, object]:
    named = ("run_id", "task", "app", "time", "model", "latency_s", "error", "segments")
    return row["trace_id"], tuple(row[name] for name in named)


def _text(row: dict[str, Any]) -> tuple[Hashable, object]:
    return row["trace_id"], tuple(row[name] for name in ("run_id", "app", "time", "question", "answer"))


def _score(row: dict[str, Any]) -> tuple[Hashable, object]:
    named = ("run_id", "app", "time", "status", "metrics", "categories", "parts")
    return (row["trace_id"], row["evaluator"]), tuple(row[name] for name in named)


def _letter(row: dict[str, Any]) -> tuple[Hashable, object]:
    """Poison by its contents; what has none by its place."""
    key = row["sha256"] if row["reason"] == "not_json" else (row["partition"], row["offset"])
    return key, row["reason"]


_STORED: Mapping[str, tuple[str, Callable[[dict[str, Any]], tuple[Hashable, object]]]] = {
    "traces": ("SELECT trace_id, run_id, task, app, time, model, latency_s, error, segments FROM traces FINAL", _trace),
    "trace_texts": ("SELECT trace_id, run_id, app, time, question, answer FROM trace_texts FINAL", _text),
    "scores": (
        "SELECT trace_id, run_id, evaluator, app, time, status, metrics, categories, parts FROM scores FINAL",
        _score,
    ),
    "dead_letters": ("SELECT sha256, reason, partition, offset FROM dead_letters FINAL", _letter),
}
_WINDOWS = f"""
    SELECT run_id, app, environment, metric, toUnixTimestamp(windows.start) AS start, '' AS fingerprint, model,
        prompt_version, segment, segment_value, size_s, seen, sampled, applicable, scored, failed, skipped, failures,
        category_counts, parts, sum, sum_squares, min, max, bins
    FROM windows FINAL WHERE size_s IN {SIZES_S}
"""
