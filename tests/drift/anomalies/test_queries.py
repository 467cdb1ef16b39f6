"""Windows of a minute and of all prompt versions become ticks of five minutes, by series and fingerprint."""

import numpy as np
import pytest

from ragtide.drift.anomalies import queries
from ragtide.drift.anomalies.metrics import monitored_metrics
from ragtide.drift.anomalies.queries import TickRange, WindowCells
from ragtide.drift.array_types import Numbers
from ragtide.drift.rules.model import Series
from ragtide.drift.windows.histogram import Scale
from ragtide.sinks.clickhouse.database import Database
from tests.drift.anomalies.window_fixture import EVALUATORS, START, WindowFixture, window
from tests.drift.world import SPEED

WATCHED = monitored_metrics(EVALUATORS.values())
SPAN = TickRange(60, 300, START, START + 600)


def read(database: Database, metric: str, levels: Numbers) -> WindowCells:
    """Cells of the metric's only series, by tick."""
    found = queries.load_series(database, SPAN, [metric], queries.series_ids(database, SPAN, [metric]))
    ((id_, newcomer),) = found.items()
    assert newcomer.series == Series("shop", "prod", metric, "m1", "", "")
    watch = WATCHED[metric]
    cells = queries.window_cells(
        database, watch.kind, WATCHED, [newcomer.series], np.array([id_], np.uint64), levels, SPAN
    )
    return cells[np.argsort(cells["at"], kind="stable")]


@pytest.fixture
def planted(database: Database) -> WindowFixture:
    """Three minutes of the first tick, in two prompt versions, one of the second; what is not live is elsewhere."""
    planted = WindowFixture(database)
    rows = []
    for minute, prompt in ((0, "p1"), (0, "p2"), (4, "p1"), (5, "p1")):
        at = START + 60 * minute
        for metric, records in (
            ("quality.good", [0.5, 0.9]),
            ("checked.passes", [0.0, 1.0, 1.0, 0.5]),  # 0.5 is the threshold: it passes
            ("speed.seconds", [1.0, 2.0, 4.0]),
            ("inputs.question_language", {"en": 3, "de": 2, "fr": 1}),
        ):
            values = records if isinstance(records, dict) else np.array(records)
            rows += [
                window(metric, at, values, version=0, prompt_version=prompt, size_s=60, run_id=run_id)
                for run_id in ("live", "replay")
            ]
    planted.store(rows)
    planted.store([window("quality.good", START, np.array([0.1]), version=0, size_s=60)])  # a revision of the first
    return planted


def test_scores_have_sums_and_sums_of_squares_of_the_newest_revision(planted: WindowFixture) -> None:
    cells = read(planted.database, "quality.good", np.zeros((1, 2), np.int64))
    assert cells["at"].tolist() == [START, START + 300]
    assert cells["n"].tolist() == [5, 2]
    assert cells["x"] == pytest.approx([2 * 1.4 + 0.1, 1.4])
    assert cells["y"] == pytest.approx([2 * 1.06 + 0.01, 1.06])


def test_rates_count_records_on_the_wrong_side(planted: WindowFixture) -> None:
    cells = read(planted.database, "checked.passes", np.zeros((1, 2), np.int64))
    assert [cells[name].tolist() for name in ("n", "x")] == [[12, 4], [3, 1]]


def test_positives_count_records_above_levels(planted: WindowFixture) -> None:
    bin_of = Scale.of(SPEED.metrics[0]).bin
    cells = read(planted.database, "speed.seconds", np.array([[bin_of(1.0), bin_of(2.0)]]))
    assert [cells[name].tolist() for name in ("n", "x", "y")] == [[9, 3], [6, 2], [3, 1]]


def test_labels_without_a_channel_are_one(planted: WindowFixture) -> None:
    hashes = planted.database.rows("SELECT cityHash64('en') AS en, cityHash64('de') AS de")[0]
    known = np.array([[hashes["en"], hashes["de"]]], np.uint64)
    cells = read(planted.database, "inputs.question_language", known)
    found = {(int(cell["at"]), int(cell["label"])): int(cell["n"]) for cell in cells}
    of_tick = {hashes["en"]: 9, hashes["de"]: 6, queries.OTHER_LABEL: 3}
    assert {label: n for (at, label), n in found.items() if at == START} == of_tick
    assert found[START + 300, hashes["en"]] == 3
