"""Money that is reserved for calls of a batch: never beyond the budget, and given back as far as it was not spent."""

import asyncio
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtide.evaluators.errors import Transient
from ragtide.evaluators.judge.settings import JudgeLimit, JudgeSettings
from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.judge import StoredLedger
from ragtide.stream.judge.limits import AppLimit, Ledger, LeftOut, Limits, MemoryLedger, Settle

NOON_S = datetime(2026, 11, 21, 12, tzinfo=UTC).timestamp()


class Clocks:
    """The time of day, and a clock, in seconds."""

    def __init__(self) -> None:
        self.now_s, self.clock_s = NOON_S, 0.0

    def limit(self, budget_usd: float, ledger: Ledger | None = None) -> AppLimit:
        limit = JudgeLimit(usd_per_day=budget_usd)
        return AppLimit("shop", limit, ledger or MemoryLedger(), lambda: self.now_s, lambda: self.clock_s)


def reserve(limit: AppLimit, usd: float) -> Settle | None:
    """What settles the call; None if it was left out."""
    try:
        return asyncio.run(limit.reserve(usd, latest_s=1e9))
    except LeftOut:
        return None


@given(st.lists(st.tuples(st.floats(0.01, 3.0), st.floats(0, 1), st.booleans()), max_size=40))
def test_reserved_and_spent_money_is_never_beyond_the_budget(steps: Sequence[tuple[float, float, bool]]) -> None:
    limit = Clocks().limit(5.0)
    held: list[tuple[float, float, Settle]] = []
    spent_usd = 0.0
    for most_usd, share, settles in steps:
        reserved_usd = sum(usd for usd, _, _ in held)
        settle = reserve(limit, most_usd)
        fits = spent_usd + reserved_usd + most_usd
        assert (settle is not None) == (fits <= 5.0) or fits == pytest.approx(5.0)
        if settle is not None:
            held.append((most_usd, most_usd * share, settle))
        if settles and held:
            _, cost_usd, settle_first = held.pop(0)
            settle_first(cost_usd)
            spent_usd += cost_usd


def test_a_call_that_is_settled_on_the_next_day_changes_nothing_of_that_day() -> None:
    clocks = Clocks()
    limit = clocks.limit(1.0)
    settle = reserve(limit, 1.0)
    assert settle is not None
    assert reserve(limit, 0.1) is None
    clocks.now_s += 86_400
    assert reserve(limit, 0.4) is not None
    settle(0.0)
    assert reserve(limit, 0.7) is None, "the money of yesterday is not today's"
    assert reserve(limit, 0.6) is not None


def test_what_is_too_dear_does_not_keep_out_what_is_not() -> None:
    limit = Clocks().limit(1.0)
    assert reserve(limit, 1.1) is None
    assert reserve(limit, 0.9) is not None
    assert reserve(limit, 0.2) is None
    assert reserve(limit, 0.1) is not None


def test_the_limit_of_a_run_holds_too_and_nothing_is_held_of_the_other_then() -> None:
    own = JudgeSettings.model_validate(
        {
            "endpoints": {
                "a": {"url": "http://j", "model": "m", "input_usd_per_million": 1, "output_usd_per_million": 1}
            },
            "limit": {"usd_per_day": 1.0},
        }
    )
    limits = Limits(own, MemoryLedger(), lambda: NOON_S, lambda: 0.0, max_usd=0.5)
    both = limits.of("shop")
    assert both is not None
    with pytest.raises(LeftOut):
        asyncio.run(both.reserve(0.6, 1e9))
    settle = asyncio.run(both.reserve(0.5, 1e9))
    settle(0.1)
    asyncio.run(both.reserve(0.4, 1e9))
    with pytest.raises(LeftOut):
        asyncio.run(both.reserve(0.01, 1e9))


@pytest.mark.clickhouse
def test_processes_share_the_money_that_they_reserve(database: Database) -> None:
    clocks = Clocks()
    first, second = (clocks.limit(2.0, StoredLedger(database)) for _ in range(2))
    settle = reserve(first, 1.5)
    assert settle is not None
    assert reserve(second, 0.6) is None
    settle(0.2)
    first.settle()
    clocks.clock_s += 61
    assert reserve(second, 1.8) is not None
    assert reserve(first, 0.1) is None


def test_a_ledger_that_does_not_answer_is_logged_once_and_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    class Away(MemoryLedger):
        failures = 2

        def lease(self, *lease: Any) -> float:
            if self.failures:
                self.failures -= 1
                raise Transient("ClickHouse does not answer")
            return super().lease(*lease)

    async def reserve() -> None:
        limit = Limits(JudgeSettings.model_validate({"limit": {"usd_per_day": 1.0}}), Away(), time.time).of("shop")
        assert limit is not None
        await limit.reserve(0.1, time.monotonic() + 30)

    asyncio.run(reserve())
    assert caplog.text.count("ClickHouse does not answer") == 1
