"""Limits of an application: its money of a day, and its calls of a minute.

Money. Before a process spends, it takes a lease from the ledger, a twentieth of the day's budget at a time, and spends
only what it leased. A process that is killed leaves its lease, which counts as spent, so that a restart never spends
the same money twice. A process that ends in order gives back what is left. Each call is checked in its slot, right
before it is sent, so that at the limit only calls in flight are paid for beyond the budget. An attempt whose answer was
lost is charged at the most that it can cost: the endpoint may have done its work.

Calls of a batch are paid for later. The most that each can cost is reserved before the batch is sent, and settled
afterwards, so that batches never exceed the budget.

Calls of a minute. The first call about a trace is left out if there is no room for it. Later ones wait: what was paid
for the trace would be lost.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Protocol

from ragtide.evaluators.errors import Transient
from ragtide.evaluators.judge.calls import OVER_BUDGET, THROTTLED, TraceCalls
from ragtide.evaluators.judge.settings import JudgeLimit, JudgeSettings
from ragtide.evaluators.outcome import NotApplicable

LEASES = 20  # of a day's budget: a process that is killed loses at most one
_RETRY_S = 1.0  # until a ledger that does not answer is asked again
_log = logging.getLogger(__name__)
_RECHECK_S = 60.0  # until a spent budget is looked at again: another process may have given some back
_BURST_S = 10.0  # of calls that may be sent at once


Settle = Callable[[float], None]  # takes what a call did cost, in place of what was reserved for it


class LeftOut(Exception):
    """A call that is not sent. `outcome` says which limit left it out."""

    def __init__(self, outcome: NotApplicable) -> None:
        super().__init__(outcome.reason)
        self.outcome = outcome


class Ledger(Protocol):
    """Money of applications, by day. Shared by processes. Methods block; they raise `Transient` or `ConfigError`."""

    def lease(self, day: date, app: str, wanted_usd: float, spent_usd: float, budget_usd: float) -> float:
        """Raise this process's lease to `wanted_usd`, or as far as the budget allows, and return it.

        The lease covers `spent_usd`, which this process has spent. It is never less. All leases together are within
        the budget, except for what was spent beyond it already.
        """
        ...

    def settle(self, day: date, app: str, spent_usd: float) -> None:
        """Lower this process's lease to what it spent."""
        ...


class MemoryLedger:
    """A ledger of one process: the budget begins anew when the process does."""

    def __init__(self) -> None:
        self.leased_usd: dict[tuple[date, str], float] = {}

    def lease(self, day: date, app: str, wanted_usd: float, spent_usd: float, budget_usd: float) -> float:
        """See `Ledger.lease`."""
        leased = self.leased_usd[day, app] = max(spent_usd, min(wanted_usd, budget_usd))
        return leased

    def settle(self, day: date, app: str, spent_usd: float) -> None:
        """See `Ledger.settle`."""
        self.leased_usd[day, app] = spent_usd


class CallLimit(Protocol):
    """What a call has to pass before it is sent. Methods raise `LeftOut`."""

    async def wait_for_room(self, trace: TraceCalls, latest_s: float) -> None:
        """See `AppLimit.wait_for_room`."""
        ...

    async def check_budget(self, latest_s: float) -> None:
        """See `AppLimit.check_budget`."""
        ...

    def charge(self, usd: float) -> None:
        """See `AppLimit.charge`."""
        ...

    async def reserve(self, usd: float, latest_s: float) -> Settle:
        """See `AppLimit.reserve`."""
        ...


class Limits:
    """The limits of all applications in this process, and with `max_usd` of all together for its whole life.

    Used by the event loop of the client.
    """

    def __init__(
        self,
        settings: JudgeSettings,
        ledger: Ledger,
        now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
        max_usd: float | None = None,
    ) -> None:
        self._total: AppLimit | None = None
        if max_usd is not None:  # its only day never ends
            self._total = AppLimit("", JudgeLimit(usd_per_day=max_usd), MemoryLedger(), lambda: 0.0, clock)
        self._settings = settings
        self._ledger = ledger
        self._now, self._clock = now, clock
        self._apps: dict[str, AppLimit] = {}

    def of(self, app: str) -> "CallLimit | None":
        """Return the limit of calls about an application; None without one."""
        own = self._of_app(app)
        if own is None or self._total is None:
            return own or self._total
        return _BothLimits(own, self._total)

    def _of_app(self, app: str) -> "AppLimit | None":
        limit = self._settings.limit_of(app)
        if limit.usd_per_day is None and limit.calls_per_minute is None:
            return None
        if app not in self._apps:
            self._apps[app] = AppLimit(app, limit, self._ledger, self._now, self._clock)
        return self._apps[app]

    def settle(self) -> None:
        """Give back what was leased and not spent. Raises as the ledger does."""
        for app in self._apps.values():
            app.settle()


@dataclass(slots=True)
class _DayBudget:
    """Money of one day in this process. `spent` may exceed `leased` by what calls in flight cost."""

    day: date
    leased_usd: float = 0.0
    spent_usd: float = 0.0
    may_have_lease: bool = False  # the ledger may hold one of this process, even if no answer came
    asked_s: float | None = None  # when the ledger had no more to give


@dataclass(slots=True, eq=False)
class AppLimit:
    """The limit of one application in this process."""

    app: str
    limit: JudgeLimit
    ledger: Ledger
    now: Callable[[], float]
    clock: Callable[[], float]
    _day_budget: _DayBudget = field(init=False)
    _leasing: asyncio.Lock = field(default_factory=asyncio.Lock)
    _room: float = field(init=False)  # calls that may be sent now
    _room_at_s: float = field(init=False)
    _queue: asyncio.Lock = field(default_factory=asyncio.Lock)  # of calls that wait for room, first come first served

    def __post_init__(self) -> None:
        self._day_budget = _DayBudget(self._today())
        self._room, self._room_at_s = self._most_room, self.clock()

    async def wait_for_room(self, trace: TraceCalls, latest_s: float) -> None:
        """Return once the call may be sent. `latest_s` by the clock.

        Raises `LeftOut` if it is the first call about the trace and has to wait, or if the wait would end too late.
        """
        per_minute = self.limit.calls_per_minute
        if per_minute is None:
            return
        if trace.admitted is None:
            trace.admitted = not self._queue.locked() and self._refill() >= 1
        if not trace.admitted:
            raise LeftOut(THROTTLED)
        async with self._queue:
            wait_s = (1 - self._refill()) * 60 / per_minute
            if self.clock() + wait_s > latest_s:
                raise LeftOut(THROTTLED)
            while (room := self._refill()) < 1:
                await asyncio.sleep((1 - room) * 60 / per_minute)
            self._room -= 1

    async def check_budget(self, latest_s: float) -> None:
        """Raise `LeftOut` if the day's money is spent, and `Transient` if nobody can tell until `latest_s`."""
        await self._lease(0.0, latest_s)

    async def reserve(self, usd: float, latest_s: float) -> Settle:
        """Charge the most that a call can cost, and return the function that takes what it did cost.

        Raises `LeftOut` if the day's money does not cover it, and `Transient` if nobody can tell until `latest_s`.
        """
        await self._lease(usd, latest_s)
        self.charge(usd)
        purse = self._day_budget

        def settle(cost_usd: float) -> None:
            purse.spent_usd += cost_usd - usd  # of a day that is over nobody spends

        return settle

    async def _lease(self, usd: float, latest_s: float) -> None:
        """Lease enough to spend `usd`, or anything for 0. Raises as `reserve` does."""
        budget_usd = self.limit.usd_per_day
        if budget_usd is None:
            return
        if self._has_money(usd):
            return
        is_reported = False
        async with self._leasing:
            while not self._has_money(usd):
                purse = self._day_budget
                if purse.asked_s is not None and self.clock() < purse.asked_s + _RECHECK_S:
                    raise LeftOut(OVER_BUDGET)
                spent_usd = purse.spent_usd
                wanted_usd = spent_usd + max(usd, budget_usd / LEASES)
                purse.may_have_lease = True
                try:
                    purse.leased_usd = await asyncio.to_thread(
                        self.ledger.lease, purse.day, self.app, wanted_usd, spent_usd, budget_usd
                    )
                except Transient as error:
                    if self.clock() + _RETRY_S > latest_s:
                        raise
                    if not is_reported:
                        _log.warning("the ledger of the judge's budgets does not answer, and is asked again: %s", error)
                        is_reported = True
                    await asyncio.sleep(_RETRY_S)
                    continue
                is_short = purse.leased_usd <= spent_usd or purse.leased_usd < spent_usd + usd
                purse.asked_s = self.clock() if is_short else None

    def charge(self, usd: float) -> None:
        """Count the cost of a call on the day that it ends."""
        self._has_money()  # begins a new day
        self._day_budget.spent_usd += usd

    def settle(self) -> None:
        """Give back what was leased and not spent. No lease may be under way."""
        purse = self._day_budget
        if purse.may_have_lease:
            self.ledger.settle(purse.day, self.app, purse.spent_usd)
            purse.leased_usd, purse.may_have_lease = purse.spent_usd, False

    def _has_money(self, usd: float = 0.0) -> bool:
        """Whether the lease covers `usd`, or has anything left for 0."""
        if self._day_budget.day != (today := self._today()):
            self._day_budget = _DayBudget(today)  # the lease of yesterday stays as it is: nobody spends from that day
        purse = self._day_budget
        return purse.spent_usd < purse.leased_usd and purse.spent_usd + usd <= purse.leased_usd

    def _today(self) -> date:
        return datetime.fromtimestamp(self.now(), UTC).date()

    @property
    def _most_room(self) -> float:
        return max(1.0, (self.limit.calls_per_minute or 0) * _BURST_S / 60)

    def _refill(self) -> float:
        """Return how many calls may be sent now."""
        now_s = self.clock()
        added = (now_s - self._room_at_s) * (self.limit.calls_per_minute or 0) / 60
        self._room, self._room_at_s = min(self._most_room, self._room + added), now_s
        return self._room


@dataclass(frozen=True, slots=True)
class _BothLimits:
    """The limit of an application, and that of all together."""

    own: AppLimit
    total: AppLimit

    async def wait_for_room(self, trace: TraceCalls, latest_s: float) -> None:
        """Only applications have a limit of calls a minute."""
        await self.own.wait_for_room(trace, latest_s)

    async def check_budget(self, latest_s: float) -> None:
        """Check both."""
        await self.own.check_budget(latest_s)
        await self.total.check_budget(latest_s)

    def charge(self, usd: float) -> None:
        """Charge both."""
        self.own.charge(usd)
        self.total.charge(usd)

    async def reserve(self, usd: float, latest_s: float) -> Settle:
        """Reserve of both, or of none."""
        settle_own = await self.own.reserve(usd, latest_s)
        try:
            settle_total = await self.total.reserve(usd, latest_s)
        except BaseException:
            settle_own(0.0)
            raise

        def settle(cost_usd: float) -> None:
            settle_own(cost_usd)
            settle_total(cost_usd)

        return settle
