"""ClickHouse applies inserts and says that it failed, or says nothing: they are written again, and count once."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.local.broker import EmbeddedBroker
from tests.chaos.harness.spoiled_inserts import Spoil, SpoiledInserts
from tests.chaos.ledger import make
from tests.chaos.windows import stored_windows
from tests.failures.site import Message, Sections, Site

pytestmark = [pytest.mark.broker, pytest.mark.clickhouse, pytest.mark.chaos, pytest.mark.timeout(240)]

COUNT = 1500  # and a tenth of them twice: what every kind has its equal share of
SPOILED: tuple[tuple[Spoil, str], ...] = (("error", "traces"), ("error", "scores"), ("silence", "scores"))
SECTIONS: Sections = {"evaluators": {"enabled": ["operations", "inputs"]}}
INSERTS = 3  # applied in vain, of each kind


def test_what_was_applied_and_not_acknowledged_counts_once(
    broker: EmbeddedBroker, database: Database, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("answers")
    ledger = make(COUNT, 7, datetime.now(UTC))
    messages = [Message(sent.message(), sent.trace_id.encode()) for sent in ledger.messages]
    with SpoiledInserts(database.settings) as inserts:
        site = Site(folder, broker, inserts.settings.model_copy(update={"timeout_s": 2}), SECTIONS)
        with site.up():
            worker, jobs = site.worker(), site.jobs()
            share = len(messages) // len(SPOILED)
            for number, (how, table) in enumerate(SPOILED):
                _applied_in_vain(site, inserts, messages[number * share : (number + 1) * share], how, table)
            (rows,) = database.rows("SELECT count() AS n, uniqExact(trace_id) AS ids FROM traces FINAL")
            assert (rows["n"], rows["ids"]) == (COUNT, COUNT)
            expected = ledger.windows()
            site.until(lambda: stored_windows(database) == expected, "windows right", 90)
            assert database.rows("SELECT * FROM dead_letters") == []
            assert worker.stop() == 0, site.logs()
            assert jobs.stop() == 0, site.logs()


def _applied_in_vain(site: Site, inserts: SpoiledInserts, messages: Sequence[Message], how: Spoil, table: str) -> None:
    """Nothing is committed meanwhile; afterwards all is."""
    committed = site.committed()
    with inserts.spoiling(how, table):
        enough = inserts.spoiled[table] + INSERTS
        site.produce(messages)
        site.until(lambda: inserts.spoiled[table] >= enough, f"{table} applied, and {how}")
        assert site.committed() == committed
    site.until(lambda: site.committed() == committed + len(messages), "committed once it was acknowledged")
