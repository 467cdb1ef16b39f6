"""Many small runs with restarts and late windows leave what one run over everything leaves."""

from collections.abc import Iterator

import numpy as np
import pytest

from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from tests.drift.anomalies.window_fixture import BASE, DAY, START, WindowFixture, WindowRow, window
from tests.infra.fresh_database import fresh_database

BEGIN = START + 2 * DAY - 4 * 3600  # the first tick that is looked at: an hour before the first look
END = BEGIN + 10 * 3600 + BASE  # past midnight, 5:50 and 20:45, when three of four batches learn anew
ONSET = BEGIN + 3 * 3600


def windows() -> Iterator[WindowRow]:
    """Two series of each kind, one of which changes, and a third that comes on the second day."""
    rng = np.random.default_rng(7)
    for at in range(START + DAY // 2, END, BASE):
        changed = at >= ONSET
        for app in ("calm", "moves"):
            moved = changed and app == "moves"
            yield window(
                "quality.good", at, np.clip(rng.normal(0.6 if moved else 0.8, 0.1, 40), 0, 1), version=0, app=app
            )
            yield window("checked.passes", at, rng.random(60) > (0.2 if moved else 0.02), version=0, app=app)
            yield window("speed.seconds", at, rng.lognormal(0.5 if moved else 0, 0.4, 40), version=0, app=app)
            labels = rng.multinomial(60, [0.6, 0.3, 0.1] if moved else [0.9, 0.05, 0.05])
            counts = dict(zip(("en", "de", "fr"), labels.tolist(), strict=True))
            yield window("inputs.question_language", at, counts, version=0, app=app)
        if at >= START + DAY - 3600:
            yield window("quality.good", at, np.clip(rng.normal(0.7, 0.1, 40), 0, 1), version=0, app="new")


@pytest.fixture(scope="module")
def rows() -> list[WindowRow]:
    return list(windows())


def left(planted: WindowFixture) -> dict[str, object]:
    """All that a run leaves but for versions: of a state its bytes."""
    states = planted.database.rows(
        "SELECT kind, number, slot, until, names, state FROM detector_states FINAL ORDER BY ALL"
    )
    baselines = planted.database.rows(
        "SELECT kind, number, effective_from, baseline FROM detector_baselines FINAL ORDER BY ALL"
    )
    return {"states": states, "baselines": baselines}


def test_cuts_restarts_and_late_windows_change_nothing(
    clickhouse_server: EmbeddedClickHouse, rows: list[WindowRow]
) -> None:
    rng = np.random.default_rng(11)
    with fresh_database(clickhouse_server) as one, fresh_database(clickhouse_server) as other:
        at_once, in_pieces = WindowFixture(one), WindowFixture(other)
        first = BEGIN + 3600
        known = [row for row in rows if row.start.timestamp() < first]
        for planted in (at_once, in_pieces):
            planted.store(known)
            planted.scan(first)
        at_once.store(row for row in rows if row.start.timestamp() >= first)
        whole = at_once.scan(END)
        cuts = sorted({*(int(cut) * BASE + first for cut in rng.integers(1, (END - first) // BASE, 3)), END})
        missing: list[WindowRow] = []
        since = first
        for cut in cuts:
            new = [row for row in rows if since <= row.start.timestamp() < cut]
            held_back = [row for row in new if row.start.timestamp() >= cut - 3600 and rng.random() < 0.2]
            half = [row._replace(scored=row.scored // 2, sum=row.sum / 3, category_counts={}) for row in held_back]
            in_pieces.store(row for row in new if row not in held_back)
            in_pieces.store(half[::2])
            in_pieces.scan(cut)
            in_pieces.store(held_back)  # looked at again with the next cut, or at the end
            missing, since = held_back, cut
        last = in_pieces.scan(END)
        assert missing
        assert last.reprocessed == len({(row.app, row.metric, row.start) for row in missing})
        moved = {one.batch.series[alarm.place] for one in whole.snapshots for alarm in one.alarms()}
        assert {(series.app, series.metric) for series in moved} == {
            ("moves", metric)
            for metric in ("quality.good", "checked.passes", "speed.seconds", "inputs.question_language")
        }
        learnt = at_once.database.rows(
            "SELECT DISTINCT effective_from FROM detector_baselines FINAL ORDER BY effective_from"
        )
        assert [int(row["effective_from"].timestamp()) - BEGIN for row in learnt] == [
            0,
            2700,
            4 * 3600,
            9 * 3600 + 3000,
        ]
        assert [one.batch.encode_names() for one in last.snapshots] == [
            one.batch.encode_names() for one in whole.snapshots
        ]
        assert left(in_pieces) == left(at_once)
