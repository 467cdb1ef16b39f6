"""Commands against the real ClickHouse and brokers."""

import asyncio
import json
import uuid
from collections.abc import Iterator
from datetime import timedelta

import pytest
from click.testing import CliRunner, Result

from ragtide.drift.problems.model import EventRow
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.stream.cli import main
from ragtide.stream.kafka.broker_check import partition_counts
from ragtide.stream.local.topics import create_topics
from ragtide.stream.settings.sections import KafkaSettings
from tests.contracts.grafana_server import TOKEN, serving
from tests.infra.fresh_database import reached
from tests.infra.kafka_node import KafkaNode
from tests.stream.pipe.replaying import BASE_MS

pytestmark = pytest.mark.clickhouse


def run(*args: str, **variables: str) -> Result:
    return CliRunner().invoke(main, args, env={"RAGTIDE_CONFIG": None, "COLUMNS": "200", **variables})


@pytest.fixture
def unmade(clickhouse_server: EmbeddedClickHouse) -> Iterator[Database]:
    """A database that does not exist yet."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    opened = Database(clickhouse_server.settings.model_copy(update={"database": name}))
    yield opened
    opened.create()
    opened.command(f"DROP DATABASE {name}")
    opened.close()


def test_migrate_says_what_it_did_and_nothing_the_second_time(unmade: Database) -> None:
    first = run("migrate", **reached(unmade))
    assert first.exit_code == 0, first.output
    assert "applied 0001_schema" in first.output
    assert "set how long rows of trace_texts are kept" in first.output
    assert unmade.rows("SELECT count() AS n FROM scores") == [{"n": 0}]
    assert "nothing to do" in run("migrate", **reached(unmade)).output
    changed = run("migrate", **reached(unmade), RAGTIDE_RETENTION__TEXTS_DAYS="7").output
    assert changed == "".join(f"set how long rows of {table} are kept\n" for table in ("trace_texts", "explanations"))


def test_without_tables_every_command_says_to_migrate(unmade: Database) -> None:
    unmade.create()
    for command in (["problems", "list"], ["replay", "--run", "r", "--file", __file__]):
        told = run(*command, **reached(unmade))
        assert told.exit_code == 2
        assert "ragtide migrate" in told.output


def event(problem: str, what: str, minute: int) -> EventRow:
    from datetime import UTC, datetime

    return EventRow(
        problem_id=problem,
        event_id=f"{problem}-{what}-{minute}",
        event=what,
        episode=1,
        at=datetime.fromtimestamp(BASE_MS / 1000, UTC) + timedelta(minutes=minute),
        app="docs",
        environment="prod",
        model="small",
        aspect="level",
        metric="groundedness.groundedness",
        segment="",
        segment_value="",
        kind="mean",
        type="quality",
        severity="critical",
        code="Q1",
        standards=["Valid and Reliable"],
        description=f"groundedness fell ({problem})",
        attributes=json.dumps({"value": 0.41, "baseline": 0.82}),
        examples=["trace-9", "trace-4"],
        actions=["Look at the retriever."],
        rule_id="r",
        actor="",
        epoch=1,
    )


def test_problems_are_listed_and_shown(database: Database) -> None:
    database.insert(
        "problem_events",
        [
            event("aaaa1111", "opened", 0),
            event("bbbb2222", "opened", 1),
            event("bbbb2222", "resolved", 5),
            event("bbbb2222", "pending", 9)._replace(episode=2),  # it may return: it stays listed as resolved
        ],
    )
    listed = run("problems", "list", **reached(database)).output
    assert listed.index("bbbb2222") < listed.index("aaaa1111")
    assert any("aaaa1111" in line and "groundedness fell (aaaa1111)" in line for line in listed.splitlines())
    narrow = run("problems", "list", **reached(database), COLUMNS="60").output
    assert narrow == listed  # a pipe gets one line each, however narrow the terminal is
    only = json.loads(run("problems", "list", "--state", "open", "--json", **reached(database)).output)
    assert [problem["problem_id"] for problem in only] == ["aaaa1111"]
    assert only[0]["attributes"] == {"value": 0.41, "baseline": 0.82}
    assert run("problems", "list", "--type", "cost", **reached(database)).stdout == "no problems\n"
    shown = run("problems", "show", "bbbb", **reached(database)).output
    for said in (
        "resolved",
        "baseline 0.82",
        "ragtide trace trace-9 --app docs",
        "Look at the retriever.",
        "groundedness fell (bbbb2222)",
    ):
        assert said in shown
    assert run("problems", "show", "cccc", **reached(database)).exit_code == 2


@pytest.mark.kafka
def test_check_when_all_is_well_and_with_topics_that_are_not(database: Database, kafka: KafkaNode) -> None:
    names = {name: f"{name}-{uuid.uuid4().hex}" for name in ("traces", "dead", "jobs")}
    variables = {
        "RAGTIDE_KAFKA__BOOTSTRAP_SERVERS": kafka.bootstrap,
        "RAGTIDE_KAFKA__TOPICS": names["traces"],
        "RAGTIDE_KAFKA__DEAD_LETTER_TOPIC": names["dead"],
        "RAGTIDE_KAFKA__JOBS_TOPIC": names["jobs"],
        "RAGTIDE_EVALUATORS__ENABLED": "inputs",
        "RAGTIDE_TELEMETRY__PORT": "0",
        "RAGTIDE_TELEMETRY__JOBS_PORT": "0",
        **reached(database),
    }
    wrong = run("check", **variables)
    assert wrong.exit_code == 1
    for topic in names.values():
        assert f"have no topic {topic}; `ragtide topics create` makes it" in wrong.output
    there = asyncio.run(partition_counts(KafkaSettings(bootstrap_servers=kafka.bootstrap)))
    assert not set(names.values()) & set(there), "looking made a topic"
    asyncio.run(create_topics(kafka.bootstrap, {names["traces"]: 3, names["dead"]: 1, names["jobs"]: 2}))
    wrong = run("check", **variables)
    assert wrong.exit_code == 1
    assert "has 2 partitions and needs exactly 1" in wrong.output
    variables["RAGTIDE_KAFKA__JOBS_TOPIC"] = f"jobs-{uuid.uuid4().hex}"
    asyncio.run(create_topics(kafka.bootstrap, {variables["RAGTIDE_KAFKA__JOBS_TOPIC"]: 1}))
    with serving() as grafana:
        known = {"RAGTIDE_GRAFANA__URL": grafana.url, "RAGTIDE_GRAFANA__TOKEN": TOKEN}
        well = run("check", **variables, **known)
    assert well.exit_code == 0, well.output
    assert f"{names['traces']} (3 partitions)" in well.output
    assert f"ok    grafana: Grafana at {grafana.url}, version " in well.output
    assert "WRONG" not in well.output


def test_check_tells_a_wrong_token_a_wrong_password_and_missing_tables(unmade: Database) -> None:
    def faults(**variables: str) -> dict[str, str]:
        """What is said of ClickHouse and of Grafana."""
        nobody = {"RAGTIDE_KAFKA__BOOTSTRAP_SERVERS": "127.0.0.1:9", "RAGTIDE_EVALUATORS__ENABLED": "inputs"}
        told = run("check", **nobody, **{**reached(unmade), **variables})
        assert told.exit_code == 1
        assert "wr0ng" not in told.output
        found = (line.partition(": ") for line in told.output.splitlines() if line.startswith("WRONG"))
        return {name.split()[1]: said for name, _, said in found}

    with serving() as grafana:
        wrong = faults(
            RAGTIDE_GRAFANA__URL=grafana.url,
            RAGTIDE_GRAFANA__TOKEN="wr0ng",
            RAGTIDE_CLICKHOUSE__PASSWORD="wr0ng",
        )
    assert "set grafana.token" in wrong["grafana"]
    assert "correct clickhouse.user and clickhouse.password" in wrong["clickhouse"]
    assert "run `ragtide migrate`" in faults()["clickhouse"]
    unmade.create()
    assert "lacks 0001_schema" in (said := faults()["clickhouse"])
    assert said.endswith("run `ragtide migrate`")
