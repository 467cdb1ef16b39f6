"""How far the position moves: past accepted batches only, within a millisecond, and never past what may be good."""

from datetime import timedelta

import pytest

from ragtide.drift import cursors
from ragtide.drift.export.source import end_of
from ragtide.drift.job_history import StopRequested
from ragtide.drift.leadership import elect
from ragtide.evaluators.errors import ConfigError, Transient
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.http_post import Busy
from tests.drift.export.scene import DELAY_S, EPOCH, arrived, exporting, ids, score, trace_id
from tests.infra.webhook_receiver import Answer, Receiver

pytestmark = pytest.mark.clickhouse


@pytest.mark.parametrize("rows", [1, 5, 40])
def test_a_target_that_refuses_everything_loses_nothing(database: Database, receiver: Receiver, rows: int) -> None:
    export = exporting(database, receiver)
    export.store(*(score(number) for number in range(1, rows + 1)))
    receiver.script += [Answer(400, b"no such field")] * 400
    for _ in range(3):
        with pytest.raises(ConfigError, match=r"refuses every score, so that none is left out: .*no such field"):
            export.run()
    assert len(receiver.calls) < 3 * 60
    assert export.counts() == {}
    receiver.script.clear()
    assert export.run() == rows
    assert export.counts() == {"sent": rows}


def test_a_target_that_refuses_everything_after_it_accepted_some_loses_nothing(
    database: Database, receiver: Receiver
) -> None:
    export = exporting(database, receiver, batch_events=2)
    export.store(*(score(number) for number in range(1, 7)))
    receiver.script += [Answer(), *[Answer(400)] * 100]
    with pytest.raises(ConfigError, match="refuses every score"):
        export.run()
    receiver.script.clear()
    assert export.run() == 4
    assert export.counts() == {"sent": 6}


def test_a_target_that_begins_to_refuse_within_a_batch_loses_nothing(database: Database, receiver: Receiver) -> None:
    export = exporting(database, receiver)
    export.store(*(score(number) for number in range(1, 61)))
    receiver.script += [Answer(413), Answer(), *[Answer(400)] * 200]
    with pytest.raises(ConfigError, match="refuses every score"):
        export.run()
    receiver.script.clear()
    assert export.run() == 30
    assert export.counts() == {"sent": 60}


def test_a_row_that_is_refused_waits_until_another_one_is_accepted(database: Database, receiver: Receiver) -> None:
    export = exporting(database, receiver)
    export.store(score(1))
    receiver.script.append(Answer(400))
    with pytest.raises(ConfigError):
        export.run()
    export.store(score(2), after_s=1)
    receiver.script += [Answer(400), Answer(400), Answer()]
    assert export.run() == 1
    assert export.counts() == {"sent": 1, "refused": 1}
    assert ids(receiver)[-1] == trace_id(2)
    assert export.run() == 0


def test_each_accepted_batch_of_one_insert_is_sent_once_whatever_the_rate_of_the_target(
    database: Database, receiver: Receiver
) -> None:
    export = exporting(database, receiver, batch_events=2)
    export.store(*(score(number) for number in range(1, 21)))
    for _ in range(2):
        receiver.script += [*[Answer()] * 4, Answer(429)]
        with pytest.raises(Busy):
            export.run()
    assert export.run() == 4
    assert export.counts() == {"sent": 20}
    refused = [2 * 4, 2 * 4 + 1, 2 * 9, 2 * 9 + 1]  # what the target did not take
    taken = [id for at, id in enumerate(ids(receiver)) if at not in refused]
    assert sorted(taken) == [trace_id(number) for number in range(1, 21)]


def test_rows_that_vanish_move_no_other_one_out(database: Database, receiver: Receiver) -> None:
    """Merges drop rows that were sent; what was not is found by its own position."""
    export = exporting(database, receiver, batch_events=2)
    export.store(*(score(number) for number in range(1, 9)))
    receiver.script += [Answer(), Answer(503)]
    with pytest.raises(Busy):
        export.run()
    sent = ids(receiver)[:2]
    database.command("ALTER TABLE scores DELETE WHERE has({sent:Array(String)}, trace_id) SETTINGS mutations_sync = 2",
                     {"sent": sent})  # fmt: skip
    assert export.run() == 6
    assert sorted(sent + ids(receiver)[4:]) == [trace_id(number) for number in range(1, 9)]


def test_the_rate_holds_within_one_insert(database: Database, receiver: Receiver) -> None:
    export = exporting(database, receiver, batch_events=500, max_events_s=0.4)  # 4 events in a run of 10 s
    export.store(*(score(number) for number in range(1, 11)))
    assert [export.run(seconds) for seconds in (61, 10, 10, 10)] == [4, 4, 2, 0]
    assert sorted(ids(receiver)) == [trace_id(number) for number in range(1, 11)]


def test_a_leader_that_was_replaced_sends_no_further_batch(database: Database, receiver: Receiver) -> None:
    export = exporting(database, receiver, batch_events=1)
    export.store(*(score(number) for number in range(1, 4)))
    while elect(database, "another").epoch <= EPOCH:
        pass
    with pytest.raises(StopRequested, match="a newer leader than epoch 1"):
        export.run()
    assert receiver.calls == []


def test_what_is_stale_or_deleted_when_it_is_read_is_not_sent(database: Database, receiver: Receiver) -> None:
    export = exporting(database, receiver)
    export.store(*(score(number) for number in range(1, 6)))
    export.store(score(1, version=8, is_deleted=1), score(2, version=8), score(3, version=6, is_deleted=1), after_s=1)
    export.store(score(4, version=8, status="failed", reason="crashed", metrics={}), after_s=1)
    export.store(score(5, "operations", version=9), after_s=1)  # another evaluator's
    export.run()
    found = {
        (one["traceId"], int(one["attributes"]["ragtide.event.version"], 16))
        for one in arrived(receiver)
        if one["attributes"]["gen_ai.evaluation.name"].startswith("groundedness")
    }
    assert found == {(trace_id(2), 8), (trace_id(3), 7), (trace_id(5), 7)}
    assert export.counts()["superseded"] == 3


@pytest.mark.parametrize("status", [500, 408, 425, 507])
def test_a_row_that_gets_an_answer_that_must_not_be_retried_is_found(
    database: Database, receiver: Receiver, status: int
) -> None:
    """OTLP/HTTP has 429, 502, 503 and 504 retried, and no other answer."""
    export = exporting(database, receiver)
    for number in range(1, 5):
        export.store(score(number), after_s=0.001)
    receiver.script += [Answer(status), Answer(), Answer(status), Answer(status, b"row 3"), Answer()]
    assert export.run() == 3
    assert export.counts() == {"sent": 3, "refused": 1}
    assert ids(receiver)[-1] == trace_id(4)


@pytest.mark.parametrize("rows", [2, 40])
def test_a_target_that_answers_500_to_everything_loses_nothing(
    database: Database, receiver: Receiver, rows: int
) -> None:
    export = exporting(database, receiver)
    export.store(*(score(number) for number in range(1, rows + 1)))
    receiver.script += [Answer(500)] * 1000
    for _ in range(6):
        with pytest.raises(Transient, match=r"http fails for every score, so that none is left out: .*answered 500"):
            export.run()
    receiver.script.clear()
    assert export.run() == rows
    assert export.counts() == {"sent": rows}


def test_traces_without_an_id_use_up_no_rate_and_are_counted_once(database: Database, receiver: Receiver) -> None:
    export = exporting(database, receiver, max_events_s=0.4)  # 4 events in a run of 10 s
    for number in range(1, 11):
        export.store(score(number, trace_id=f"order-{number}"), after_s=0.001)
    export.store(score(11), after_s=0.001)
    receiver.script.append(Answer(503))
    with pytest.raises(Busy):
        export.run()
    assert export.run() == 1
    assert export.counts() == {"sent": 1, "no_trace_id": 10}


def test_inserts_that_may_take_longer_are_waited_for(database: Database, receiver: Receiver) -> None:
    slow = Database(database.settings.model_copy(update={"timeout_s": 90.0}))
    export = exporting(slow, receiver)
    export.store(score(1))
    assert export.run(179) == 0
    assert export.run(1) == 1
    slow.close()


def test_a_position_after_the_time_of_the_server_is_an_error(database: Database, receiver: Receiver) -> None:
    export = exporting(database, receiver)
    cursors.save(database, "export:http", end_of(export.now + timedelta(days=1)))
    export.store(score(1))
    with pytest.raises(ConfigError, match=r"after the time of ClickHouse's clock.*delete the position"):
        export.run()


def test_a_pause_names_the_last_error(database: Database, receiver: Receiver) -> None:
    export = exporting(database, receiver)
    export.store(score(1))
    receiver.script.append(Answer(503, b"no shards"))
    with pytest.raises(Busy):
        export.run()
    for _ in range(2):
        with pytest.raises(Transient, match=r"next attempt in .*answered 503: no shards$"):
            export.run(DELAY_S / 4)


def test_a_partial_success_in_several_chunks_is_read_whole(database: Database, receiver: Receiver) -> None:
    export = exporting(database, receiver)
    export.store(score(1), score(2), score(3))
    chunks = (b'{"partialSuccess": {"rejected', b'LogRecords": "2", "errorMessage": "too old"}}')
    receiver.script.append(Answer(200, chunks=chunks))
    assert export.run() == 1
    assert export.counts() == {"sent": 1, "rejected": 2}


@pytest.mark.parametrize(
    "body", [b'{"partialSuccess": {"rejectedLogR', b'{"partialSuccess": {"rejectedLogRecords": "x"}}']
)
def test_an_answer_in_json_that_cannot_be_read_is_unknown(database: Database, receiver: Receiver, body: bytes) -> None:
    export = exporting(database, receiver)
    export.store(score(1))
    receiver.script.append(Answer(200, body))
    assert export.run() == 0
    assert export.counts() == {"unknown": 1}
