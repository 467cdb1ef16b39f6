"""Whatever names are stored, no command prints one that steers a terminal or forges a line."""

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from ragtide.drift.anomalies.pinning import save_pins as pinned
from ragtide.drift.anomalies.references import BaselinePin
from ragtide.drift.insights.model import InsightRow
from ragtide.drift.job_history import JobRun
from ragtide.drift.notify.outbox import OutboxRow
from ragtide.drift.problems.report import ProblemKey
from ragtide.drift.topics.store import TopicModelRow
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import DeadLetterRow
from ragtide.sinks.sample import explanation, score, text, trace
from ragtide.stream.cli import COMMANDS, main
from ragtide.stream.replay.runs import RunRow
from ragtide.stream.terminal_text import plain_toml
from tests.infra.fresh_database import reached
from tests.stream.core.traffic import Broker
from tests.stream.dead_letters.scene import Scene, Sent
from tests.stream.pipe.problem_site import Site

pytestmark = pytest.mark.clickhouse

HOSTILE = "a\nFORGED\x1b[2J\x85\u2028\u202e\u2066\u200b\U000e0001z"
NOW = datetime.now(UTC).replace(microsecond=0)

# Commands, and what they are called with here.
TRIED: dict[str, Sequence[Sequence[str]]] = {
    "problems list": ([], ["--json"]),
    "problems show": (["{problem}"], ["{problem}", "--json"]),
    "problems ack": (["{problem}", "--by", HOSTILE, "--why", HOSTILE],),
    "problems unack": (["{problem}", "--by", HOSTILE, "--why", HOSTILE],),
    "problems mute": (
        ["{problem}", "--until", "2h", "--by", HOSTILE, "--why", HOSTILE],
        ["{problem}", "--until", HOSTILE, "--why", "x"],
    ),
    "problems unmute": (["{problem}", "--by", HOSTILE],),
    "problems accept": (["{problem}", "--by", HOSTILE, "--why", HOSTILE], [HOSTILE, "--why", "x"]),
    "trace": ([HOSTILE], [HOSTILE, "--json"], [HOSTILE, "--app", "x"], ["x", "--run", HOSTILE], [f"{HOSTILE}2"]),
    "runs list": ([], ["--json"]),
    "runs show": ([HOSTILE], [HOSTILE, "--json"], [f"{HOSTILE}2"]),
    "runs delete": ([HOSTILE], [f"live{HOSTILE}"], [HOSTILE, "--yes"]),
    "insights": ([], ["--json"], ["--app", HOSTILE]),
    "insights topics": ([], ["--json"]),
    "jobs runs": ([], ["--json"], ["--job", HOSTILE]),
    "compare": (
        ["before", "after"],
        ["before", "after", "--json"],
        ["before", HOSTILE],
        ["before", "after", "--app", HOSTILE],
    ),
    "baseline pins": ([], ["--json"]),
    "baseline pin": ([HOSTILE, "--run", HOSTILE, "--why", "x"],),
    "baseline unpin": (
        [HOSTILE, "--why", "x", "--by", "ada", "--metric", HOSTILE],
        [HOSTILE, "--why", "x", "--by", "ada"],
    ),
    "baseline show": ([HOSTILE, HOSTILE], [HOSTILE, "inputs.question_length", "--json"]),
    "baseline learn": ([],),
    "rules test": (
        ["{rules}", "--from", "{yesterday}"],
        ["{rules}", "--from", "{yesterday}", "--json"],
        [HOSTILE, "--from", "2026-01-01"],
    ),
    "dead-letters list": (
        [],
        ["--json"],
        ["--each"],
        ["--each", "--json"],
        ["--reason", HOSTILE],
        ["--topic", HOSTILE],
    ),
    "dead-letters show": ([f"{HOSTILE}/0/1"], [HOSTILE]),
    "dead-letters drop": (["--by", HOSTILE, "--yes"], ["--by", HOSTILE, "--yes", "--reason", HOSTILE]),
    "dead-letters replay": (["--run", HOSTILE],),
    "replay": (
        ["--run", HOSTILE],
        ["--run", "a", "--file", HOSTILE],
        ["--run", "a", "--offsets", HOSTILE],
        ["--run", "a", "--set", HOSTILE],
    ),
    "evaluators list": ([HOSTILE], ["--lane", HOSTILE]),
    "evaluators new": ([HOSTILE],),
    "evaluators frequencies": ([HOSTILE, "--out", "{learned}"],),
    "models fetch": ([HOSTILE],),
    "validate": ([HOSTILE], ["{traces}"], ["{traces}", "--json"]),
    "evaluate": (
        [HOSTILE],
        ["{traces}", "--evaluators", "inputs"],
        ["{traces}", "--evaluators", "inputs", "--json"],
        ["{traces}", "--evaluators", HOSTILE],
    ),
    "explain-trace": (
        [HOSTILE],
        ["{spans}"],
        ["{spans}", "--json"],
        ["{spans}", "--trace", HOSTILE],
        ["{spans}", "--logs", HOSTILE],
    ),
    "calendar show": (
        [HOSTILE],
        [HOSTILE, "--json"],
        ["--config", "{calendar}"],
        ["--config", "{calendar}", "--json"],
    ),
    "calibrate": (
        [HOSTILE],
        ["groundedness.groundedness", "--app", HOSTILE],
        ["groundedness.groundedness", "--run", HOSTILE],
        ["groundedness.groundedness", "--json"],
    ),
    "labels sample": (
        [HOSTILE, "--rate", "0.5"],
        ["groundedness.groundedness", "--rate", "1"],
        ["groundedness.groundedness", "--rate", "0.5", "--app", HOSTILE],
        ["groundedness.groundedness", "--rate", "0.5", "--run", HOSTILE],
    ),
    "byop try": (
        [HOSTILE, "--file", HOSTILE],
        [HOSTILE, "--file", HOSTILE, "--config", "{prompt}"],
        ["mine", "--file", HOSTILE, "--config", "{prompt}"],
        ["mine", "--file", "{traces}", "--config", "{prompt}"],
        ["mine", "--file", "{asked}", "--config", "{prompt}"],
        ["mine", "--file", "{asked}", "--config", "{prompt}", "--json"],
        ["mine", "--file", "{traces}", "--labels", "{traces}", "--config", "{prompt}"],
        ["mine", "--file", "{traces}", "--set", HOSTILE],
    ),
    "judge canaries": ([], ["--json"], ["--config", HOSTILE]),
    "worker": (["--lane", HOSTILE],),
    "config": (
        ["--config", HOSTILE],
        ["--config", "{hostile}"],
        ["--config", "{odd}"],
        ["--config", "{odd}", "--json"],
    ),
    "topics create": (["--partitions", HOSTILE],),
    "notify list": ([], ["--json"], ["--target", HOSTILE]),
    "notify preview": (
        ["{problem}", "--config", "{notify}"],
        ["{problem}", "--config", "{notify}", "--json"],
        ["{problem}", "--config", "{notify}", "--target", HOSTILE],
        ["{problem}", "--config", "{contacts}"],
        [HOSTILE, "--config", "{notify}"],
    ),
    "notify test": (
        ["--config", "{notify}"],
        ["--config", "{notify}", "--target", HOSTILE],
        ["--config", "{contacts}", "--target", "contact_point:operators"],
    ),
    "view": (["--listen", HOSTILE], ["--config", HOSTILE]),
}
# Their JSON has the stored names, unchanged.
TELL_NAMES = {"problems list", "problems show", "insights", "insights topics", "jobs runs", "baseline pins",
              "trace", "runs list", "runs show", "notify list", "notify preview",
              "dead-letters list", "config", "explain-trace", "byop try"}  # fmt: skip
# Commands that print nothing stored and nothing typed but what the options of the others show.
OTHERS = {"demo", "topics", "models list", "migrate", "check", "local", "local clickhouse", "jobs", "evaluators",
          "dashboards build", "dashboards push", "dashboards alerts", "dashboards diff"}  # fmt: skip


def every_command(name: str, command: click.Command) -> list[str]:
    if not isinstance(command, click.Group):
        return [name]
    context = click.Context(command)
    below = [f"{name} {one}" for one in command.list_commands(context)]
    own = [name] if command.invoke_without_command else []
    return own + [found for one in below for found in every_command(one, command.commands[one.rpartition(" ")[2]])]


def test_every_command_is_tried_or_prints_nothing_of_strangers() -> None:
    context = click.Context(main)
    commands = {name: main.get_command(context, name) for name in COMMANDS}
    known = {found for name, one in commands.items() if one is not None for found in every_command(name, one)}
    assert known == TRIED.keys() | (OTHERS & known)


@pytest.fixture
def stored(database: Database, tmp_path: Path) -> dict[str, str]:
    """Hostile names in each table that commands print; how the placeholders of `TRIED` are filled."""
    site = Site(database)
    site.sees("drift", place=ProblemKey(HOSTILE, HOSTILE, HOSTILE, "level", "quality.good", HOSTILE, HOSTILE))
    problem = site.problem.problem_id
    figures = json.dumps({HOSTILE: HOSTILE})
    span = (NOW - timedelta(hours=1), NOW)
    database.insert(
        "insights",
        [InsightRow(HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE, figures, [HOSTILE], [HOSTILE], *span, 1)],
    )
    database.insert("job_history", [JobRun(HOSTILE, 1, NOW, 0.1, HOSTILE)])
    database.insert(
        "topic_models", [TopicModelRow(HOSTILE, HOSTILE, 1, 1, NOW, 9, [1], [HOSTILE], [[1.0]], [0.5], [9])]
    )
    pinned(database, [BaselinePin(HOSTILE, HOSTILE, HOSTILE, *span, HOSTILE, HOSTILE, 0, NOW)])
    letter = DeadLetterRow("live", HOSTILE, 0, 1, NOW, HOSTILE, HOSTILE, HOSTILE, 1, "00")
    database.insert("dead_letters", [letter])
    for run_id, value in (("before", 0.9), ("after", 0.1), (HOSTILE, 0.1)):
        rows = [
            score(
                f"{HOSTILE}{n}",
                run_id=run_id,
                evaluator=HOSTILE,
                metrics={HOSTILE: value + n / 1000},
                fingerprint=f"{run_id}{HOSTILE}",
            )
            for n in range(40)
        ]
        database.insert("scores", rows)
    where = {"run_id": "live", "app": HOSTILE, "environment": HOSTILE, "time": NOW}
    places = json.dumps([{"field": "contexts", "start": 0, "end": 3, "chunk_id": HOSTILE, "kind": HOSTILE}])
    database.insert("traces", [trace(HOSTILE, **where, model=HOSTILE, segments={HOSTILE: HOSTILE}, error=HOSTILE)])
    texts = {"question": HOSTILE, "answer": HOSTILE, "chunk_ids": [HOSTILE], "chunks": [HOSTILE], "rest": "{}"}
    database.insert("trace_texts", [text(HOSTILE, **where, **texts, expected=[HOSTILE])])
    database.insert("scores", [score(HOSTILE, **where, evaluator=HOSTILE, metrics={HOSTILE: 1.0}, evidence=places)])
    database.insert("explanations", [explanation(HOSTILE, **where, evaluator=HOSTILE, explanation=HOSTILE)])
    database.insert(
        "runs", [RunRow(HOSTILE, HOSTILE, [HOSTILE], {HOSTILE: HOSTILE}, "", "completed", "{}", 1, 0, 1, NOW)]
    )
    refused = OutboxRow(
        HOSTILE, "webhook:pager", "open", HOSTILE, NOW, json.dumps(HOSTILE), "refused", HOSTILE, HOSTILE, 1, 1, NOW
    )
    database.insert("outbox", [refused])
    files = {
        name: tmp_path / f"{name}.toml"
        for name in (
            "rules",
            "hostile",
            "odd",
            "traces",
            "notify",
            "contacts",
            "spans",
            "learned",
            "calendar",
            "prompt",
            "asked",
        )
    }
    odd_trace = {"trace_id": HOSTILE, "app": HOSTILE, HOSTILE: 1, "latency": {HOSTILE: 1}, "question": HOSTILE}
    files["traces"].write_text(json.dumps(odd_trace) + "\n" + HOSTILE.splitlines()[0] + "\n")
    attributes = {"openinference.span.kind": "CHAIN", "input.value": HOSTILE, "session.id": HOSTILE, HOSTILE: HOSTILE}
    pairs = [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]
    odd_span = {"traceId": "1" * 32, "spanId": "2" * 16, "name": HOSTILE, "attributes": pairs}
    bad_span = {"traceId": HOSTILE, "spanId": HOSTILE}
    batch = {"scopeSpans": [{"scope": {"name": HOSTILE}, "spans": [odd_span, bad_span]}]}
    files["spans"].write_text(json.dumps({"resourceSpans": [batch]}))
    files["rules"].write_text("[rules]\nmin_sample = 10\n")
    quoted = plain_toml(HOSTILE)
    files["hostile"].write_text(f"[kafka]\n{quoted} = 1\n")
    files["notify"].write_text('[[webhooks]]\nname = "pager"\nurl = "http://127.0.0.1:9/"\n')
    files["contacts"].write_text(
        '[grafana]\nurl = "http://127.0.0.1:9"\ntoken = "x"\n[grafana_alerting]\ncontact_point = "operators"\n'
        f'folder_title = {plain_toml(HOSTILE[:100])}\n[grafana_alerting.contact_points.operators]\ntype = "webhook"\n'
        'url = "http://127.0.0.1:9"\n'
    )
    files["calendar"].write_text(f'[[drift.calendar]]\nname = {quoted}\nstart = "03:00"\nend = "04:00"\n')
    asked_trace = {"trace_id": HOSTILE, "app": "x", "time": NOW.isoformat(), "question": HOSTILE}
    files["asked"].write_text(json.dumps(asked_trace | {"verdict": {"thumbs": "up", "comment": HOSTILE}}))
    files["prompt"].write_text(
        '[evaluators.judge.endpoints.local]\nurl = "http://127.0.0.1:9/"\nmodel = "m"\nretries = 0\n'
        f"[evaluators.judge.byop.mine]\nprompt = {plain_toml('{question}' + HOSTILE)}\n"
    )
    files["odd"].write_text(f"[dashboards]\nfolder_title = {quoted}\n")
    yesterday = (NOW - timedelta(days=1)).isoformat()
    return {"problem": problem, "yesterday": yesterday, **{name: str(file) for name, file in files.items()}}


def safe(shown: Result) -> None:
    """No hostile character, and no line that begins with what follows a line break in a name."""
    output = shown.stdout + shown.stderr
    assert output, "nothing was printed"
    for number, line in enumerate(output.split("\n")):
        assert line.isprintable(), (number, line)
        assert not re.match(r"\s*FORGED", line), (number, line)
    assert shown.exception is None or isinstance(shown.exception, SystemExit), shown.exception


def texts_of(value: Any) -> set[str]:
    """Every text in a JSON value, names too."""
    if isinstance(value, dict):
        return {text for pair in value.items() for part in pair for text in texts_of(part)}
    if isinstance(value, list):
        return {text for part in value for text in texts_of(part)}
    return {value} if isinstance(value, str) else set()


@pytest.mark.parametrize("name", TRIED)
def test_no_command_prints_what_steers_a_terminal(name: str, stored: dict[str, str], database: Database) -> None:
    variables = {"RAGTIDE_CONFIG": None, "COLUMNS": "200", **reached(database)}
    for args in TRIED[name]:
        filled = [stored.get(arg.strip("{}"), arg) if arg.startswith("{") else arg for arg in args]
        shown = CliRunner().invoke(main, [*name.split(), *filled], env=variables)
        safe(shown)
        if "--json" in args and name in TELL_NAMES:
            assert HOSTILE in texts_of(json.loads(shown.stdout))


@pytest.mark.broker
def test_keys_and_headers_of_dead_letters_forge_no_line(broker: Broker, database: Database) -> None:
    scene = Scene(broker, database)
    key = "k\n  header x: FORGED\x1b[2J\u2028".encode()
    headers = [("name\nFORGED", b"a\nFORGED\x85"), ("\x1b[2J\u202e", HOSTILE.encode())]
    scene.send(Sent(b'{"a":\n  key: FORGED\n\x1b\xe2\x80\xa8', key, headers))
    scene.take_in()
    shown = scene.command("show", f"{scene.topic}/0/0")
    safe(shown)
    lines = shown.stdout.split("\n")
    assert sum(line.startswith("  header") for line in lines) == 2
    assert sum(line.startswith("  key") for line in lines) == 1
    assert sum(line.startswith("| ") for line in lines) == 3
