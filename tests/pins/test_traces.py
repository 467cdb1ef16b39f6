"""Checks of stored traces: findings, leaks and dead letters, flips, and questions asked again."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from ragtide.drift.checks.dead_letters import DeadLetters
from ragtide.drift.checks.findings import Findings
from ragtide.drift.robustness.answer_agreement import AnswerAgreement
from ragtide.drift.robustness.flip_rate import FlipRate
from ragtide.drift.robustness.score_consistency import ScoreConsistency
from ragtide.drift.settings import JobSettings, RuleSettings, WindowSettings
from ragtide.drift.windows.watermark import WatermarkRow
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from tests.drift.backtest import test_findings as findings
from tests.drift.backtest import test_flip_rate as flips
from tests.drift.robustness.test_answer_agreement import OTHER, SAME
from tests.drift.robustness.test_answer_agreement import ask as answered
from tests.drift.robustness.test_flip_rate import store
from tests.drift.robustness.test_score_consistency import GOOD, ONCE_BAD
from tests.drift.robustness.test_score_consistency import ask as scored
from tests.drift.world import World
from tests.pins import recorded
from tests.pins.cli import backtest
from tests.pins.golden import check
from tests.pins.pinned import START, pinned_database

pytestmark = pytest.mark.clickhouse
WINDOWS = WindowSettings(base_s=600, out_of_orderness_s=0, sizes_s=(3600,))
JOBS = JobSettings(repeats_every_s=600)
MINUTE = 60
REPEATS = RuleSettings(update_every_s=0, flap_s=0, repeats_within_s=3600)


def world_of(server: EmbeddedClickHouse, rules: RuleSettings, name: str) -> Iterator[World]:
    with pinned_database(server) as database:
        world = World(database, windows=WINDOWS, rules=rules, evaluators=findings.ALL, start=START)
        {"findings": look_at_findings, "flips": look_at_flips, "repeats": look_at_repeats}[name](world)
        yield world


def look_at_findings(world: World) -> None:
    for minute in range(0, 120, 10):
        world.store(findings.traces(world, minute))
        world.database.insert("dead_letters", findings.letters(world, minute))
        now = world.at(MINUTE * (minute + 10))
        world.database.insert("watermarks", [WatermarkRow("fast", "rag.traces", now)])
        world.check(Findings(), now)
        world.check(DeadLetters(), now)


def look_at_flips(world: World) -> None:
    for minute in (10, 30, 40, 70, 110):
        store(world, flips.traces(world, minute))
        world.check(FlipRate(), world.at(MINUTE * (minute + 10)))


def look_at_repeats(world: World) -> None:
    scored(world, [ONCE_BAD] * 20 + [GOOD] * 10, name="q", second=600, app="shop")
    answered(world, [[SAME, SAME, OTHER]] * 10, name="a", second=1200, app="says")
    answered(world, [[[127, 0], [127, 0], [0, 127]]] * 10, name="v", second=1200, app="means")
    for minute in (30, 50, 90):
        if minute == 50:
            scored(world, [GOOD] * 80, name="r", second=2400, app="shop")
        now = world.at(MINUTE * minute)
        world.check(ScoreConsistency(), now)
        world.check(AnswerAgreement(), now)


RULES = {"findings": findings.RULES, "flips": flips.RULES, "repeats": REPEATS}


@pytest.mark.parametrize("name", list(RULES))
def test_what_the_jobs_wrote_what_people_read_and_what_a_backtest_finds(
    clickhouse_server: EmbeddedClickHouse, name: str, tmp_path: Path
) -> None:
    rules = RULES[name]
    for world in world_of(clickhouse_server, rules, name):
        lines = chain(recorded.events(world.database, START), recorded.problems(world.database, START))
        check("traces", name, lines)
        check("sentences", name, recorded.sentences(world.database, START))
        running = {"windows": WINDOWS, "jobs": JOBS, "rules": rules}
        span = (START, world.at(MINUTE * 120))
        check("backtest", name, backtest(world.database, findings.ALL, tmp_path, running, {"rules": rules}, *span))
