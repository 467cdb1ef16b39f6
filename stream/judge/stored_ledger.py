"""The ledger in ClickHouse, which all processes share and which outlives them.

Every process has one row for each day and application: its lease. It raises the row first and then reads the rows of
the others. Of two processes that raise theirs at the same time, the one that reads last sees both rows, so that all
leases together never exceed the budget. That needs reads that see every earlier insert: one server, or a replicated one
with `insert_quorum` and `select_sequential_consistency`.
"""

import uuid
from datetime import date
from itertools import count
from typing import NamedTuple

from ragtide.sinks.clickhouse.database import Database


class BudgetRow(NamedTuple):
    """Table `budget_leases`."""

    day: date
    app: str
    process: str
    usd: float
    version: int


class StoredLedger:
    """A `Ledger`. Safe to use from several threads, for one application from one at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._process = uuid.uuid4().hex
        self._versions = count(1)

    def lease(self, day: date, app: str, wanted_usd: float, spent_usd: float, budget_usd: float) -> float:
        """See `Ledger.lease`."""
        self._store(day, app, wanted_usd)
        others_usd = self._leased_by_others(day, app)
        leased_usd = max(spent_usd, min(wanted_usd, budget_usd - others_usd))
        if leased_usd < wanted_usd:
            self._store(day, app, leased_usd)
        return leased_usd

    def settle(self, day: date, app: str, spent_usd: float) -> None:
        """See `Ledger.settle`."""
        self._store(day, app, spent_usd)

    def _store(self, day: date, app: str, usd: float) -> None:
        self._database.insert("budget_leases", [BudgetRow(day, app, self._process, usd, next(self._versions))])

    def _leased_by_others(self, day: date, app: str) -> float:
        [row] = self._database.rows(
            "SELECT sum(usd) AS usd FROM budget_leases FINAL "
            "WHERE day = {day:Date} AND app = {app:String} AND process != {process:String}",
            {"day": day, "app": app, "process": self._process},
        )
        return float(row["usd"])
