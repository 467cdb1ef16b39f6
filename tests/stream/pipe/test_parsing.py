"""TOML and JSON of people, however deep, long or large: an error is a sentence that says where, and no traceback."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from ragtide.evaluators import registry
from ragtide.evaluators.checks import check_golden
from ragtide.evaluators.errors import BadRecord, ConfigError
from ragtide.stream.cli import main
from ragtide.stream.ingest.adjustments import Adjustments
from ragtide.stream.ingest.canonical_json import decode_canonical
from ragtide.stream.ingest.records import StoredRecord
from ragtide.stream.labels.decoding import decode
from ragtide.stream.rules_reload import RulesFile
from ragtide.stream.settings.loader import load

BRACKETS, DIGITS = "[" * 100_000, "9" * 100_000
DOTTED = ".".join("a" * 20_000)
TOO_DEEP, TOO_LARGE = "nested in more than 100 levels", "a whole number is larger than 64 bits hold"
TOML = {
    "brackets": (f"[kafka]\ntopics = {BRACKETS}", TOO_DEEP),
    "closed brackets": (f"[kafka]\ntopics = {BRACKETS}{']' * 100_000}", TOO_DEEP),
    "inline tables": ("[evaluators]\nparams = " + "{a = " * 50_000, TOO_DEEP),
    "levels": (f"[evaluators]\nparams = {'{a = ' * 101}1{'}' * 101}", TOO_DEEP),
    "dotted keys": (f"[evaluators]\nparams.{DOTTED} = 1", f":2: tables or lists are {TOO_DEEP}"),
    "a dotted header": (f"\n[evaluators.params.{DOTTED}]", f":2: tables or lists are {TOO_DEEP}"),
    "digits": (f"[worker]\nbatch_records = {DIGITS}", f":2: {TOO_LARGE}"),
    "negative digits": (f"[worker]\nbatch_records = -{DIGITS}", f":2: {TOO_LARGE}"),
    "digits of a parameter": (f"[evaluators.params.rouge]\nx = [{{y = {DIGITS}}}]", f":2: {TOO_LARGE}"),
    "hexadecimal digits": (f"[evaluators.params.rouge]\nx = 0x{'f' * 100_000}", TOO_LARGE),
}
JSON = {
    "brackets": (BRACKETS, TOO_DEEP),
    "objects": ('{"a":' * 100_000, TOO_DEEP),
    "levels": (f"{'[' * 101}1{']' * 101}", TOO_DEEP),
    "digits": (f"[{DIGITS}]", TOO_LARGE),
}


def fails(*args: str, **variables: str) -> str:
    """The one line that a command ends with."""
    shown = CliRunner().invoke(main, list(args), env={"RAGTIDE_CONFIG": None, **variables})
    assert shown.exit_code == 2, shown.exception
    (line,) = shown.stderr.strip("\n").split("\n")
    assert len(line) < 1000
    return line


@pytest.mark.parametrize("text", TOML)
@pytest.mark.parametrize("command", [["config"], ["worker", "--lane", "fast"], ["jobs"]])
def test_a_settings_file(text: str, command: list[str], tmp_path: Path) -> None:
    file = tmp_path / "ragtide.toml"
    file.write_text(TOML[text][0])
    line = fails(*command, "--config", str(file))
    assert line.startswith(f"ragtide: {file}")
    assert TOML[text][1] in line


@pytest.mark.parametrize("text", TOML)
def test_a_rules_file_that_the_jobs_watch(text: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "ragtide.toml"
    file.write_text("[rules]\nmin_sample = 7\n")
    rules = RulesFile(load(file, {}), registry.load(), {})
    file.write_text(TOML[text][0])
    assert rules.current().min_sample == 7
    assert TOML[text][1] in caplog.text


@pytest.mark.parametrize("name", ["KAFKA__TOPICS", "EVALUATORS__PARAMS", "EVALUATORS__PARAMS__ROUGE__USE_STEMMER"])
@pytest.mark.parametrize("text", JSON)
def test_a_variable(name: str, text: str) -> None:
    if name == "EVALUATORS__PARAMS" and text == "digits":
        text, expected = "digits", "a table is given as JSON"
        line = fails("config", **{f"RAGTIDE_{name}": DIGITS})
    else:
        value, expected = JSON[text]
        line = fails("config", **{f"RAGTIDE_{name}": value})
    assert line.startswith(f"ragtide: RAGTIDE_{name}: ")
    assert expected in line


def test_a_variable_with_the_longest_of_names_or_values() -> None:
    assert "no such setting" in fails("config", **{f"RAGTIDE_EVALUATORS__PARAMS{'__A' * 250}": "1"})
    assert "kafka.topics" in fails("config", RAGTIDE_KAFKA__TOPICS=DIGITS)
    assert "worker.batch_records" in fails("config", RAGTIDE_WORKER__BATCH_RECORDS=DIGITS)


@pytest.mark.parametrize("text", JSON)
def test_a_change_for_a_replay(text: str, tmp_path: Path) -> None:
    changed = f"evaluators.params.rouge.use_stemmer={JSON[text][0]}"
    line = fails("replay", "--run", "a", "--file", str(tmp_path / "none.jsonl"), "--set", changed)
    assert JSON[text][1] in line


@pytest.mark.parametrize("field", ["attributes", "expected", "unknown", "cost_usd", "time"])
@pytest.mark.parametrize(("value", "reason"), [(BRACKETS, "too_deep"), (DIGITS, "not_finite")])
def test_a_line_of_traces_and_a_label(field: str, value: str, reason: str) -> None:
    fields = json.dumps({"trace_id": "t", "app": "a", "question": "q"})[:-1]
    line = f'{fields}, "{field}": {value}}}'.encode()
    with pytest.raises(BadRecord) as bad:
        decode_canonical(line, Adjustments())
    assert bad.value.reason == reason
    with pytest.raises(BadRecord) as bad:
        decode(StoredRecord("labels", 0, 0, 0, None, line), len(line))
    assert bad.value.reason == reason


def test_a_golden_file(tmp_path: Path) -> None:
    file = tmp_path / "golden.json"
    file.write_text(BRACKETS)
    with pytest.raises(ConfigError, match="cannot be read"):
        check_golden(registry.load()["rouge"], file)
