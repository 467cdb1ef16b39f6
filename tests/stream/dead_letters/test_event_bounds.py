"""A dead letter with an absurd event time is not put into live unless that is asked for."""

from datetime import UTC, datetime, timedelta

import pytest

from ragtide.evaluators.errors import BadRecord
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.settings import RetentionSettings
from ragtide.stream.ingest.timeliness import EventBounds
from ragtide.stream.local.broker import EmbeddedBroker
from ragtide.stream.settings.sections import IngestSettings
from tests.failures.bad_records import trace
from tests.stream.dead_letters.scene import Scene, Sent

NOW = datetime.now(UTC)
DAY_S = 86_400.0


def ago(days: int) -> str:
    return (NOW - timedelta(days=days)).isoformat()


@pytest.mark.clickhouse
@pytest.mark.broker
@pytest.mark.timeout(240)
def test_letters_of_1970_stay_open_unless_asked_for(broker: EmbeddedBroker, database: Database) -> None:
    scene = Scene(broker, database)
    scene.send(
        Sent(trace("last week", time=ago(8))),
        Sent(trace("at the epoch", time="1970-01-02T00:00:00Z")),
        Sent(trace("last year", time=ago(365))),
    )
    scene.take_in()
    told = scene.command("replay")
    assert told.exit_code == 0, told.output
    assert "run live: 1 of 3 dead letters replayed, 2 failed again" in told.stdout
    assert "2 not put into live: their event time is older than retention.traces_days (90 days)" in told.stdout
    assert "--any-time" in told.stdout
    assert [row["trace_id"] for row in scene.stored()["traces"]] == ["last week"]
    elsewhere = scene.command("replay", "--run", "old")
    assert "2 of 2 dead letters replayed" in elsewhere.stdout
    anyway = scene.command("replay", "--any-time")
    assert "2 of 2 dead letters replayed" in anyway.stdout
    assert "not put into live" not in anyway.stdout


@pytest.mark.parametrize(
    ("days", "reason"), [(-91, "too_old"), (-89, ""), (0, ""), (0.9, ""), (1.5, "in_the_future"), (-20_000, "too_old")]
)
def test_bounds_of_live(days: float, reason: str) -> None:
    now_s = NOW.timestamp()
    bounds = EventBounds.of_live(IngestSettings(), RetentionSettings(), now_s)
    if not reason:
        bounds.check(now_s + days * DAY_S)
    else:
        with pytest.raises(BadRecord, match=reason):
            bounds.check(now_s + days * DAY_S)
    assert bounds.refused == bool(reason)
