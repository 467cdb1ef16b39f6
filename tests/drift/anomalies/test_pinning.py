"""A fixed reference: what it reaches, what it is not enough for, and that it stays."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from ragtide.drift.anomalies import pinning
from ragtide.drift.anomalies.baseline_view import baseline_views
from ragtide.drift.anomalies.metrics import monitored_metrics
from ragtide.drift.anomalies.pinning import PinCoverage
from ragtide.drift.anomalies.references import FROM_HISTORY, BaselinePin, ReferenceOverrides, load_pins
from ragtide.drift.anomalies.scanner import ScanResult
from ragtide.drift.problems.operator_actions import Acceptance
from ragtide.drift.problems.report import ProblemKey
from ragtide.drift.rules.model import Series
from ragtide.drift.settings import DriftSettings
from ragtide.evaluators.errors import ConfigError
from ragtide.sinks.clickhouse.database import Database
from tests.drift.anomalies.window_fixture import BASE, DAY, EVALUATORS, START, WindowFixture, WindowRow, window

METRIC = "checked.passes"
WATCHED = monitored_metrics(EVALUATORS.values())
MIDNIGHT = START + 3 * DAY  # when this batch's baselines are learned
NOW = MIDNIGHT - 1800


def failing(first: int, end: int, share: float, run_id: str = "live", **fields: str) -> Iterator[WindowRow]:
    for at in range(first, end, BASE):
        yes = np.random.default_rng(at - START).random(60) > share
        row = window(METRIC, at, yes, version=0, run_id=run_id)
        yield row._replace(**fields)  # type: ignore[arg-type]  # texts all


def time(at: int) -> datetime:
    return datetime.fromtimestamp(at, UTC)


def pin_of(run_id: str, first: int, end: int, at: int = NOW) -> BaselinePin:
    return BaselinePin("shop", "", run_id, time(first), time(end), "as it should be", "ann", 0, time(at))


def levels(looked: ScanResult) -> dict[str, float]:
    """Of series that are watched, by model."""
    return {
        series.model: float(one.baseline.level[place, 0].mean())
        for one in looked.snapshots
        for place, series in enumerate(one.batch.series)
        if not one.baseline.warming[place]
    }


@pytest.mark.clickhouse
def test_half_a_day_of_live_windows_is_a_reference(database: Database) -> None:
    """2 % failed for half a day, 10 % in the last days: usual by history, and too much by the half day."""
    planted, half = WindowFixture(database), START + DAY // 2
    planted.store(failing(START, half, 0.02))
    planted.store(failing(START + DAY, NOW, 0.1))
    assert levels(planted.scan(NOW)) == {"m1": pytest.approx(0.1, abs=0.01)}
    reached = pinning.pin(database, WATCHED, planted.windows, planted.settings, [pin_of("live", START, half)])
    assert reached == [PinCoverage(1, {})]
    planted.store(failing(NOW, NOW + 3600, 0.1))
    looked = planted.scan(NOW + 3600)
    assert levels(looked) == {"m1": pytest.approx(0.02, abs=0.01)}
    assert looked.alarms == 1


@pytest.mark.clickhouse
def test_a_reference_of_another_fingerprint_is_none(database: Database) -> None:
    planted = WindowFixture(database)
    planted.store(failing(START + 2 * DAY, NOW, 0.02))
    planted.store(failing(START, START + DAY // 4, 0.2, "release", fingerprint="f2"))
    planted.scan(NOW)
    with pytest.raises(ConfigError, match=r"covers none of the 1 .*: 1 with records of another fingerprint only"):
        pinning.pin(database, WATCHED, planted.windows, planted.settings, [pin_of("release", START, START + DAY)])
    wrong = pin_of("release", START, START + DAY)._replace(metric="checked.fails")
    with pytest.raises(ConfigError, match=r"checked\.fails is not monitored .* checked\.passes"):
        pinning.pin(database, WATCHED, planted.windows, planted.settings, [wrong])
    assert pinning.pin_history(database, "shop") == []


@pytest.mark.clickhouse
def test_a_reference_stays_and_where_it_is_not_enough_history_counts(database: Database) -> None:
    """The replay has records of one of two models, and is deleted a day later."""
    planted, new = WindowFixture(database), pin_of("release", START, START + DAY, at=START + DAY)
    for model in ("m1", "m2"):
        planted.store(failing(START + DAY, MIDNIGHT, 0.02, model=model))
    planted.store(failing(START, START + DAY // 2, 0.2, "release"))
    planted.scan(NOW)
    assert pinning.pin(database, WATCHED, planted.windows, planted.settings, [new]) == [
        PinCoverage(1, {"no records": 1})
    ]
    both = {"m1": pytest.approx(0.2, abs=0.03), "m2": pytest.approx(0.02, abs=0.01)}
    assert levels(planted.scan(NOW)) == both
    database.command("DELETE FROM windows WHERE run_id = 'release'")
    looked = planted.scan(MIDNIGHT + BASE)
    assert levels(looked) == both
    assert [one.batch.processed_until for one in looked.snapshots] == [MIDNIGHT + BASE]
    found = baseline_views(
        database, WATCHED, planted.windows, DriftSettings(history_days=2), {"app": "shop", "metric": METRIC}
    )
    assert {one.series.model: one.rests_on for one in found} == {
        "m1": "the pinned reference",
        "m2": "history, because the pinned reference has too few records of it",
    }
    assert {one.learned_at for one in found} == {time(MIDNIGHT)}


def test_of_a_pin_and_an_accepted_change_the_later_word_counts() -> None:
    series = Series("shop", "prod", METRIC, "m1", "", "")
    other = series._replace(model="m2")
    of_app, of_metric = pin_of("release", START, NOW), pin_of("newer", START, NOW)._replace(metric=METRIC)
    place = ProblemKey("shop", "prod", "m1", "level", METRIC)
    change = Acceptance(place, ("change_point",), time(NOW - 7200), time(NOW + 1), "ada", "meant")
    said = ReferenceOverrides({("shop", ""): of_app}, {series: change})
    assert (said.pin_of(series), said.baseline_source(series)) == (None, NOW - 7200)
    assert (said.pin_of(other), said.baseline_source(other)) == (of_app, of_app.baseline_source)
    again = ReferenceOverrides(
        {("shop", METRIC): of_metric._replace(at=time(NOW) + timedelta(seconds=2))}, {series: change}
    )
    assert again.baseline_source(series) == of_metric.baseline_source
    assert ReferenceOverrides({}, {}).baseline_source(series) == FROM_HISTORY


@pytest.mark.clickhouse
def test_no_word_on_pins_is_lost(database: Database) -> None:
    words = [pin_of("release", START, NOW, at=START + second) for second in range(3)]
    database.insert("baseline_pins", words[:1])
    assert load_pins(database) == {("shop", ""): words[0]}
    (gone,) = pinning.unpin(database, "shop", [""], "bob", "over", words[1].at)
    assert load_pins(database) == {}
    pinning.save_pins(database, words[2:])
    database.command("OPTIMIZE TABLE baseline_pins FINAL")
    assert pinning.pin_history(database, "shop") == [words[2], gone, words[0]]
    assert (gone.actor, gone.why, gone.removed) == ("bob", "over", 1)
    assert pinning.pin_history(database, "another") == []
