"""Under faults by seed nothing is lost and nothing counts twice; where a guarantee is taken out the same comparison
says so.
"""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from tests.chaos.harness import early_worker
from tests.chaos.harness.run import Stage, run_seed, trial, until
from tests.chaos.harness.schedule import KINDS, schedule
from tests.chaos.harness.traffic import Ledger, Poison, Sent, ledger
from tests.chaos.harness.verdict import Verdict
from tests.chaos.processes import wait_until
from tests.infra.kafka_node import KafkaNode

pytestmark = [pytest.mark.kafka, pytest.mark.clickhouse, pytest.mark.chaos, pytest.mark.timeout(420)]

SEEDS = (3, 24)  # every kind of fault between them
SECONDS = 9.0
NOW = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
SETTLE_S = 3.0  # no job brings a lost row back or removes a second copy of one
GIVE_IT_S = 4.0  # a worker commits every 0.2 s what it may


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("seeds")
    with KafkaNode(folder / "kafka") as broker, EmbeddedClickHouse(folder / "clickhouse") as clickhouse:
        yield Stage(folder, broker, clickhouse)


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_fails_every_trace_counts_once(stage: Stage, seed: int) -> None:
    verdict = run_seed(stage.within(f"seed-{seed}"), seed, SECONDS)
    assert verdict.clean, (str(verdict), schedule(seed, SECONDS), verdict.examples)


def test_a_seed_always_has_the_same_faults_and_the_same_traffic() -> None:
    assert schedule(1, SECONDS) == schedule(1, SECONDS) != schedule(2, SECONDS)
    assert ledger(1, 500, NOW) == ledger(1, 500, NOW) != ledger(2, 500, NOW)


def test_the_seeds_here_have_every_kind_of_fault_between_them() -> None:
    assert {fault.kind for seed in SEEDS for fault in schedule(seed, SECONDS)} == KINDS.keys()


def test_faults_are_over_in_time_and_nothing_suffers_two_at_once() -> None:
    for seed in range(50):
        faults = schedule(seed, SECONDS)
        assert all(fault.at_s + fault.for_s <= SECONDS + 0.02 for fault in faults)
        for target in {kind.target for kind in KINDS.values()}:
            ours = [fault for fault in faults if KINDS[fault.kind].target == target]
            assert all(one.at_s + one.for_s <= other.at_s + 0.02 for one, other in pairwise(ours))


def test_traffic_has_traces_sent_again_in_every_way_and_poison() -> None:
    of = ledger(1, 2000, NOW)
    ways: set[str | tuple[bool, bool]] = set()
    before: dict[str, Any] = {}
    for message in of.messages:
        if isinstance(message, Poison):
            ways.add("poison")
            continue
        if earlier := before.get(message.trace_id):
            moved = (earlier.app != message.app, earlier.time != message.time)
            ways.add("copy" if earlier == message else moved)
            ways |= {name for name in ("task", "probe") if getattr(earlier, name) != getattr(message, name)}
        before[message.trace_id] = message
    assert ways >= {"poison", "copy", "task", "probe", (False, False), (True, False), (False, True)}
    assert of.traces == before


@pytest.fixture(scope="module")
def ablated(stage: Stage) -> dict[str, Verdict]:
    """The same faults with one guarantee or the other taken out, at the same time; each shows what the other keeps."""
    early = (sys.executable, str(Path(early_worker.__file__)))
    without: dict[str, dict[str, Any]] = {
        "replacing": {"tables": _keep_every_row},
        "waiting": {"worker": early},
    }
    with ThreadPoolExecutor(len(without)) as threads:
        begun = {name: threads.submit(_answers_lost, stage.within(name), **how) for name, how in without.items()}
    return {name: done.result() for name, done in begun.items()}


def test_tables_that_keep_every_row_are_found_out(ablated: dict[str, Verdict]) -> None:
    found = ablated["replacing"]
    assert found.doubled > 0
    assert found.lost == found.unread == 0


def test_acknowledging_before_the_insert_is_found_out(ablated: dict[str, Verdict]) -> None:
    found = ablated["waiting"]
    assert found.lost > 0
    assert found.doubled == found.unread == 0


def _answers_lost(stage: Stage, **without: Any) -> Verdict:
    """Inserts are applied and answered with errors; then the worker is killed while its inserts are on their way."""
    of = _unchanged(ledger(7, 600, datetime.now(UTC)))
    half = len(of.messages) // 2
    with trial(stage, **without) as running:
        with running.inserts.spoiling("error", "traces"):
            running.send(of.messages[:half])
            wait_until(
                lambda: running.inserts.spoiled["traces"] >= 2, 90, f"inserts tried again; see {stage.directory}"
            )
        wait_until(lambda: running.unread() == 0, 60, f"every message read; see {stage.directory}")
        with running.inserts.spoiling("delay", "traces"):
            on_their_way = running.inserts.spoiled["traces"] + 1
            running.send(of.messages[half:])
            wait_until(lambda: running.inserts.spoiled["traces"] >= on_their_way, 60, f"inserts; see {stage.directory}")
            early = until(lambda: running.unread() == 0, GIVE_IT_S)
            assert early == ("worker" in without)
            with running.scene.befall("kill_worker"):
                pass
        return running.verdict(of, settle_s=SETTLE_S)


def _unchanged(of: Ledger) -> Ledger:
    """Without the messages that move or change a trace: its old rows stand until a job removes them, and if the new
    ones are lost for ever.
    """
    first: dict[str, Sent] = {}
    return Ledger(
        [
            message
            for message in of.messages
            if isinstance(message, Poison) or first.setdefault(message.trace_id, message) == message
        ]
    )


def _keep_every_row(database: Database) -> None:
    """As append-only tables do; a plain MergeTree refuses the FINAL of the roll-up, and all stops."""
    for table in ("traces", "trace_texts", "scores"):
        [made] = database.rows(f"SHOW CREATE TABLE {table}")
        sql = made["statement"]
        unique = sql.replace(
            "`ingested_at` DateTime64", "`copy` UUID DEFAULT generateUUIDv4(), `ingested_at` DateTime64"
        )
        unique = unique.replace(", trace_id)\n", ", trace_id, copy)\n")
        assert unique.count("copy") == 2, sql
        database.command(f"DROP TABLE {table}")
        database.command(unique)
