"""A filter with an unknown name is an error with the nearest names, in every command; a known one may find nothing."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.sinks.rows import DeadLetterRow, DirtyRow
from ragtide.stream.cli import main
from tests.dashboards.sample_rows import window
from tests.infra.fresh_database import fresh_database, reached

pytestmark = pytest.mark.clickhouse
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def database_of_docs(clickhouse_server: EmbeddedClickHouse) -> Iterator[Database]:
    """Commands that only read share it."""
    letter = DeadLetterRow("live", "rag.traces", 0, 7, NOW, "not_json", "", "decode", 1, "")
    with fresh_database(clickhouse_server) as opened:
        opened.insert("dirty_windows", [DirtyRow("live", "docs", "prod", "fast", NOW, "m1")])
        opened.insert("dead_letters", [letter])
        series = {"app": "docs", "model": "m-large", "segment": "tenant", "segment_value": "a"}
        opened.insert("windows", [window("rouge.rouge_l", datetime.now(UTC), [0.5], **series)])
        yield opened


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("insights --app dosc", "--app: there is no 'dosc'; did you mean docs?"),
        ("insights --type costs", "--type: there is no 'costs'; did you mean cost"),
        ("insights topics --app dosc", "did you mean docs?"),
        ("compare live other --app dosc", "did you mean docs?"),
        ("jobs runs --job wtach", "there is no 'wtach'; there are none yet"),
        ("baseline show dosc rouge.rouge_l", "APP: there is no 'dosc'; did you mean docs?"),
        ("baseline show docs rouge.rouge_m", "METRIC: there is no 'rouge.rouge_m'; did you mean rouge.rouge"),
        ("baseline pins dosc", "APP: there is no 'dosc'; did you mean docs?"),
        ("dead-letters list --reason not_jsn", "--reason: there is no 'not_jsn'; did you mean not_json?"),
        ("dead-letters list --topic rag.trace", "--topic: there is no 'rag.trace'; did you mean rag.traces?"),
        ("dead-letters list --run mnday", "--run: there is no 'mnday'; there are: live"),
        ("dead-letters drop --reason not_jsn --yes", "did you mean not_json?"),
        (
            "dead-letters drop --reason not_json,not_jsn --yes",
            "--reason: there is no 'not_jsn'; did you mean not_json?",
        ),
        ("evaluators --lane fats", "--lane: there is no 'fats'; did you mean fast?"),
        ("baseline show docs rouge.rouge_l --environment prd", "--environment: there is no 'prd'; did you mean prod?"),
        ("baseline show docs rouge.rouge_l --model m-lrge", "--model: there is no 'm-lrge'; did you mean m-large?"),
        (
            "baseline show docs rouge.rouge_l --segment tenent=a",
            "--segment: there is no 'tenent'; did you mean tenant?",
        ),
    ],
)
def test_an_unknown_name_is_an_error_with_the_nearest(database_of_docs: Database, command: str, said: str) -> None:
    variables = {"RAGTIDE_CONFIG": None, "COLUMNS": "200", **reached(database_of_docs)}
    found = CliRunner().invoke(main, command.split(), env=variables)
    assert found.exit_code == 2, found.output
    assert said in found.output


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("insights --app docs --type cost", "no insights"),
        ("dead-letters list --reason not_json --state dropped", "no dropped dead letters reason not_json"),
    ],
)
def test_a_known_name_may_find_nothing(database_of_docs: Database, command: str, said: str) -> None:
    variables = {"RAGTIDE_CONFIG": None, "COLUMNS": "200", **reached(database_of_docs)}
    found = CliRunner().invoke(main, command.split(), env=variables)
    assert (found.exit_code, found.output.strip()) == (0, said)


def test_metrics_of_ones_own_prompts_are_known_without_a_score(database_of_docs: Database, tmp_path: Path) -> None:
    config = tmp_path / "ragtide.toml"
    config.write_text(
        '[evaluators.judge.endpoints.local]\nurl = "http://127.0.0.1:9"\nmodel = "m"\n'
        '[evaluators.judge.byop.polite]\nprompt = "Is this polite? {answer}"\n'
    )
    variables = {"RAGTIDE_CONFIG": str(config), "COLUMNS": "200", **reached(database_of_docs)}
    for metric, status in (("polite", 0), ("polit", 2)):
        found = CliRunner().invoke(main, ["problems", "list", "--metric", metric], env=variables)
        assert found.exit_code == status, found.output
