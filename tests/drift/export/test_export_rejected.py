"""An answer of 200 that rejects some scores or all (`partialSuccess`): counted, logged, and never sent again."""

import json
import logging

import pytest

from ragtide.evaluators.errors import ConfigError
from ragtide.sinks.clickhouse.database import Database
from tests.drift.export.scene import DELAY_S, REGISTRY, Exporting, HttpSender, exporting, score
from tests.infra.webhook_receiver import Answer, Receiver

pytestmark = pytest.mark.clickhouse


def rejecting(number: int, why: str = "", field: str = "rejectedLogRecords") -> Answer:
    return Answer(200, json.dumps({"partialSuccess": {field: str(number), "errorMessage": why}}).encode())


def test_a_partial_success_is_counted_and_not_sent_again(database: Database, receiver: Receiver) -> None:
    export = exporting(database, receiver)
    export.store(score(1), score(2), score(3))
    receiver.script.append(rejecting(2, "too old"))
    assert export.run() == 1
    assert export.run() == 0
    assert export.counts() == {"sent": 1, "rejected": 2}
    assert len(receiver.calls) == 1


def test_an_answer_that_rejects_everything_is_an_error_and_not_sent_again(
    database: Database, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    export = exporting(database, receiver)
    export.store(score(1), score(2))
    receiver.script.append(rejecting(2, "over quota"))
    assert export.run() == 0
    assert export.run() == 0
    assert export.counts() == {"rejected": 2}
    assert len(receiver.calls) == 1
    [record] = [one for one in caplog.records if one.levelname == "ERROR"]
    assert record.getMessage() == "http rejected all of 2 scores, which are not sent again: over quota"


def test_a_part_that_is_rejected_and_a_warning_alone_are_logged(
    database: Database, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    export = exporting(database, receiver)
    for answer in (rejecting(1), rejecting(0, "deprecated"), rejecting(7, "many")):
        export.store(score(1), score(2), after_s=1)
        receiver.script.append(answer)
        export.run()
    assert export.counts() == {"sent": 1 + 2, "rejected": 1 + 2}
    assert [(one.levelname, one.getMessage()) for one in caplog.records if one.levelno >= logging.WARNING] == [
        ("WARNING", "http rejected 1 of 2 scores, which are not sent again: it gives no reason"),
        ("WARNING", "http took 2 scores with a warning: deprecated"),
        ("ERROR", "http rejected all of 2 scores, which are not sent again: many"),
    ]


@pytest.mark.parametrize(
    ("rejected", "counts"),
    [
        (0, {"sent": 5}),
        (1, {"sent": 2, "rejected": 1, "unknown": 2}),  # a row of one score, or one of three
        (2, {"rejected": 2, "unknown": 2, "sent": 1}),
        (3, {"rejected": 5}),
    ],
)
def test_a_rejected_span_counts_with_all_its_scores(
    database: Database, receiver: Receiver, rejected: int, counts: dict[str, int]
) -> None:
    sender = HttpSender(receiver.url, signal="spans")
    export = Exporting(database, sender, signal="spans", metrics=("operations.*",))
    keys = [metric.key for metric in REGISTRY["operations"].metrics if not metric.per]
    for number, metrics in enumerate((1, 3, 1), 1):
        export.store(score(number, "operations", metrics=dict.fromkeys(keys[:metrics], 0.5)), after_s=0.001)
    receiver.script.append(rejecting(rejected, field="rejectedSpans"))
    assert export.run() == counts.get("sent", 0)
    assert export.counts() == counts


def test_rows_that_are_refused_are_left_out_for_no_target_that_rejects_the_others(
    database: Database, receiver: Receiver
) -> None:
    export = exporting(database, receiver)
    for number in range(1, 5):
        export.store(score(number), after_s=0.001)
    receiver.script += [Answer(400), Answer(400), Answer(400), rejecting(1), rejecting(2)]
    with pytest.raises(ConfigError, match="refuses every score"):
        export.run()
    assert export.counts() == {"rejected": 3}
    assert export.run(DELAY_S) == 4
