"""Limits of an application: money never spent twice, and calls of a minute, against an endpoint that fails too."""

import asyncio
import json
import random
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pydantic import ValidationError

from ragtide.evaluators.errors import Transient
from ragtide.evaluators.judge.calls import OVER_BUDGET, THROTTLED, Answer, Asker, TraceCalls
from ragtide.evaluators.judge.replies import Verdicts
from ragtide.evaluators.judge.settings import JudgeLimit, JudgeSettings
from ragtide.evaluators.outcome import Failed
from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.judge import JudgeClient, StoredLedger, UsageKey
from ragtide.stream.judge.limits import LEASES, AppLimit, Ledger, LeftOut, MemoryLedger
from tests.stream.judge.asking import FAST, ask_all, kind, verdicts
from tests.stream.judge.chat_server import (
    KEY,
    Behaviour,
    ChatServer,
    by_rule,
    chat_server,
    cut_connection,
    error,
    hang,
    reply,
    say,
)

DAY = date(2026, 11, 21)
NOON_S = datetime(2026, 11, 21, 12, tzinfo=UTC).timestamp()
CALL_USD = 0.01  # 1,000 input tokens of 10 dollars a million; see `completion`
GOOD = reply({"verdicts": [{"number": 1, "verdict": True}]})
PRICES = {"input_usd_per_million": 10.0, "output_usd_per_million": 0.0}


@contextmanager
def limited(
    url: str,
    limit: Mapping[str, Any],
    ledger: Ledger | None = None,
    now: Callable[[], float] = lambda: NOON_S,
    **endpoint: Any,
) -> Iterator[JudgeClient]:
    own = {"url": url, "model": "m-1", "api_key": KEY, **FAST, **PRICES, **endpoint}
    settings = JudgeSettings.model_validate({"endpoints": {"local": own}, "limit": limit})
    client = JudgeClient(settings, seed=1, ledger=ledger, now=now)
    try:
        yield client
    finally:
        client.close()


def ask_about(client: JudgeClient, number: int, app: str = "shop", first: int = 0) -> list[Answer]:
    """Make different calls, each about a trace of its own."""
    results: list[Answer] = []
    for at in range(number):
        results += ask_all(client, [verdicts(1, f"claim {first + at}")], Asker("e", TraceCalls(app)))
    return results


def ask_at_once(client: JudgeClient, number: int) -> list[Answer]:
    return list(ask_all(client, [verdicts(1, f"claim {at}") for at in range(number)]))


def spent(client: JudgeClient) -> float:
    return client.usage()[UsageKey("local", "e", "shop")].cost_usd


def test_calls_end_when_the_money_of_the_day_is_spent() -> None:
    with chat_server(GOOD) as server, limited(server.url, {"usd_per_day": 0.055}) as client:
        results = ask_about(client, 10)
        assert len(server.sent) == 6, "at 0.05 there is money left, so one more is sent"
        assert results[6:] == [OVER_BUDGET] * 4
        assert all(isinstance(one, Verdicts) for one in results[:6])
        assert client.usage()[UsageKey("local", "e", "shop")].failures == {"over_budget": 4}


def test_every_application_has_money_of_its_own_and_a_new_day_begins_with_all_of_it() -> None:
    at = [NOON_S]
    with chat_server(GOOD) as server, limited(server.url, {"usd_per_day": 0.02}, now=lambda: at[0]) as client:
        assert [one == OVER_BUDGET for one in ask_about(client, 3)] == [False, False, True]
        assert ask_about(client, 1, app="docs") != [OVER_BUDGET]
        at[0] += 86_400
        assert [one == OVER_BUDGET for one in ask_about(client, 3)] == [False, False, True]


def test_a_record_that_money_leaves_out_takes_no_room_of_the_hour() -> None:
    at = [NOON_S]
    with chat_server(GOOD) as server, limited(server.url, {"usd_per_day": 0.01}, now=lambda: at[0]) as client:

        def check(number: int) -> Answer:
            asker = Asker("e", TraceCalls("shop", f"t{number}"), records_per_hour=12)  # two may begin at once
            return ask_all(client, [verdicts(1, f"claim {number}")], asker)[0]

        assert isinstance(check(1), Verdicts)
        assert [check(number) for number in (2, 3)] == [OVER_BUDGET] * 2
        at[0] += 86_400
        assert isinstance(check(4), Verdicts)
        assert check(5) == THROTTLED


FAULTS: dict[str, Behaviour] = {
    "good": GOOD,
    "429": error(429, "rate_limit_exceeded"),
    "500": error(500),
    "hang": hang,
    "cut": cut_connection,
    "prose": say("I would rather not."),
}


@pytest.mark.parametrize("seed", range(6))
def test_spend_is_never_above_the_budget_and_the_calls_in_flight_under_any_fault(seed: int) -> None:
    """Neither what the client counts nor what a provider would bill for replies goes beyond it."""
    rng = random.Random(seed)
    names = list(FAULTS)
    script = rng.choices(names, weights=[6, 1, 1, 1, 1, 1], k=80)
    budget_usd, concurrency = 0.2, 4
    endpoint: dict[str, Any] = {
        "concurrency": concurrency,
        "structured": "none",
        "timeout_s": 0.1,
        "retries": 2,
        "max_tokens": 50,
        "breaker_failures": 99,
    }
    with (
        chat_server(GOOD, *(FAULTS[name] for name in script), structured=("none",)) as server,
        limited(server.url, {"usd_per_day": budget_usd}, **endpoint) as client,
    ):
        results = ask_at_once(client, 60)
        billed = [name for name in (*script, *["good"] * 100)[: len(server.sent)] if name not in ("429", "500")]
        assert spent(client) <= budget_usd + concurrency * CALL_USD
        answered = sum(name in ("good", "prose") for name in billed)
        assert answered * CALL_USD <= budget_usd + concurrency * CALL_USD
        assert OVER_BUDGET in results
        assert not [one for one in results if isinstance(one, Failed) and kind(one) == "judge_crashed"]


def test_an_answer_that_is_lost_is_charged_as_if_it_were_as_long_as_possible() -> None:
    prices: dict[str, Any] = {"input_usd_per_million": 0.0, "output_usd_per_million": 1_000.0}
    with (
        chat_server(hang) as server,
        limited(server.url, {"usd_per_day": 0.3}, retries=0, timeout_s=0.1, max_tokens=100, **prices) as client,
    ):
        results = ask_about(client, 4)
    assert [one if one == OVER_BUDGET else kind(one) for one in results] == [*["judge_timeout"] * 3, OVER_BUDGET]


def test_what_was_sent_with_it_is_charged_as_if_each_byte_were_a_token() -> None:
    options: dict[str, Any] = {"retries": 0, "timeout_s": 0.1, "max_tokens": 1}
    options |= {"input_usd_per_million": 1_000.0, "output_usd_per_million": 0.0}
    with chat_server(hang) as server:
        with limited(server.url, {"usd_per_day": 1_000}, **options) as client:
            ask_about(client, 1)
        sent_usd = len(json.dumps(server.sent[0].body, ensure_ascii=False, separators=(",", ":")).encode()) / 1_000
        with limited(server.url, {"usd_per_day": 1.5 * sent_usd}, **options) as client:
            results = ask_about(client, 4)
    assert [one if one == OVER_BUDGET else kind(one) for one in results] == ["judge_timeout"] * 2 + [OVER_BUDGET] * 2


def test_a_call_that_is_refused_costs_nothing() -> None:
    with (
        chat_server(GOOD, *[error(500)] * 9, *[error(429)] * 9) as server,
        limited(server.url, {"usd_per_day": 0.015}, retries=0, breaker_failures=99) as client,
    ):
        results = ask_about(client, 22)
    assert [isinstance(one, Failed) for one in results] == [*[True] * 18, *[False] * 4]
    assert results[20:] == [OVER_BUDGET] * 2


def test_a_ledger_that_does_not_answer_stops_calls_and_never_lets_them_pass() -> None:
    class Away(MemoryLedger):
        failures = 1

        def lease(self, *lease: Any) -> float:
            if self.failures:
                self.failures -= 1
                raise Transient("ClickHouse does not answer")
            return super().lease(*lease)

    ledger = Away()
    with (
        chat_server(GOOD) as server,
        limited(server.url, {"usd_per_day": 1.0}, ledger=ledger, trace_timeout_s=0.5) as client,
    ):
        [result] = ask_about(client, 1)
        assert kind(result) == "judge_unavailable"
        assert server.sent == []
        assert [isinstance(one, Verdicts) for one in ask_about(client, 1)] == [True]


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_lease_is_given_back_although_the_client_ends_before_it_is_answered(is_lost: bool) -> None:
    class Slow(MemoryLedger):
        asked, answers = threading.Event(), threading.Event()

        def lease(self, *lease: Any) -> float:
            self.asked.set()
            assert self.answers.wait(30)
            leased = super().lease(*lease)
            if is_lost:
                raise Transient("the answer was lost")
            return leased

        def settle(self, *lease: Any) -> None:
            assert self.leased_usd == {(DAY, "shop"): pytest.approx(0.05)}
            super().settle(*lease)

    ledger = Slow()
    with chat_server(GOOD) as server, limited(server.url, {"usd_per_day": 1.0}, ledger) as client:
        asking = threading.Thread(target=ask_about, args=(client, 1))
        asking.start()
        assert ledger.asked.wait(30)
        ending = threading.Thread(target=client.close)
        ending.start()
        asking.join(30)  # the call fails
        assert ending.is_alive()
        ledger.answers.set()
        ending.join(30)
    assert ledger.leased_usd == {(DAY, "shop"): 0.0}


def test_the_first_call_about_a_trace_is_left_out_and_later_ones_wait() -> None:
    at_s = 0.0
    limit = AppLimit("shop", JudgeLimit(calls_per_minute=6), MemoryLedger(), lambda: NOON_S, clock=lambda: at_s)

    async def wait(trace: TraceCalls, latest_s: float = 1e9) -> str:
        try:
            await asyncio.wait_for(limit.wait_for_room(trace, latest_s), 0.05)
        except TimeoutError:
            return "waits"
        except LeftOut as left_out:
            return left_out.outcome.reason
        return "sent"

    async def scene() -> list[str]:
        nonlocal at_s
        first, second = TraceCalls("shop"), TraceCalls("shop")
        said = [await wait(first), await wait(second), await wait(first), await wait(first, latest_s=5)]
        at_s = 10
        said += [await wait(second), await wait(first), await wait(TraceCalls("shop"))]
        at_s = 20
        return [*said, await wait(TraceCalls("shop"))]

    said = asyncio.run(scene())
    assert said == ["sent", "throttled", "waits", "throttled", "throttled", "sent", "throttled", "sent"]


def test_calls_beyond_those_of_a_minute_are_throttled() -> None:
    with chat_server(GOOD) as server, limited(server.url, {"calls_per_minute": 6}) as client:
        results = ask_about(client, 5)
        assert isinstance(results[0], Verdicts)
        assert THROTTLED in results, "one at once, then one in ten seconds"
        assert len(server.sent) == 5 - results.count(THROTTLED)


@given(st.integers(1, 240), st.lists(st.floats(0, 30), max_size=60))
@hypothesis_settings(deadline=None)
def test_calls_that_are_sent_without_a_wait_never_exceed_the_limit(per_minute: int, pauses_s: list[float]) -> None:
    at_s = 0.0
    limit = AppLimit("shop", JudgeLimit(calls_per_minute=per_minute), MemoryLedger(), lambda: 0.0, lambda: at_s)
    sent_s: list[float] = []
    for pause_s in pauses_s:
        at_s += pause_s
        for _ in range(50):
            try:
                asyncio.run(limit.wait_for_room(TraceCalls("shop"), at_s))
            except LeftOut:
                break
            sent_s.append(at_s)
    most = per_minute + max(1, per_minute / 6) + 1e-6
    assert all(sum(start <= one < start + 60 for one in sent_s) <= most for start in sent_s)


def test_the_most_tokens_of_a_reply_have_one_setting() -> None:
    own = {"url": "http://judge/v1", "model": "m", "parameters": {"max_completion_tokens": 8000}}
    with pytest.raises(ValidationError, match="must not have max_completion_tokens: set max_tokens and max_tokens_fi"):
        JudgeSettings.model_validate({"endpoints": {"a": own}})


def test_a_budget_needs_prices() -> None:
    endpoint = {"url": "http://judge/v1", "model": "m"}
    with pytest.raises(ValidationError, match="usd_per_day needs prices: set input_usd_per_million and output"):
        JudgeSettings.model_validate({"endpoints": {"a": endpoint}, "limit_by_app": {"shop": {"usd_per_day": 1}}})
    free = {**endpoint, "input_usd_per_million": 0, "output_usd_per_million": 0}
    assert JudgeSettings.model_validate({"endpoints": {"a": free}, "limit": {"usd_per_day": 1}}).has_budget


@pytest.mark.clickhouse
def test_the_budget_survives_a_process_that_ends_and_one_that_is_killed(database: Database) -> None:
    with chat_server(GOOD) as server:
        with limited(server.url, {"usd_per_day": 0.4}, StoredLedger(database)) as client:
            ask_about(client, 13)
        killed = StoredLedger(database)
        assert killed.lease(DAY, "shop", wanted_usd=0.02, spent_usd=0.0, budget_usd=0.4) == pytest.approx(0.02)
        with limited(server.url, {"usd_per_day": 0.4}, StoredLedger(database)) as client:
            results = ask_about(client, 40, first=13)
    assert sum(isinstance(one, Verdicts) for one in results) == 40 - 13 - 2
    assert results[25:] == [OVER_BUDGET] * 15


@pytest.mark.clickhouse
def test_processes_together_never_lease_more_than_the_budget(database: Database) -> None:
    budget_usd = 1.0
    leased: dict[int, float] = {}

    def spend(process: int) -> None:
        ledger, own = StoredLedger(database), 0.0
        while (more := ledger.lease(DAY, "shop", own + budget_usd / LEASES, own, budget_usd)) > own:
            own = more
        leased[process] = own

    threads = [threading.Thread(target=spend, args=(process,)) for process in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(leased.values()) <= budget_usd + 1e-9
    [row] = database.rows("SELECT sum(usd) AS usd FROM budget_leases FINAL")
    assert row["usd"] == pytest.approx(sum(leased.values()))


class _Rows(Database):
    """The table in memory."""

    def __init__(self) -> None:
        self.held: dict[str, float] = {}

    def insert(self, table: str, rows: Any) -> None:
        self.held.update({row.process: row.usd for row in rows})

    def rows(self, sql: str, parameters: Any = None, settings: Any = None) -> list[dict[str, Any]]:
        return [{"usd": sum(usd for process, usd in self.held.items() if process != parameters["process"])}]


@given(st.lists(st.tuples(st.integers(0, 2), st.floats(0.001, 0.6)), max_size=30))
@hypothesis_settings(deadline=None)
def test_leases_in_any_order_stay_within_the_budget(steps: list[tuple[int, float]]) -> None:
    rows = _Rows()
    ledgers = [StoredLedger(rows) for _ in range(3)]
    spent_usd = [0.0] * 3
    for process, more in steps:
        own = spent_usd[process]
        leased = ledgers[process].lease(DAY, "shop", own + more, own, 1.0)
        assert leased >= own
        spent_usd[process] = leased
        assert sum(spent_usd) <= 1.0 + 1e-9
        assert sum(rows.held.values()) == pytest.approx(sum(spent_usd))


def test_a_server_counts_what_it_answers() -> None:
    """The scripted server's answers cost what these tests take them to cost."""
    with chat_server(by_rule(lambda sent: {"verdicts": [{"number": 1, "verdict": True}]})) as server:
        assert isinstance(server, ChatServer)
        with limited(server.url, {}) as client:
            ask_about(client, 3)
            assert spent(client) == pytest.approx(3 * CALL_USD)
