"""SQL that stores what changed: new windows, changed ones, and zero rows for keys that a window had and has no more."""

from dataclasses import dataclass

from drift.windows import sql
from drift.windows.contents import CONTENTS, KEYS
from drift.windows.scope import STREAMED, Scope

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
class Closing:
    """How a roll-up closes its windows. Times in seconds since 1970.

    A window that ends by `frozen_end` had been passed by more than the allowed lateness before the roll-up began.
    """

    version: int
    now_ms: int
    frozen_end: int
    incomplete: bool


def store_changes(scope: Scope, contents: str, closing: Closing) -> str:
    """INSERT of the scope's windows whose contents differ from those stored; a second run inserts nothing.

    Sums are compared to nine digits: the engine adds in no fixed order.
    """
    keys = ", ".join(KEYS)
    typed = ", ".join(f"CAST({name}, '{_TYPES.get(name, 'UInt64')}') AS {name}" for name in CONTENTS)
    plain = ", ".join(_column(name) for name in CONTENTS)
    exact = ", ".join(f"{{0}}.{CONTENTS.index(name) + 1}" for name in _EXACT)
    close = " AND ".join(
        f"abs(new.{i} - old.{i}) <= 1e-9 * (abs(new.{i}) + abs(old.{i}))"
        for i in (CONTENTS.index("sum") + 1, CONTENTS.index("sum_squares") + 1)
    )
    streamed = f"run_id IN {sql.texts(STREAMED)}"
    parts = CONTENTS.index("parts") + 1
    written = ", ".join(f"new.{i + 1} AS {name}" for i, name in enumerate(CONTENTS))
    frozen = f"{streamed} AND toUnixTimestamp(start) + {scope.size_s} <= {closing.frozen_end}"
    return f"""
INSERT INTO windows (size_s, {keys}, {", ".join(CONTENTS)}, revision, state, incomplete, closed_at, version)
SELECT {scope.size_s} AS size_s, {keys}, {written},
    old_revision + 1 AS revision, multiIf({frozen}, 'frozen', known, 'revised', 'closed') AS state,
    {streamed} AND {int(closing.incomplete)} AS incomplete,
    if(known, old_closed_at, fromUnixTimestamp64Milli({closing.now_ms}, 'UTC')) AS closed_at,
    {closing.version} AS version
FROM (
    SELECT {keys}, anyIf(held, fresh) AS new, anyIf(held, NOT fresh) AS old, max(NOT fresh) AS known,
        max(some_revision) AS old_revision, maxIf(some_closed_at, NOT fresh) AS old_closed_at
    FROM (
        SELECT {keys.replace("start", "toDateTime(start, 'UTC') AS start")}, tuple({plain}) AS held, true AS fresh,
            toUInt32(0) AS some_revision, toDateTime64(0, 3, 'UTC') AS some_closed_at
        FROM (SELECT {keys}, {typed} FROM ({contents}))
        UNION ALL
        SELECT {keys}, tuple({plain}), false, revision, closed_at
        FROM (SELECT {keys}, {typed}, revision, closed_at FROM windows FINAL WHERE {scope.stored(scope.size_s)})
    )
    GROUP BY {keys}
)
WHERE NOT known OR ({exact.format("new")}) != ({exact.format("old")}) OR NOT ({close}) OR NOT {_alike(parts)}"""


def _column(name: str) -> str:
    """The column, also where an aggregate function has its name."""
    return f"`{name}`"


def _alike(index: int) -> str:
    """Condition: two maps of sums have the same keys and, to nine digits, the same values."""
    new, old = f"new.{index}", f"old.{index}"
    return (
        f"(mapKeys({new}) = mapKeys({old}) AND arrayAll((a, b) -> abs(a - b) <= 1e-9 * (abs(a) + abs(b)), "
        f"mapValues({new}), mapValues({old})))"
    )
