"""The roll-up's SQL, on the real engine, gives what the plain model of windows gives."""

import itertools
import math
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from ragtide.drift.leadership import elect
from ragtide.drift.settings import WindowSettings
from ragtide.drift.windows.rollup import Rollup
from ragtide.drift.windows.watermark import Idleness
from ragtide.evaluators.parts import ClassValue, Combined
from ragtide.evaluators.spec import Evaluator, Metric
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import ScoreRow
from ragtide.sinks.settings import RetentionSettings
from tests.drift.windows_model import Content, Key, base_windows, bin_of
from tests.drift.world import World, made, score_row, trace_row

Described = dict[str, Any]  # of a score row

pytestmark = pytest.mark.clickhouse

ODD = made(
    "odd",
    [
        Metric("up", threshold=0.75, primary=True),
        Metric("down", better="lower", threshold=0.25, primary=True),
        Metric("grade", low=1, high=5),
        Metric("free", low=-math.inf, high=math.inf, better="lower", optional=True),
    ],
)


def combine(parts: Mapping[str, float]) -> Combined:
    """`rate` is the share of hits; `class_rate` that of each class of two."""
    total = sum(parts.values())
    if not total:
        return Combined()
    classes = {label: (parts.get(f"hit\t{label}", 0.0), parts.get(f"miss\t{label}", 0.0)) for label in "xy"}
    per: dict[tuple[str, ...], ClassValue] = {
        (label,): ClassValue(hit / (hit + miss), int(hit + miss))
        for label, (hit, miss) in classes.items()
        if hit + miss
    }
    return Combined({"rate": sum(hit for hit, _ in classes.values()) / total}, {"class_rate": per})


RATED = made(
    "rated",
    [Metric("rate", primary=True), Metric("never"), Metric("class_rate", per=("class",))],
    method="window",
    combine=combine,
)
EVALUATORS: Mapping[str, Evaluator] = {
    "odd": ODD,
    "plain": made("plain", [Metric("up", primary=True)]),
    "rated": RATED,
}
SEGMENTS = {"tenant": ("a", "b"), "language": ("en",)}
_APPS = itertools.count(1)

hundredths = st.integers(0, 100).map(lambda i: i / 100)
shares = hundredths | st.floats(0, 1)
metrics = st.fixed_dictionaries(
    {"up": shares, "down": shares, "grade": st.floats(1, 5)},
    optional={"free": st.sampled_from([0.0, -3.5, 0.02, 1.0, 7.25, 1e9, -1e-9])},
)
PARTS = ("hit\tx", "miss\tx", "hit\ty", "miss\ty")
rows = st.lists(
    st.fixed_dictionaries(
        {
            "second": st.integers(0, 179),
            "trace": st.integers(0, 7),
            "evaluator": st.sampled_from(["odd", "plain", "rated"]),
            "status": st.sampled_from(["scored", "scored", "scored", "failed", "not_applicable", "sampled_out"]),
            "reason": st.sampled_from(["", "too_long", "crashed"]),
            "metrics": metrics,
            "categories": st.dictionaries(st.sampled_from(["language", "kind"]), st.sampled_from(["x", "y"])),
            "parts": st.dictionaries(st.sampled_from(PARTS), st.integers(1, 3).map(float)),
            "fingerprint": st.sampled_from(["f1", "f1", "f2"]),
            "model": st.sampled_from(["m1", "m2"]),
            "prompt_version": st.sampled_from(["p1", "p2"]),
            "segments": st.dictionaries(
                st.sampled_from(["tenant", "language", "unwatched"]), st.sampled_from(["a", "b", "c", "en", "it's\\"])
            ),
            "is_deleted": st.sampled_from([0, 0, 0, 0, 1]),
        }
    ),
    max_size=25,
)


def _scored(second: int, up: float, down: float) -> Described:
    return {
        "second": second,
        "trace": second,
        "evaluator": "odd",
        "status": "scored",
        "reason": "",
        "metrics": {"up": up, "down": down, "grade": 1.0},
        "categories": {},
        "parts": {},
        "fingerprint": "f1",
        "model": "m1",
        "prompt_version": "p1",
        "segments": {},
        "is_deleted": 0,
    }


@settings(
    max_examples=15,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(first=rows, second=rows)
@example(first=[_scored(0, 0.2, 0.9), _scored(70, 0.9, 0.2)], second=[])  # no one of two windows has both extremes
def test_the_roll_up_is_the_model(database: Database, first: list[Described], second: list[Described]) -> None:
    """Twice: as rows first close, and after more versions of the same traces, some of them gone from their window."""
    app = f"app{next(_APPS)}"
    frames = WindowSettings(base_s=10, sizes_s=(60, 86400), out_of_orderness_s=0, segments=SEGMENTS)
    world = World(database, windows=frames, evaluators=EVALUATORS)
    rollup = Rollup(database, EVALUATORS, frames, elect(database, app), Idleness(), RetentionSettings())
    world.progress(86400)
    stored: list[ScoreRow] = []
    before: dict[int, dict[Key, dict[str, Any]]] = {}
    for batch in (first, second):
        written = [_row(world, app, described) for described in batch]
        stored += written
        if written:
            world.store(written)
        rollup.run(world.at(86500))
        for size_s in (10, 60, 86400):
            expected = base_windows(stored, [trace_row(row) for row in stored], EVALUATORS, SEGMENTS, size_s)
            found = _stored(database, app, size_s)
            _compare(expected, found, before.get(size_s, {}))
            before[size_s] = found
    newest = _newest(database, app)
    rollup.run(world.at(86600))
    assert _newest(database, app) == newest  # nothing changed: nothing is written


@settings(
    max_examples=4,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(described=rows.filter(bool))
def test_larger_windows_are_the_same_of_smaller_ones_and_of_the_scores(
    database: Database, described: list[Described]
) -> None:
    app = f"app{next(_APPS)}"
    frames = WindowSettings(base_s=10, sizes_s=(60, 86400), out_of_orderness_s=0, segments=SEGMENTS)
    world = World(database, windows=frames, evaluators=EVALUATORS)
    rollup = Rollup(database, EVALUATORS, frames, elect(database, app), Idleness(), RetentionSettings())
    world.progress(86400)
    stored = [_row(world, app, one) for one in described]
    world.store(stored)
    rollup.run(world.at(86500))
    newest = _newest(database, app)
    world.store(stored)
    rollup.run(world.at(31 * 86400))  # base windows are deleted by now, so that larger ones are made of the scores
    assert _newest(database, app) == newest


def _compare(
    expected: Mapping[Key, Content], found: Mapping[Key, dict[str, Any]], before: Mapping[Key, dict[str, Any]]
) -> None:
    of_classes = {key for key in (*found, *before) if key.metric == "rated.class_rate"}
    _compare_contents(
        expected,
        {key: row for key, row in found.items() if key not in of_classes},
        {key: row for key, row in before.items() if key not in of_classes},
    )
    made: dict[Key, float] = {}
    for key, content in expected.items():
        if key.metric == "rated.rate":
            numbers = combine(content.parts)
            if numbers.metrics:
                made[key] = numbers.metrics["rate"]
            if not key.segment:
                series = key._replace(metric="rated.class_rate", segment="class")
                for (label,), one in numbers.per.get("class_rate", {}).items():
                    made[series._replace(segment_value=label)] = one.value
                    assert found[series._replace(segment_value=label)]["scored"] == one.records
    for key, row in found.items():
        assert row["value"] == (pytest.approx(made[key]) if key in made else None), key
    assert made.keys() <= found.keys()


def _compare_contents(
    expected: Mapping[Key, Content], found: Mapping[Key, dict[str, Any]], before: Mapping[Key, dict[str, Any]]
) -> None:
    assert sorted(found) == sorted(set(expected) | set(before))
    for key, row in found.items():
        content = expected.get(key, Content())  # a key that vanished has a row of zeros
        for name in ("seen", "sampled", "applicable", "scored", "failed"):
            assert row[name] == getattr(content, name), (key, name)
        for name in ("skipped", "failures", "category_counts"):
            assert row[name] == dict(getattr(content, name)), (key, name)
        assert row["parts"] == {k: float(v) for k, v in content.parts.items()}, key
        values = content.values
        assert row["sum"] == pytest.approx(math.fsum(values), rel=1e-9, abs=1e-9), key
        assert row["sum_squares"] == pytest.approx(math.fsum(v * v for v in values), rel=1e-9, abs=1e-9), key
        assert row["min"] == (min(values) if values else None), key
        assert row["max"] == (max(values) if values else None), key
        assert row["bins"] == _bins(key.metric, values), key
        old = before.get(key)
        changed = old is not None and any(
            old[name] != row[name] for name in row if name not in ("revision", "sum", "sum_squares", "late")
        )  # and its own number, if nothing else
        assert row["revision"] == (1 if old is None else old["revision"] + changed), key


def _bins(metric: str, values: list[float]) -> dict[int, int]:
    evaluator, _, key = metric.partition(".")
    spec = next((m for m in EVALUATORS[evaluator].metrics if m.key == key), Metric(key, -math.inf, math.inf))
    bins: dict[int, int] = {}
    for value in values:
        bins[bin_of(spec, value)] = bins.get(bin_of(spec, value), 0) + 1
    return bins


def _row(world: World, app: str, described: Described) -> ScoreRow:
    fields = dict(described)
    second, trace = fields.pop("second"), fields.pop("trace")
    if fields["status"] != "scored":
        fields["metrics"], fields["categories"] = {}, {}
    elif fields["evaluator"] == "rated":
        fields["metrics"] = {"rate": fields["metrics"]["up"]}
    elif fields["evaluator"] == "plain":
        fields["metrics"] = {"up": fields["metrics"]["up"], "undeclared": 2.0}
    return score_row(world.start + timedelta(seconds=second), f"t{trace}", app=app, **fields)


def _stored(database: Database, app: str, size_s: int) -> dict[Key, dict[str, Any]]:
    rows = database.rows(
        "SELECT *, toUnixTimestamp(start) AS at FROM windows FINAL "
        "WHERE app = {app:String} AND size_s = {size_s:UInt32}",
        {"app": app, "size_s": size_s},
    )
    names = [
        *("seen", "sampled", "applicable", "scored", "failed", "skipped", "failures", "category_counts", "parts"),
        *("sum", "sum_squares", "min", "max", "bins", "revision", "value"),
    ]
    keys = Key._fields
    return {
        Key(*(row["at"] if name == "start" else row[name] for name in keys)): {name: row[name] for name in names}
        for row in rows
    }


def _newest(database: Database, app: str) -> tuple[int, int]:
    """Count the windows and return the largest version: both are the same before and after ClickHouse merges rows."""
    (row,) = database.rows(
        "SELECT count() AS n, max(version) AS version FROM windows FINAL WHERE app = {app:String}", {"app": app}
    )
    return int(row["n"]), int(row["version"])
