"""SQL that stores what changed: new windows, changed ones, and zero rows for keys that a window had and has no more."""

from collections.abc import Iterable
from dataclasses import dataclass

from ragtide.drift import sql
from ragtide.drift.windows.contents import CONTENTS, KEYS
from ragtide.drift.windows.scope import STREAMED_RUNS, Scope

_TYPES = {
    "skipped": "Map(String, UInt64)",
    "failures": "Map(String, UInt64)",
    "sum": "Float64",
    "sum_squares": "Float64",
    "min": "Nullable(Float64)",
    "max": "Nullable(Float64)",
    "bins": "Map(Int32, UInt64)",
    "category_counts": "Map(String, UInt64)",
    "parts": "Map(String, Float64)",
}
_COLUMNS = f"{', '.join((*KEYS, *CONTENTS))}, size_s, revision, state, incomplete, closed_at, version"
_EXACT: tuple[str, ...] = (
    "seen",
    "sampled",
    "applicable",
    "scored",
    "failed",
    "skipped",
    "failures",
    "min",
    "max",
    "bins",
)
_EXACT += ("category_counts",)


@dataclass(frozen=True, slots=True)
class CloseParams:
    """How a roll-up closes its windows. Times in seconds since 1970.

    A window that ends by `frozen_end` had been passed by more than the allowed lateness before the roll-up began.
    """

    version: int
    now_ms: int
    frozen_end: int
    incomplete: bool


def first_revision(scope: Scope, closing: CloseParams) -> str:
    """Return the columns after the contents of a window that has no row yet."""
    return (
        f"{scope.size_s}, 1, if({_is_frozen(scope, closing, 'run_id', 'start')}, 'frozen', 'closed'), "
        f"{_is_streamed('run_id')} AND {int(closing.incomplete)}, {_now(closing)}, {closing.version}"
    )


def store_new(contents: str) -> str:
    """INSERT of contents with their `first_revision`, without a comparison."""
    return f"INSERT INTO windows ({_COLUMNS}) {contents}"


def store_changes(scope: Scope, contents: str, closing: CloseParams, per: Iterable[str]) -> str:
    """INSERT of the scope's windows whose contents differ from those stored; a second run inserts nothing.

    Sums are compared to nine digits: the engine adds in no fixed order. Series of the metrics `per` are not made here
    (see `window_metrics`), and so are not missed.
    """
    stored = f"{scope.windows_condition(scope.size_s)} AND metric NOT IN {sql.texts(per)}"
    keys, columns = ", ".join(KEYS), ", ".join(_column(name) for name in CONTENTS)
    fresh_keys = ", ".join("toDateTime(start, 'UTC')" if name == "start" else name for name in KEYS)
    typed = ", ".join(f"CAST({_column(name)}, '{_TYPES.get(name, 'UInt64')}')" for name in CONTENTS)
    exact = ", ".join(f"{{0}}.{_position(name)}" for name in _EXACT)
    close = " AND ".join(
        f"abs(new.{i} - old.{i}) <= 1e-9 * (abs(new.{i}) + abs(old.{i}))"
        for i in map(_position, ("sum", "sum_squares"))
    )
    run_id, start = (f"key.{KEYS.index(name) + 1}" for name in ("run_id", "start"))
    # One tuple is the key: the engine's analysis of a GROUP BY walks all of what is below it once per expression.
    return f"""
INSERT INTO windows ({_COLUMNS})
SELECT {", ".join(f"key.{i + 1}" for i in range(len(KEYS)))},
    {", ".join(f"new.{i + 1}" for i in range(len(CONTENTS)))}, {scope.size_s}, old_revision + 1,
    multiIf({_is_frozen(scope, closing, run_id, start)}, 'frozen', known, 'revised', 'closed'),
    {_is_streamed(run_id)} AND {int(closing.incomplete)}, if(known, old_closed_at, {_now(closing)}), {closing.version}
FROM (
    SELECT key, anyIf(held, fresh) AS new, anyIf(held, NOT fresh) AS old, max(NOT fresh) AS known,
        max(some_revision) AS old_revision, maxIf(some_closed_at, NOT fresh) AS old_closed_at
    FROM (
        SELECT tuple({fresh_keys}) AS key, tuple({typed}) AS held, true AS fresh, toUInt32(0) AS some_revision,
            toDateTime64(0, 3, 'UTC') AS some_closed_at
        FROM ({contents})
        UNION ALL
        SELECT tuple({keys}), tuple({typed}), false, revision, closed_at
        FROM (SELECT {keys}, {columns}, revision, closed_at FROM windows FINAL WHERE {stored})
    )
    GROUP BY key
)
WHERE NOT known OR ({exact.format("new")}) != ({exact.format("old")}) OR NOT ({close})
    OR NOT {_nearly_equal(_position("parts"))}"""


def _is_streamed(run_id: str) -> str:
    return f"{run_id} IN {sql.texts(STREAMED_RUNS)}"


def _is_frozen(scope: Scope, closing: CloseParams, run_id: str, start: str) -> str:
    return f"({_is_streamed(run_id)} AND toUnixTimestamp({start}) + {scope.size_s} <= {closing.frozen_end})"


def _now(closing: CloseParams) -> str:
    return f"fromUnixTimestamp64Milli({closing.now_ms}, 'UTC')"


def _position(name: str) -> int:
    """Return the position of a column in the tuple of contents, from 1."""
    return CONTENTS.index(name) + 1


def _column(name: str) -> str:
    """Return the column, also if an aggregate function has its name."""
    return f"`{name}`"


def _nearly_equal(index: int) -> str:
    """Condition: two maps of sums have the same keys and, to nine digits, the same values."""
    new, old = f"new.{index}", f"old.{index}"
    return (
        f"(mapKeys({new}) = mapKeys({old}) AND arrayAll((a, b) -> abs(a - b) <= 1e-9 * (abs(a) + abs(b)), "
        f"mapValues({new}), mapValues({old})))"
    )
