"""Whatever the seed: no problem before the fault, problems of its metrics while it is on, and not one that stays.

Wider than here: `python -m benchmarks.demo_problems --seeds 10`.
"""

import pytest

from benchmarks.demo_faults import Bench
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.stream.demo.faults import FAULTS
from ragtide.stream.demo.run import DemoOptions
from tests.infra.fresh_database import fresh_database
from tests.stream.demo.simulated import Played, play

pytestmark = [pytest.mark.onnx, pytest.mark.clickhouse, pytest.mark.timeout(900)]

# `make demo` as it is, whose first fault is the first of the table, and each of the others with a seed of its own.
DEMOS = ((None, None), *zip(list(FAULTS)[1:], range(1, len(FAULTS)), strict=True))
AFTER_S = 45.0  # of the minute before the next fault


@pytest.fixture(scope="module")
def performances(clickhouse_server: EmbeddedClickHouse, tmp_path_factory: pytest.TempPathFactory) -> list[Played]:
    data = tmp_path_factory.mktemp("demos")
    demos = [DemoOptions(data, fault=fault, seed=seed) for fault, seed in DEMOS]
    with fresh_database(clickhouse_server) as database:
        return play(Bench(), database, demos, after_s=AFTER_S)


@pytest.fixture(params=range(len(DEMOS)), ids=lambda number: f"{list(FAULTS)[number]}-seed_{DEMOS[number][1]}")
def played(request: pytest.FixtureRequest, performances: list[Played]) -> Played:
    number: int = request.param
    return performances[number]


def test_every_fault_is_played(performances: list[Played]) -> None:
    assert [played.episode.fault.name for played in performances] == list(FAULTS)


def test_before_the_fault_not_one_problem_opens_or_waits_to(played: Played) -> None:
    assert played.early == []
    assert played.judged >= {metric for fault in FAULTS.values() for metric in fault.moves}


def test_each_metric_of_the_fault_and_no_other_becomes_a_problem_while_it_is_on(played: Played) -> None:
    episode = played.episode
    opened = played.when("opened", "reopened")
    assert [metric for metric, _ in opened] == sorted(episode.fault.moves)
    assert all(episode.start_s < at_s < episode.end_s for _, at_s in opened), opened


def test_all_of_them_are_resolved_between_the_fault_and_the_next(played: Played) -> None:
    resolved = played.when("resolved")
    assert [metric for metric, _ in resolved] == sorted(played.episode.fault.moves)
    assert all(at_s > played.episode.end_s for _, at_s in resolved), resolved
    assert {one.event for one in played.levels[-len(resolved) :]} == {"resolved"}


def test_one_fault_is_one_problem_with_its_symptoms(played: Played) -> None:
    first, *symptoms = played.episode.fault.moves
    assert list(played.groups) == [first], "and what checks of an hour or a day find afterwards are symptoms"
    assert set(symptoms) <= set(played.groups[first])


def test_checks_find_a_fault_that_is_over_as_symptoms(performances: list[Played]) -> None:
    found = {one.aspect for played in performances for one in played.said}
    assert found >= {"level", "finding", "inconsistency"}


def test_as_many_traces_were_sent_as_the_rate_says(played: Played) -> None:
    lasted_s = played.episode.end_s + AFTER_S
    assert played.traces == pytest.approx(played.options.rate * lasted_s, rel=0.1)
