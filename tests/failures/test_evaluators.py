"""Evaluators that break their contract, in a real worker: their record's outcome is Failed, everything else stands."""

from pathlib import Path

import pytest

from ragtide.sinks.clickhouse.database import Database
from tests.chaos.processes import wait_until
from tests.failures import plugin
from tests.failures.bad_records import trace
from tests.failures.site import Message, of
from tests.stream.core.traffic import Broker

pytestmark = [pytest.mark.broker, pytest.mark.clickhouse]

COUNT = 500
BAD = {f"t-{n}" for n in (0, 17, 18, 250, 499)}
SCORES = "SELECT trace_id, evaluator, status, reason, metrics FROM scores FINAL"


def test_what_evaluators_do_wrong_costs_their_own_outcome_only(
    broker: Broker, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = tmp_path / "packages"
    packages.mkdir()
    plugin.install(packages)
    monkeypatch.setenv("PYTHONPATH", str(packages))
    ids = [f"t-{n}" for n in range(COUNT)]
    site = of(tmp_path, broker, database)
    with site.up():
        worker = site.worker()
        answers = {id_: plugin.UNSPEAKABLE if id_ in BAD else "fine" for id_ in ids}
        site.produce([Message(trace(id_, answer=answer), id_.encode()) for id_, answer in answers.items()])
        site.until(lambda: site.committed() == COUNT, "every offset committed")
        assert worker.stop() == 0, site.logs()

    scores = {(row["evaluator"], row["trace_id"]): row for row in database.rows(SCORES)}
    for evaluator in plugin.BAD:
        failed = {id_ for id_ in ids if scores[evaluator, id_]["status"] == "failed"}
        assert failed == BAD, evaluator
        reason = "crashed" if evaluator == "raises" else "contract"
        assert {scores[evaluator, id_]["reason"] for id_ in BAD} == {reason}
        assert {str(scores[evaluator, id_]["metrics"]) for id_ in BAD} == {"{}"}
        assert all(scores[evaluator, id_]["metrics"] == {"value": 0.5} for id_ in ids if id_ not in BAD)
    others = {evaluator for evaluator, _ in scores} - plugin.BAD.keys()
    assert {"inputs", "operations"} <= others
    assert not [row for (evaluator, _), row in scores.items() if evaluator in others and row["status"] == "failed"]
    assert len(database.rows("SELECT trace_id FROM traces FINAL")) == COUNT
    assert database.rows("SELECT * FROM dead_letters") == []
    assert "evaluator raises failed on" in site.logs()
    assert plugin.UNSPEAKABLE not in site.logs()


@pytest.mark.models
def test_a_lost_card_ends_the_worker_and_nothing_of_what_it_was_at_is_committed(
    broker: Broker, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages, gone = tmp_path / "packages", tmp_path / "gone"
    packages.mkdir()
    gone.touch()
    plugin.install_on_a_card(packages, gone)
    monkeypatch.setenv("PYTHONPATH", str(packages))
    site = of(tmp_path, broker, database, {"evaluators": {"enabled": ["on_a_card", "operations"]}})
    ids = {f"t-{n}" for n in range(50)}
    with site.up():
        site.produce([Message(trace(id_, answer="fine"), id_.encode()) for id_ in ids])
        lost = site.worker()
        assert lost.process.wait(60) == 1, site.logs()
        assert (
            "lane fast stopped: cpu computes no more in this process: CUDA error: unspecified launch failure"
            in site.logs()
        )
        assert site.committed() == 0
        assert database.rows(SCORES) == []
        gone.unlink()
        again = site.worker()
        wait_until(lambda: site.committed() == len(ids), 60, "every offset committed")
        assert again.stop() == 0, site.logs()
    scores = [row for row in database.rows(SCORES) if row["evaluator"] == "on_a_card"]
    assert {row["trace_id"] for row in scores} == ids
    assert [row["metrics"] for row in scores] == [{"value": 0.5}] * len(ids)
