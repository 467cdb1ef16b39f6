"""A team's first hour with default settings: one problem a fault, soon, and none without a fault.

Wider than here: `python -m benchmarks.first_day`.
"""

import pytest

from benchmarks.first_day.applications import LEGAL, SUPPORT
from benchmarks.first_day.faults import FAULTS, Fault
from benchmarks.first_day.simulate import Plan, Result, simulate
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from tests.infra.fresh_database import fresh_database

pytestmark = [pytest.mark.clickhouse, pytest.mark.timeout(300)]
CHOSEN = [fault for fault in FAULTS if fault.application is SUPPORT]


@pytest.fixture(scope="module")
def result(clickhouse_server: EmbeddedClickHouse) -> Result:
    with fresh_database(clickhouse_server) as database:
        return simulate(database, Plan((SUPPORT, LEGAL), CHOSEN, before_min=12, fault_min=3, after_min=0, seed=2))


def test_no_problem_comes_without_a_fault(result: Result) -> None:
    assert [one.description for one in result.false_alarms(CHOSEN)] == []


def test_metrics_that_found_no_fault_are_no_insight(result: Result) -> None:
    assert result.constant == []


@pytest.mark.parametrize("fault", CHOSEN, ids=lambda fault: fault.name)
def test_a_fault_is_one_problem_within_three_minutes(result: Result, fault: Fault) -> None:
    (problem,) = result.parents(fault.name)
    assert problem.type in fault.types
    assert result.announced[fault.name] == 1
    found_s = result.detected_s(fault)
    assert found_s is not None
    assert found_s <= 180
