"""Migrations: twice, at once, half-way; lifetimes; and rows that fit their tables."""

import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError

from ragtide.drift.notify.messages import MAX_AGE
from ragtide.evaluators.errors import ConfigError
from ragtide.sinks.clickhouse import migrate as module
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.sinks.clickhouse.migrate import lifetimes, migrate, migrations, missing
from ragtide.sinks.clickhouse.sink import ClickHouseSink
from ragtide.sinks.row_identity import TABLES, Row, identity, rows_of
from ragtide.sinks.rows import EmbeddingRow, ScoreRow
from ragtide.sinks.sample import NOON, block, embedding, score
from ragtide.sinks.settings import RetentionSettings
from tests.sinks.table_rows import rows_in_table

pytestmark = pytest.mark.clickhouse


@pytest.fixture
def empty(clickhouse_server: EmbeddedClickHouse) -> Iterator[Database]:
    """A database that does not exist yet."""
    name = f"empty_{uuid.uuid4().hex[:12]}"
    database = Database(clickhouse_server.settings.model_copy(update={"database": name}))
    yield database
    database.command(f"DROP DATABASE {name}")
    database.close()


@pytest.fixture
def next_migration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a migration that a later version brings, beside the schema: a column, and a view that reads it."""
    for name, statements in migrations().items():
        (tmp_path / f"{name}.sql").write_text("".join(f"{statement};\n" for statement in statements))
    (tmp_path / "0002_notes.sql").write_text(
        "-- What a later version adds.\n\n"
        "ALTER TABLE windows ADD COLUMN IF NOT EXISTS note Nullable(String) COMMENT 'a; b' AFTER value;\n\n"
        "CREATE OR REPLACE VIEW notes AS SELECT metric, note FROM windows FINAL;\n"
    )
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    return "0002_notes"


def test_the_second_time_nothing_is_done(empty: Database) -> None:
    done = migrate(empty, RetentionSettings())
    assert done == [*migrations(), *(f"ttl:{table}" for table in lifetimes(RetentionSettings()))]
    assert migrate(empty, RetentionSettings()) == []
    assert missing(empty) == []


def test_half_way_is_taken_up(empty: Database) -> None:
    empty.create()
    for statement in migrations()["0001_schema"][:4]:
        empty.command(statement)
    assert missing(empty) == list(migrations())
    assert "0001_schema" in migrate(empty, RetentionSettings())
    assert missing(empty) == []


def test_a_later_migration_half_way_is_taken_up(database: Database, next_migration: str) -> None:
    column, _ = migrations()[next_migration]
    database.command(column)
    assert missing(database) == [next_migration]
    assert migrate(database, RetentionSettings()) == [next_migration]
    assert database.rows("SELECT * FROM notes") == []
    assert migrate(database, RetentionSettings()) == missing(database) == []


def test_several_processes_at_once(clickhouse_server: EmbeddedClickHouse, empty: Database) -> None:
    program = """
import sys
from pydantic import SecretStr
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.migrate import migrate
from ragtide.sinks.settings import ClickHouseSettings, RetentionSettings
url, key, name = sys.argv[1:]
sys.stdin.readline()
migrate(Database(ClickHouseSettings(url=url, password=SecretStr(key), database=name)), RetentionSettings())
"""
    server = clickhouse_server.settings
    arguments = [server.url, server.password.get_secret_value(), empty.name]
    running = [
        subprocess.Popen([sys.executable, "-c", program, *arguments], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    said = []
    for process in running:
        assert process.stdin is not None
        process.stdin.write(b"go\n")
        process.stdin.flush()
    for process in running:
        _, errors = process.communicate(timeout=120)
        said.append((process.returncode, errors.decode()))
    assert said == [(0, "")] * 3
    assert migrate(empty, RetentionSettings()) == []


def test_another_retention_changes_its_tables_alone(database: Database) -> None:
    changed = ["ttl:trace_texts", "ttl:explanations"]
    assert migrate(database, RetentionSettings(texts_days=3)) == changed
    assert migrate(database, RetentionSettings(texts_days=3)) == []
    assert migrate(database, RetentionSettings()) == changed


def test_vectors_have_a_retention_of_their_own(database: Database) -> None:
    assert migrate(database, RetentionSettings(embeddings_days=3)) == [
        "ttl:embeddings",
        "ttl:topic_models",
        "ttl:question_references",
    ]
    database.insert("embeddings", [embedding("old", run_id="live"), embedding("replayed", run_id="replay")])
    database.command("OPTIMIZE TABLE embeddings FINAL")
    assert [row.trace_id for row in rows_in_table(database, "embeddings") if isinstance(row, EmbeddingRow)] == [
        "replayed"
    ]


def test_live_rows_live_from_their_event_and_other_runs_from_when_they_were_written(database: Database) -> None:
    """The sample's events are long ago: counted from them, 3 days are over; counted from now, not."""
    migrate(database, RetentionSettings(traces_days=3))
    database.insert("scores", [score("old", run_id="live"), score("replayed", run_id="replay")])
    database.command("OPTIMIZE TABLE scores FINAL")
    assert [row.trace_id for row in rows_in_table(database, "scores") if isinstance(row, ScoreRow)] == ["replayed"]


def test_windows_live_by_their_size(database: Database) -> None:
    migrate(database, RetentionSettings(windows_minute_days=2, windows_hour_days=20, windows_day_days=200))
    for size_s in (10, 60, 3600, 86400):
        for age_days in (1, 10, 100, 300):
            database.command(
                "INSERT INTO windows (run_id, size_s, start) "
                "SELECT 'live', {size:UInt32}, now() - toIntervalDay({age:UInt32})",
                {"size": size_s, "age": age_days},
            )
    database.command("OPTIMIZE TABLE windows FINAL")
    kept = database.rows("SELECT size_s, count() AS n FROM windows FINAL GROUP BY size_s ORDER BY size_s")
    assert {row["size_s"]: row["n"] for row in kept} == {10: 1, 60: 1, 3600: 2, 86400: 3}


def test_windows_of_a_replay_live_from_when_they_were_computed(database: Database) -> None:
    """What it replays may be older than any window is kept."""
    for run_id in ("live", "probe", "replay"):
        for size_s in (60, 3600, 86400):
            database.command(
                "INSERT INTO windows (run_id, size_s, start) SELECT {run:String}, {size:UInt32}, toDateTime(0)",
                {"run": run_id, "size": size_s},
            )
    database.command("OPTIMIZE TABLE windows FINAL")
    kept = database.rows("SELECT run_id, count() AS n FROM windows FINAL GROUP BY run_id ORDER BY run_id")
    assert {row["run_id"]: row["n"] for row in kept} == {"probe": 3, "replay": 3}


def test_marks_live_until_they_are_worked_off_and_texts_and_dead_letters_their_days(database: Database) -> None:
    migrate(database, RetentionSettings(texts_days=3, dead_letters_days=3))
    aged = {
        "dirty_windows": ("mark_id", "marked_at"),
        "dead_letters": ("topic", "ingested_at"),
        "trace_texts": ("trace_id", "time"),
    }
    kept = {}
    for table, (name, time) in aged.items():
        for age_days in (2, 4):
            database.command(
                f"INSERT INTO {table} (run_id, {name}, {time}) "
                "SELECT 'live', {name:String}, now() - toIntervalDay({age:UInt32})",
                {"name": f"{age_days} days", "age": age_days},
            )
        if table == "dirty_windows":
            database.command(
                f"INSERT INTO {table} (mark_id, done, {time}) SELECT 'worked off', 1, now() - toIntervalDay(4)"
            )
        database.command(f"OPTIMIZE TABLE {table} FINAL")
        kept[table] = [row["name"] for row in database.rows(f"SELECT {name} AS name FROM {table} ORDER BY name")]
    assert kept == {
        "dirty_windows": ["2 days", "4 days"],  # what nobody worked off yet must not be forgotten
        "dead_letters": ["2 days"],
        "trace_texts": ["2 days"],
    }


def test_messages_live_from_their_last_change_whatever_became_of_them(database: Database) -> None:
    migrate(database, RetentionSettings(outbox_days=8))
    for age_days in (7, 9):
        for state in ("pending", "sent", "refused"):
            database.command(
                "INSERT INTO outbox (message_id, state, updated_at) "
                "SELECT {id:String}, {state:String}, now() - toIntervalDay({age:UInt32})",
                {"id": f"{state}{age_days}", "age": age_days, "state": state},
            )
    database.command("OPTIMIZE TABLE outbox FINAL")
    kept = database.rows("SELECT message_id FROM outbox ORDER BY message_id")
    assert [row["message_id"] for row in kept] == ["pending7", "refused7", "sent7"]


def test_a_message_outlives_the_event_that_would_make_it_anew() -> None:
    with pytest.raises(ValidationError, match="outbox_days"):
        RetentionSettings(outbox_days=MAX_AGE.days)


@pytest.mark.parametrize("row_type", TABLES, ids=lambda row_type: row_type.__name__)
def test_rows_fit_their_tables(database: Database, row_type: type[Row]) -> None:
    """Same names in the same order; what the table has besides fills itself."""
    columns = database.rows(
        "SELECT name, default_kind FROM system.columns WHERE database = currentDatabase() AND table = {table:String} "
        "ORDER BY position",
        {"table": TABLES[row_type]},
    )
    given = [column["name"] for column in columns if not column["default_kind"]]
    assert tuple(given) == row_type._fields


@pytest.mark.parametrize("table", TABLES.values())
def test_identity_is_the_sorting_key(database: Database, table: str) -> None:
    """Part by part and in its order."""
    [found] = database.rows(
        "SELECT sorting_key FROM system.tables WHERE database = currentDatabase() AND name = {table:String}",
        {"table": table},
    )
    values = rows_of(block())[table][0]._asdict()
    values["toStartOfMinute(time)"] = NOON.replace(second=0, microsecond=0)
    key = found["sorting_key"].split(", ")
    assert identity(rows_of(block())[table][0]) == tuple(values[part] for part in key)


@pytest.mark.parametrize("table", ["traces", "trace_texts", "scores", "explanations", "embeddings"])
def test_a_trace_is_found_by_its_id_and_a_day_is_a_partition(database: Database, table: str) -> None:
    about = {"table": table}
    skipping = database.rows(
        "SELECT expr, type FROM system.data_skipping_indices "
        "WHERE database = currentDatabase() AND table = {table:String}",
        about,
    )
    assert {"expr": "trace_id", "type": "bloom_filter"} in skipping
    assert database.rows(
        "SELECT partition_key FROM system.tables WHERE database = currentDatabase() AND name = {table:String}", about
    ) == [{"partition_key": "toYYYYMMDD(time)"}]


def test_a_database_with_rows_is_brought_up_to_date(database: Database, next_migration: str) -> None:
    """Rows from before stay; a new column is empty in them."""
    database.insert("scores", [score("old", run_id="replay")])
    database.command(
        "INSERT INTO windows (run_id, size_s, metric, start, scored, sum) "
        "VALUES ('live', 60, 'quality.good', now(), 2, 1.5)"
    )
    with pytest.raises(ConfigError, match=rf"lacks {next_migration}: run `ragtide migrate`"):
        ClickHouseSink(database).check()
    assert migrate(database, RetentionSettings()) == [next_migration]
    assert [row.trace_id for row in rows_in_table(database, "scores") if isinstance(row, ScoreRow)] == ["old"]
    assert database.rows("SELECT metric, scored, sum, note FROM windows FINAL") == [
        {"metric": "quality.good", "scored": 2, "sum": 1.5, "note": None}
    ]
    assert database.rows("SELECT metric, note FROM notes") == [{"metric": "quality.good", "note": None}]


def test_the_reference_has_every_column_in_its_order(database: Database) -> None:
    """Of tables and views, also columns that a later migration adds, with the comments that the server has."""
    page = (Path(__file__).parents[3] / "docs" / "reference" / "tables.md").read_text()
    sections = (section.partition("\n") for section in page.split("\n## ")[1:])
    row = re.compile(r"^\| `(\w+)` \| `[^`]+` \| (.*?) \| (.*?) ?\|$", re.MULTILINE)
    documented = {
        name: [(column, "; ".join(filter(None, words))) for column, *words in row.findall(text)]
        for name, _, text in sections
    }
    columns = database.rows(
        "SELECT table, groupArray((name, comment)) AS described FROM (SELECT table, name, comment FROM system.columns "
        "WHERE database = currentDatabase() AND table != 'schema_migrations' ORDER BY table, position) GROUP BY table"
    )
    assert documented == {row["table"]: [tuple(one) for one in row["described"]] for row in columns}


def test_every_table_and_column_has_a_comment(database: Database) -> None:
    about = "database = currentDatabase() AND comment = ''"
    assert database.rows(f"SELECT name FROM system.tables WHERE {about}") == []
    assert database.rows(f"SELECT table, name FROM system.columns WHERE {about}") == []


def test_comments_say_what_null_means(database: Database) -> None:
    columns = database.rows(
        "SELECT table, name, comment FROM system.columns WHERE database = currentDatabase() AND type LIKE 'Nullable%'"
    )
    assert columns
    assert [row for row in columns if "; NULL: " not in row["comment"]] == []


def test_metric_values_are_one_row_per_metric(database: Database) -> None:
    ClickHouseSink(database).write(block(traces=1))
    assert database.rows("SELECT metric, value FROM metric_values ORDER BY metric") == [
        {"metric": "operations.precision", "value": 0.1},
        {"metric": "operations.recall", "value": 1.0},
        {"metric": "text_matching.precision", "value": 0.1},
        {"metric": "text_matching.recall", "value": 1.0},
    ]


def test_check_says_what_is_missing(database: Database) -> None:
    sink = ClickHouseSink(database)
    assert database.name in sink.check()
    database.command("TRUNCATE TABLE schema_migrations")
    with pytest.raises(ConfigError, match=r"0001_schema.*ragtide migrate"):
        sink.check()


def test_marks_come_after_rows_and_progress_last(database: Database) -> None:
    """Whatever cannot be written, nothing is told of it."""
    sink = ClickHouseSink(database)
    counts = {table: f"SELECT count() AS n FROM {table}" for table in ("traces", "dirty_windows", "progress")}

    def found() -> dict[str, int]:
        return {table: database.rows(sql)[0]["n"] for table, sql in counts.items()}

    database.command("RENAME TABLE scores TO away")
    with pytest.raises(ConfigError, match="migrate"):
        sink.write(block(traces=2))
    assert found() == {"traces": 2, "dirty_windows": 0, "progress": 0}
    database.command("RENAME TABLE away TO scores, dirty_windows TO away")
    with pytest.raises(ConfigError, match="migrate"):
        sink.write(block(traces=2))
    database.command("RENAME TABLE away TO dirty_windows")
    assert found()["progress"] == 0
    sink.write(block(traces=2))
    assert found()["dirty_windows"] == found()["progress"] == 1


def test_statements_end_at_line_ends_only() -> None:
    for statements in migrations().values():
        assert statements
        for statement in statements:
            assert statement.split()[0] in ("CREATE", "ALTER")
            assert not statement.endswith(";")
            assert not any(line.lstrip().startswith("--") for line in statement.splitlines())


def test_migrations_are_numbered_without_gaps() -> None:
    folder = Path(__file__).parents[3] / "sinks" / "clickhouse" / "migrations"
    assert sorted(path.stem for path in folder.glob("*.sql")) == list(migrations())
    assert [int(name[:4]) for name in migrations()] == list(range(1, len(migrations()) + 1))
