"""Series that move, by kind of detector: scores, rates, heavy tails, labels, a new model, a day; and questions."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from benchmarks.questions.world import World as Questions
from ragtide.drift.input_drift.check import InputDriftCheck
from ragtide.drift.input_drift.source import QuestionSource
from ragtide.drift.jobs import JobContext
from ragtide.drift.leadership import Term
from ragtide.drift.settings import DriftSettings, JobSettings, RuleSettings, WindowSettings
from ragtide.drift.windows.watermark import WatermarkRow
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.sinks.rows import EmbeddingRow, ProgressRow
from tests.drift.anomalies.window_fixture import BASE, DAY, EVALUATORS, WindowFixture, WindowRow, window
from tests.pins import recorded
from tests.pins.cli import backtest, flat, run_json
from tests.pins.golden import check
from tests.pins.pinned import MONDAY, pinned_database

pytestmark = pytest.mark.clickhouse
HOUR = 3600
WEDNESDAY = int(MONDAY.timestamp()) + 9 * DAY
FIRST = WEDNESDAY - 2 * HOUR  # where the job begins to look
ONSET, BACK = FIRST + HOUR, WEDNESDAY + HOUR // 2
UNTIL = WEDNESDAY + 3 * HOUR
LOOKS = (FIRST, ONSET, ONSET + 1500, BACK, UNTIL)
HISTORY = 8
RULES = RuleSettings(update_every_s=0)
SETTINGS = DriftSettings(history_days=HISTORY)
WINDOWS = WindowSettings(base_s=BASE, sizes_s=(BASE, HOUR, DAY), allowed_lateness_s=HOUR)
SHARES = (0.60, 0.62, 0.58, 0.61, 0.59, 0.60, 0.63, 0.57, 0.40)  # of good records, by day; the last one is Tuesday


def windows(first: int, end: int) -> Iterator[WindowRow]:
    """Each metric moves from `ONSET` until `BACK`, in an application of its own."""
    for at in range(first, end, BASE):
        rng, bad = np.random.default_rng(at), ONSET <= at < BACK
        means = {"stays": 0.8, "falls": 0.65 if bad else 0.8, "rises": 0.9 if bad else 0.8, "daily": 0.8}
        for app, mean in means.items():
            yield window("quality.good", at, np.clip(rng.normal(mean, 0.1, 40), 0, 1), version=0, app=app)
        wide = np.clip(rng.normal(0.5, 0.2 if bad else 0.08, 40), 0, 1)
        yield window("quality.good", at, wide, version=0, app="widens")
        passes = (rng.random(60) > (0.25 if bad else 0.03)).astype(float)
        yield window("checked.passes", at, passes, version=0, app="fails")
        yield window("speed.seconds", at, rng.lognormal(0.6 if bad else 0.0, 0.5, 60), version=0, app="slows")
        german = 24 if bad else 6
        yield window("inputs.question_language", at, {"en": 60 - german, "de": german}, version=0, app="asks")
        model, mean = ("m2", 0.65) if at >= ONSET else ("m1", 0.8)
        switched = window("quality.good", at, np.clip(rng.normal(mean, 0.1, 40), 0, 1), version=0, app="switches")
        yield switched._replace(model=model)


def days() -> Iterator[WindowRow]:
    """A thousand records of each day of `daily`."""
    for before, share in enumerate(reversed(SHARES), start=1):
        values = np.repeat([0.9, 0.3], [round(1000 * share), 1000 - round(1000 * share)])
        yield window("quality.good", WEDNESDAY - before * DAY, values, version=0, app="daily", size_s=DAY)


@pytest.fixture(scope="module")
def planted(clickhouse_server: EmbeddedClickHouse) -> Iterator[WindowFixture]:
    with pinned_database(clickhouse_server) as database:
        planted = WindowFixture(database, settings=SETTINGS, windows=WINDOWS)
        planted.store(days())
        planted.store(windows(FIRST - 36 * HOUR, FIRST))
        term = Term(1, MONDAY + timedelta(seconds=FIRST - int(MONDAY.timestamp())))
        jobs = JobContext(database, EVALUATORS, WINDOWS, RULES, JobSettings(), term, drift=SETTINGS)
        done = FIRST
        for at in LOOKS:
            planted.store(windows(done, at))
            planted.close(at)
            jobs.scan_for_changes(_time(at))
            done = at
        yield planted


def _time(at: int) -> datetime:
    return MONDAY + timedelta(seconds=at - int(MONDAY.timestamp()))


def test_what_the_job_wrote(planted: WindowFixture) -> None:
    start = _time(ONSET)
    check("detectors", "events", recorded.events(planted.database, start))
    check("detectors", "problems", recorded.problems(planted.database, start))
    check("sentences", "detectors", recorded.sentences(planted.database, start))


def test_what_a_backtest_finds(planted: WindowFixture, tmp_path: Path) -> None:
    running = {"windows": WINDOWS, "rules": RULES, "drift": SETTINGS}
    tried = {"rules": RULES, "drift": SETTINGS}
    span = (_time(FIRST), _time(UNTIL))
    check("backtest", "detectors", backtest(planted.database, EVALUATORS, tmp_path, running, tried, *span))


@pytest.mark.parametrize(
    ("app", "metric"),
    [
        ("stays", "quality.good"),
        ("fails", "checked.passes"),
        ("slows", "speed.seconds"),
        ("asks", "inputs.question_language"),
    ],
)
def test_what_baseline_show_shows(planted: WindowFixture, app: str, metric: str, tmp_path: Path) -> None:
    running = {"windows": WINDOWS, "drift": SETTINGS}
    words = ("baseline", "show", app, metric, "--json")
    check("baselines", f"{app} {metric}", flat(run_json(planted.database, EVALUATORS, tmp_path, running, *words)))


def test_what_users_ask(clickhouse_server: EmbeddedClickHouse, tmp_path: Path) -> None:
    """Half of what is asked is of a new topic for a day."""
    start = int(MONDAY.timestamp()) + 7 * DAY
    changed, until = start + DAY, start + 3 * DAY + HOUR
    asked = Questions(
        1, lambda second: 0.5 * (DAY <= second < 2 * DAY), an_hour=25, dimension=16, topics=5, start=start
    )
    settings = DriftSettings(history_days=8)
    with pinned_database(clickhouse_server) as database:
        watch = InputDriftCheck(database, settings, RULES, WindowSettings(), Term(1, _time(start)))
        done = start - 6 * DAY
        for at in (changed, changed + 12 * HOUR, until):
            _ask(database, asked, done, at)
            done, now = at, _time(at)
            database.insert("watermarks", [WatermarkRow(lane, "t", now) for lane in ("fast", "model")])
            database.insert("progress", [ProgressRow(lane, "t", 0, "w", now, 1, 0) for lane in ("fast", "model")])
            watch.run(now)
        found = chain(recorded.events(database, _time(changed)), recorded.problems(database, _time(changed)))
        check("detectors", "questions", found)
        check("sentences", "questions", recorded.sentences(database, _time(changed)))
        shown = run_json(
            database, EVALUATORS, tmp_path, {"drift": settings}, "baseline", "show", "shop", "inputs.question_meaning",
            "--json",
        )  # fmt: skip
        check("baselines", "shop inputs.question_meaning", flat(shown))


def _ask(database: Database, asked: Questions, first: int, end: int) -> None:
    lot = asked.sample(QuestionSource("shop", "prod", "e@1"), first, end, HOUR, 100)
    rows = [
        EmbeddingRow("live", "shop", "prod", _time(int(at)), id_, 1, "e@1", vector.tolist(), id_[:3])
        for at, id_, vector in zip(lot.at, lot.trace_ids, lot.vectors, strict=True)
    ]
    database.insert("embeddings", rows)
