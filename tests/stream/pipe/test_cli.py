"""The command line: light, helpful, and every expected error one clear line."""

import json
import os
import re
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from ragtide.dashboards.build import build
from ragtide.evaluators.registry import load
from ragtide.stream.cli import COMMANDS, main

LIGHT = {"click", "ragtide.stream", "ragtide.evaluators"}  # what a --help may import, the standard library aside


def run(*args: str, **variables: str) -> Result:
    return CliRunner().invoke(main, args, env={"RAGTIDE_CONFIG": None, **variables})


def shell(*args: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("RAGTIDE_")}
    return subprocess.run(
        [sys.executable, "-m", "ragtide.stream", *args],
        cwd=cwd,
        env={**environ, **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    "args",
    [
        ("insights", "--days", "nan"),
        ("jobs", "runs", "--days", "nan"),
        ("compare", "a", "b", "--min-change", "inf"),
        ("problems", "show", "\udcff"),
        ("baseline", "pin", "docs", "--run", "a", "--why", " "),
        ("baseline", "pin", "docs", "--run", "a", "--why", "x", "--metric", ""),
        ("baseline", "pin", "docs", "--from", "2026-01-01", "--to", "9999-12-31T23:59:59-12:00", "--why", "x"),
        ("rules", "test", "rules.toml", "--from", "0001-01-01T00:00:00+14:00"),
    ],
    ids=" ".join,
)
def test_what_no_command_can_use_is_one_line_before_anything_is_asked(args: tuple[str, ...]) -> None:
    found = run(*args)
    assert found.exit_code == 2, found.output
    assert isinstance(found.exception, SystemExit)


def helps(command: click.Command, *above: str) -> list[tuple[str, ...]]:
    found = [above]
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            below = command.get_command(click.Context(command), name)
            assert below is not None
            found += helps(below, *above, name)
    return found


def command_at(path: tuple[str, ...]) -> click.Command:
    command: click.Command = main
    for name in path:
        assert isinstance(command, click.Group)
        below = command.get_command(click.Context(command), name)
        assert below is not None
        command = below
    return command


def ends(path: tuple[str, ...]) -> bool:
    return not isinstance(command_at(path), click.Group)


@pytest.mark.parametrize("path", helps(main), ids=" ".join)
def test_every_help_has_examples_and_says_what_options_mean(path: tuple[str, ...]) -> None:
    told = run(*path, "--help")
    assert told.exit_code == 0
    assert re.search(r"(Examples?|First steps):\n\s+\S", told.output)
    assert max(map(len, told.output.splitlines())) <= 120
    assert not [p.name for p in command_at(path).params if isinstance(p, click.Option) and not p.help]


@pytest.mark.parametrize("path", [(), *((name,) for name in COMMANDS)], ids=" ".join)
def test_help_imports_nothing_heavy(path: tuple[str, ...]) -> None:
    code = (
        "import sys\nbare = set(sys.modules)\nfrom ragtide.stream.cli import main\n"
        f"try: main({[*path, '--help']!r})\nexcept SystemExit: pass\n"
        "new = (name.split('.') for name in set(sys.modules) - bare - {'ragtide'})\n"
        "tops = {'.'.join(name[: 1 + (name[0] == 'ragtide')]) for name in new}\n"
        "print(*(tops - sys.stdlib_module_names))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    imported = set(done.stdout.splitlines()[-1].split())
    assert {"click", "ragtide.stream"} <= imported <= LIGHT


def test_an_unknown_command_gets_the_nearest() -> None:
    told = run("cofig")
    assert told.exit_code == 2
    assert "did you mean config?" in told.output
    assert "worker" in run("qqq").output


def test_a_settings_typo_is_one_line_without_traceback(tmp_path: Path) -> None:
    (tmp_path / "ragtide.toml").write_text("[kafka]\ntopcis = 1\n")
    done = shell("config", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "ragtide: ragtide.toml:2: kafka.topcis: no such setting; did you mean kafka.topics?\n"


NEEDED = {
    "lanes": ("--lane", "fast"),
    "run_id": ("--run", "r"),
    "place": ("rag.traces/0/1",),
    "problem_id": ("p",),
    "problem_ids": ("p",),
    "trace_id": ("t",),
    "run_name": ("r",),
    "until": ("--until", "2h"),
    "why": ("--why", "w"),
    "app": ("a",),
    "metric": ("m",),
    "rate": ("--rate", "0.1"),
    "run_a": ("a",),
    "run_b": ("b",),
    "file": ("rules.toml",),
    "first": ("--from", "2026-03-01"),
    "out": ("--out", "f.json"),
    "prompt": ("p",),
    "traces": ("--file", "t.jsonl"),
}  # what a command asks for, by its parameter's name


@pytest.mark.parametrize("path", [path for path in helps(main) if ends(path) and path[-1] != "new"], ids=" ".join)
def test_an_unknown_variable_stops_every_command(
    path: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All but `evaluators new`, which writes files and has no settings."""
    monkeypatch.chdir(tmp_path)
    params = [param for param in command_at(path).params if param.required or param.name == "problem_ids"]
    given = [word for param in params for word in NEEDED[param.name or ""]]
    told = run(*path, *given, RAGTIDE_KAFKA__TOPIC="x")
    assert told.exit_code == 2
    assert told.output == "ragtide: RAGTIDE_KAFKA__TOPIC: no such setting; did you mean RAGTIDE_KAFKA__TOPICS?\n"
    assert not list(tmp_path.iterdir())


def test_config_tells_values_and_origins_and_masks_secrets(tmp_path: Path) -> None:
    file = tmp_path / "r.toml"
    file.write_text('[clickhouse]\npassword = "hunter2"\n')
    told = run("config", "--json", "--config", str(file), RAGTIDE_KAFKA__TOPICS="a,b")
    entries = {entry["name"]: entry for entry in json.loads(told.output)}
    assert entries["kafka.topics"]["value"] == ["a", "b"]
    assert entries["kafka.topics"]["origin"] == "RAGTIDE_KAFKA__TOPICS"
    assert entries["clickhouse.password"]["origin"] == f"{file}:2"
    assert entries["clickhouse.password"]["value"] == "********"
    assert "hunter2" not in told.output + run("config", "--config", str(file)).output


def test_config_prints_a_file_that_means_the_same(tmp_path: Path) -> None:
    first = run(
        "config",
        RAGTIDE_EVALUATORS__PARAMS='{"rouge": {"use_stemmer": true}}',
        RAGTIDE_SAMPLING__LANES__JUDGE="0.5",
        RAGTIDE_CLICKHOUSE__PASSWORD="x",
        RAGTIDE_RULES__OVERRIDES='[{"metric": "operations.cost_usd", "max": 0.1}]',
    )
    tomllib.loads(first.output)
    file = tmp_path / "r.toml"
    file.write_text(first.output)
    second = run("config", "--config", str(file))
    values = [re.sub(r" +# .*", "", line) for line in first.output.splitlines() if "password" not in line]
    assert values == [re.sub(r" +# .*", "", line) for line in second.output.splitlines() if "password" not in line]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("params.rouge.use_stemer = 1", "evaluators.params.rouge.use_stemer: there is no such parameter"),
        ('params.rouge.use_stemmer = "x"', "evaluators.params.rouge.use_stemmer: Input should be a valid boolean"),
        ("params.rogue.use_stemmer = true", "evaluators.params: there is no evaluator 'rogue'; did you mean 'rouge'?"),
        ('disabled = ["rogue"]', "evaluators.disabled: there is no evaluator 'rogue'; did you mean 'rouge'?"),
    ],
)
def test_config_says_which_evaluator_or_parameter_is_wrong_and_where(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "r.toml"
    file.write_text(f"[evaluators]\n{text}\n")
    for options in ((), ("--json",), ("--changed",)):
        told = run("config", *options, "--config", str(file))
        assert told.exit_code == 2
        assert told.output.startswith(f"ragtide: {file}:2: {said}")
    assert told.output.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('overrides]]\nmetric = "rouge.rouge_k"\nmin = 0.5', "no metric 'rouge.rouge_k'; did you mean 'rouge."),
        ('overrides]]\nmetric = "q.q"\nmin = 0.5', "no metric 'q.q' (known: "),
        (
            'objectives]]\nname = "ok"\nmetric = "rouge.rouge_k"',
            "ok: no metric of records 'rouge.rouge_k'; did you mean",
        ),
        ('limits]]\nevaluator = "rogue"\nerror_limit = 0.5', "no evaluator 'rogue'; did you mean 'rouge'"),
    ],
)
@pytest.mark.parametrize("command", ["config", "check"])
def test_a_rule_that_fits_no_metric_is_refused_where_settings_are_looked_at(
    command: str, text: str, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "r.toml"
    file.write_text(f"[rules]\n[[rules.{text}\n")
    told = run(command, "--config", str(file))
    assert told.exit_code == 2
    assert told.output.startswith(f"ragtide: {file}:2: rules.")
    assert said in told.output


def test_a_rule_of_a_variable_that_fits_no_metric_is_refused() -> None:
    told = run("config", RAGTIDE_RULES__OVERRIDES='[{"metric": "operations.cost_usdd", "max": 0.1}]')
    assert told.exit_code == 2
    assert told.output.startswith("ragtide: RAGTIDE_RULES__OVERRIDES: rules.overrides: no metric")
    assert "did you mean 'operations.cost_usd'?" in told.output


def test_config_changed_shows_only_what_is_not_default() -> None:
    told = run("config", "--changed", RAGTIDE_WORKER__BLOCK_ROWS="7")
    assert re.fullmatch(r"\[worker\]\nblock_rows = 7 +# RAGTIDE_WORKER__BLOCK_ROWS\n", told.output)


def test_evaluators_as_json_has_what_other_tools_need() -> None:
    infos = {info["id"]: info for info in json.loads(run("evaluators", "--json").output)}
    assert {"operations", "inputs", "groundedness", "looping_detection", "pii_leakage", "rouge"} <= set(infos)
    named = {"id", "description", "domain", "method", "lane", "tasks", "inputs", "needs", "standards", "params"}
    named |= {"available", "reason", "version", "fingerprint", "metrics"}
    for info in infos.values():
        assert named <= set(info)
        for metric in info["metrics"]:
            assert {"key", "range", "better", "threshold", "primary", "rule"} <= set(metric)
        for param in info["params"]:
            assert {"name", "description", "default", "range"} <= set(param)
    assert infos["rouge"]["lane"] == "fast"
    assert infos["groundedness"]["needs"] == ["embedding"]


def test_evaluators_as_a_table_and_in_full() -> None:
    table = [line.split() for line in run("evaluators").output.splitlines()]
    assert ["evaluator", "lane", "domain", "method", "metrics", "(*", "primary)", "runs", "here"] in table
    assert ["rouge", "fast", "summarization", "ngram", "rouge_1", "yes"] in table
    assert ["rouge_l*"] in table
    lanes = run("evaluators", "--lane", "model").output
    assert "groundedness" in lanes
    assert "rouge" not in lanes
    rouge = run("evaluators", "rouge").output
    for said in (
        "inputs:     answer, expected",
        "needs:      nothing",
        "standards:  Valid and Reliable, Outcomes Analysis, Conceptual Soundness",
        "rouge_l [0, 1], higher is better, threshold 0.75, rule mean, primary: F1 of the longest common subsequence",
        "use_stemmer = False (default False): Compare Porter stems",
    ):
        assert said in rouge
    assert "latency_seconds [0, ∞] s, lower is better, rule mean, primary" in run("evaluators", "operations").output
    assert "did you mean rouge?" in run("evaluators", "rogue").output
    assert "`ragtide evaluators` lists every name" in run("evaluators", "zzz").output


def test_a_pattern_of_the_settings_that_takes_no_linear_time_is_refused_with_the_reason() -> None:
    params = json.dumps({"regexes_to_ignore": ["fine", r"(a+)\1"]})
    told = run("evaluators", RAGTIDE_EVALUATORS__PARAMS__EXACT_MATCH=params)
    assert told.exit_code == 2
    where = "evaluators.params.exact_match.regexes_to_ignore: expression 1: regular expression refused"
    assert where in told.output
    assert "back-references have no linear time" in told.output


@pytest.mark.parametrize("args", [(), ("rouge",), ("rouge", "--json"), ("--lane", "model"), ("--nonsense",)])
def test_evaluators_without_a_command_lists_them(args: tuple[str, ...]) -> None:
    short, long = run("evaluators", *args), run("evaluators", "list", *args)
    assert (short.output, short.exit_code) == (long.output, long.exit_code)
    assert ("rouge" in short.output) == ("rouge" in args or not args)


def test_an_evaluator_setting_that_names_nobody_is_an_error() -> None:
    told = run("evaluators", RAGTIDE_EVALUATORS__DISABLED="rogue")
    assert told.exit_code == 2
    assert "rouge" in told.output


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("worker", "--lane", "fats"), "there is no 'fats'; did you mean fast?"),
        (("evaluators", "--lane", "fats"), "there is no 'fats'; did you mean fast?"),
        (("worker",), "--lane"),
        (("replay", "--file", "x.jsonl"), "--run"),
        (("replay", "--run", "probe", "--file", "x.jsonl"), "is taken"),
        (("replay", "--run", "a b", "--file", "x.jsonl"), "letters, digits"),
        (("replay", "--run", "r", "--file", "x.jsonl", "--topic", "t"), "--file is read whole"),
        (("replay", "--run", "r", "--from", "2026-03-02T10:00:00"), "has no offset"),
        (("replay", "--run", "r", "--from", "soon"), "is not a time"),
        (("replay", "--run", "r", "--from", "2026-03-02", "--to", "2026-03-02"), "before --to"),
        (("replay", "--run", "r", "--file", "/nowhere.jsonl"), "No such file"),
        (("dashboards", "push"), "grafana.url is not set"),
    ],
)
def test_wrong_use_is_told(args: tuple[str, ...], said: str) -> None:
    told = run(*args)
    assert told.exit_code == 2
    assert said in told.output
    assert "Traceback" not in told.output


def test_check_says_what_is_wrong_and_what_to_do(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = shell(
            "check",
            cwd=tmp_path,
            RAGTIDE_KAFKA__BOOTSTRAP_SERVERS="127.0.0.1:9",
            RAGTIDE_CLICKHOUSE__URL="http://127.0.0.1:9",
            RAGTIDE_GRAFANA__URL="http://127.0.0.1:9",
            RAGTIDE_GRAFANA__TOKEN="hunter2",
            RAGTIDE_TELEMETRY__PORT=port,
            RAGTIDE_EVALUATORS__ENABLED="operations,inputs",
        )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "hunter2" not in done.stdout + done.stderr
    lines = {line.split(": ")[0].split()[-1]: line for line in done.stdout.splitlines()}
    for name in ("kafka", "clickhouse", "grafana", "telemetry.port"):
        assert lines[name].startswith("WRONG")
    assert "127.0.0.1:9" in lines["kafka"]
    assert "(clickhouse.url)" in lines["clickhouse"]
    for name in ("kafka.jobs_topic", "kafka.dead_letter_topic"):
        assert lines[name].startswith("- ")
        assert "not tried" in lines[name]
    assert done.stderr.startswith("4 to mend\n")
    assert "`ragtide local`" in done.stderr
    assert "another port" in lines["telemetry.port"]
    for name in ("settings", "evaluators", "encoder"):
        assert lines[name].startswith("ok")


@pytest.mark.onnx
@pytest.mark.parametrize(("enabled", "mark"), [(None, "-"), ("toxicity,operations", "WRONG")])
def test_check_finds_fault_with_a_missing_model_only_where_someone_asked_for_it(
    enabled: str | None, mark: str, tmp_path: Path
) -> None:
    done = shell(
        "check",
        cwd=tmp_path,
        RAGTIDE_KAFKA__BOOTSTRAP_SERVERS="127.0.0.1:9",
        RAGTIDE_CLICKHOUSE__URL="http://127.0.0.1:9",
        RAGTIDE_EVALUATORS__ENCODER__BACKEND="onnx",
        HF_HUB_CACHE=str(tmp_path),
        **({"RAGTIDE_EVALUATORS__ENABLED": enabled} if enabled else {}),
    )
    [said] = [line for line in done.stdout.splitlines() if "evaluators: " in line]
    assert said.split()[0] == mark
    assert "toxicity: the model original is not here: ragtide models fetch original" in said


def test_dashboards_build_writes_files(tmp_path: Path) -> None:
    told = run("dashboards", "build", "--out", str(tmp_path / "out"))
    assert told.exit_code == 0, told.output
    files = sorted((tmp_path / "out").iterdir())
    assert [file.name for file in files] == [f"ragtide-{name}.json" for name in sorted(build(load()))]
    for file in files:
        assert json.loads(file.read_text())["panels"]
        assert str(file) in told.output


def test_ctrl_c_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ragtide.stream.settings.loader.load", interrupted)
    assert run("config").exit_code == 130


def test_a_reader_that_goes_away_gets_no_traceback(tmp_path: Path) -> None:
    script = f"{sys.executable} -m ragtide.stream config --json | head -n 1"
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("[\n", "")
