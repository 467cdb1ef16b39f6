"""`ragtide byop try`: a prompt of a user's over a file, through the client, limits and budget of the lane."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from click.testing import CliRunner, Result

from ragtide import evaluate
from ragtide.evaluators.judge.fences import REPAIR
from ragtide.stream.cli import main
from tests.stream.judge.chat_server import (
    KEY,
    Behaviour,
    ChatServer,
    Sent,
    by_rule,
    chat_server,
    error,
    hang,
    reply,
    say,
)

PROMPT = "Is {answer} a polite reply to {question}?"
LABELS = ["down", "up", "up", "down", "up", "up", "down", "up"]
FAILING = {3, 6}  # answers that the judge calls impolite


def record(number: int, **fields: Any) -> dict[str, Any]:
    own = {"trace_id": f"t{number}", "time": "2026-11-21T12:00:00Z", "app": "shop"}
    return {**own, "question": "When?", "answer": f"At nine, customer {number}.", **fields}


RECORDS = [record(number) for number in range(8)]
LABELLED = [one | {"verdict": {"thumbs": thumbs}} for one, thumbs in zip(RECORDS, LABELS, strict=True)]
polite = by_rule(lambda sent: {"verdict": not any(f"customer {number}." in sent.user for number in FAILING)})


def write(folder: Path, records: Sequence[Any], name: str = "traces.jsonl") -> str:
    file = folder / name
    file.write_text("".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in records))
    return str(file)


def run(server: ChatServer, folder: Path, *args: str, stdin: str | None = None, **more: Any) -> Result:
    """Run with a prompt `polite`. `more`: other settings of the endpoint; `extra` is more of the file."""
    extra = more.pop("extra", "")
    own = {"url": server.url, "model": "m", "api_key": KEY, "concurrency": 1, "retry_base_s": 0.01, **more}
    lines = ["[evaluators.judge.endpoints.local]", *(f"{name} = {json.dumps(value)}" for name, value in own.items())]
    lines += ["[evaluators.judge.byop.polite]", f"prompt = {json.dumps(PROMPT)}", extra]
    config = folder / "r.toml"
    config.write_text("\n".join(lines))
    return CliRunner().invoke(
        main, ["byop", "try", *args, "--config", str(config)], env={"RAGTIDE_CONFIG": None}, input=stdin
    )


def found(ran: Result) -> dict[str, Any]:
    assert ran.exception is None or isinstance(ran.exception, SystemExit), ran.exception
    made: dict[str, Any] = json.loads(ran.stdout)
    return made


def test_verdicts_counts_cost_and_agreement(tmp_path: Path) -> None:
    """Judge and people: 2 bad to both, 1 to people alone, 5 to neither. kappa = (7/8 - 9/16) / (7/16) = 5/7."""
    records = [*LABELLED, {**record(8), "answer": None}]
    prices: dict[str, Any] = {"input_usd_per_million": 1.0, "output_usd_per_million": 2.0}
    with chat_server(polite) as server:
        ran = run(server, tmp_path, "polite", "--file", write(tmp_path, records), **prices)
    assert ran.exit_code == 0, ran.output
    lines = ran.stdout.splitlines()
    assert lines[0] == "t0  true   passes  people: bad"
    assert lines[3] == "t3  false  fails  people: bad"
    assert lines[8] == "t8  not applicable: missing_answer"
    assert lines[9:] == [
        "9 records: 9 evaluated, 0 rejected",
        "polite: 8 scored (6 pass, 2 fail), 0 could not tell, 1 not applicable (missing_answer 1), 0 left out",
        "judge local: 8 calls, 0 replies from the cache, 0 failures, 8,000 input tokens (0 cached), "
        "400 output tokens, 0.0088 USD",
        "cost of 1,000 judged traces: about 1.1000 USD",
        "agreement on 8 labelled traces, of which people call 3 bad: kappa 0.71 (0.21 to 1.00), "
        "precision 100% (34% to 100%), recall 67% (21% to 94%)",
    ]


def test_json_has_the_same(tmp_path: Path) -> None:
    with chat_server(polite) as server:
        made = found(run(server, tmp_path, "polite", "--file", write(tmp_path, LABELLED), "--json"))
    assert (made["traces"], made["scored"], made["passed"], made["labelled"]) == (8, 8, 6, 8)
    assert made["could_not_tell"] == made["not_applicable"] == made["left_out"] == {}
    assert made["usage"]["calls"] == 8
    assert made["usd_per_1000_traces"] is None, "the endpoint has no prices"
    assert made["agreement"]["kappa"]["value"] == pytest.approx(5 / 7)
    assert made["agreement"]["precision"] == pytest.approx({"value": 1, "low": 0.34238, "high": 1}, abs=1e-5)
    assert made["agreement"]["recall"] == pytest.approx({"value": 2 / 3, "low": 0.20766, "high": 0.93851}, abs=1e-5)
    assert [one["verdict"] for one in made["verdicts"]] == [number not in FAILING for number in range(8)]
    assert [one["people_say_bad"] for one in made["verdicts"]] == [thumbs == "down" for thumbs in LABELS]


def test_with_a_bad_true_verdict_true_fails(tmp_path: Path) -> None:
    with chat_server(polite) as server:
        args = ("--json", "--set", "evaluators.judge.byop.polite.good_verdict=false")
        made = found(run(server, tmp_path, "polite", "--file", write(tmp_path, RECORDS), *args))
    assert made["passed"] == 2
    assert [one["verdict"] for one in made["verdicts"]] == [number not in FAILING for number in range(8)]
    assert made["agreement"] is None


def test_replies_of_every_kind_and_no_failure_is_a_verdict(tmp_path: Path) -> None:
    scripts: dict[str, list[Behaviour]] = {
        "0": [say('Of course! {"verdict": false} I hope that helps.')],
        "1": [say("True.")],
        "2": [say(None, refusal="I cannot say")],
        "3": [say("It depends."), say("It still depends.")],
        "4": [error(429, "rate_limit_exceeded", Retry_After="0"), reply({"verdict": True})],
        "5": [error(500), error(500)],
        "6": [hang, hang],
        "7": [reply({"verdict": True})],
    }

    async def behave(sent: Sent, request: web.Request) -> web.StreamResponse:
        return await scripts[sent.user.partition("customer ")[2][0]].pop(0)(sent, request)

    settings: dict[str, Any] = {"retries": 1, "timeout_s": 0.3, "structured": "json_schema"}
    with chat_server(behave) as server:
        made = found(run(server, tmp_path, "polite", "--file", write(tmp_path, RECORDS), "--json", **settings))
        [repair] = [sent.body["messages"][-1]["content"] for sent in server.sent if len(sent.body["messages"]) > 2]
    assert not any(scripts.values())
    kinds = ["", "", "judge_refused", "judge_reply", "", "judge_unavailable", "judge_timeout", ""]
    by_order = {one["trace_id"]: one for one in made["verdicts"]}
    assert [by_order[f"t{number}"]["reason"] for number in range(8)] == kinds
    assert [by_order[f"t{number}"]["verdict"] for number in range(8)] == [
        False,
        True,
        None,
        None,
        True,
        None,
        None,
        True,
    ]
    assert made["could_not_tell"] == {kind: 1 for kind in kinds if kind}
    assert (made["scored"], made["passed"]) == (4, 3)
    assert repair.startswith(REPAIR.partition("{")[0])


def test_a_throttled_call_without_further_attempts_is_no_verdict(tmp_path: Path) -> None:
    with chat_server(error(429, "rate_limit_exceeded")) as server:
        ran = run(server, tmp_path, "polite", "--file", write(tmp_path, LABELLED), "--json", retries=0)
    made = found(ran)
    assert ran.exit_code == 2, "the judge failed on every trace"
    assert made["could_not_tell"] == {"judge_throttled": 8}
    assert (made["scored"], made["labelled"], made["agreement"], made["usd_per_1000_traces"]) == (0, 0, None, None)


DOLLAR_A_CALL: dict[str, Any] = {"input_usd_per_million": 1000.0, "output_usd_per_million": 0.0}


def test_max_usd_holds_for_all_applications_together(tmp_path: Path) -> None:
    records = [record(number, app=f"app{number % 2}") for number in range(8)]
    with chat_server(polite) as server:
        file = write(tmp_path, records)
        made = found(run(server, tmp_path, "polite", "--file", file, "--max-usd", "3", "--json", **DOLLAR_A_CALL))
        assert len(server.sent) == 3
    assert made["left_out"] == {"over_budget": 5}
    assert made["usage"]["cost_usd"] == 3.0
    assert made["usd_per_1000_traces"] == 1000.0
    assert [one["passes"] for one in made["verdicts"]].count(None) == 5


def test_the_budget_of_the_settings_holds_too(tmp_path: Path) -> None:
    with chat_server(polite) as server:
        ran = run(
            server,
            tmp_path,
            *("polite", "--file", write(tmp_path, RECORDS), "--max-usd", "5"),
            extra="[evaluators.judge.limit]\nusd_per_day = 2\n",
            **DOLLAR_A_CALL,
        )
        assert len(server.sent) == 2
    assert "2 scored (2 pass, 0 fail), 0 could not tell, 0 not applicable, 6 left out (over_budget 6)" in ran.stdout


def test_a_limit_without_prices_is_an_error_before_any_call(tmp_path: Path) -> None:
    with chat_server(polite) as server:
        ran = run(server, tmp_path, "polite", "--file", write(tmp_path, RECORDS), "--max-usd", "1")
        assert server.sent == []
    assert ran.exit_code == 2
    assert ran.stderr.startswith("ragtide: a limit of the cost needs prices: set input_usd_per_million")


def test_labels_of_a_file_take_the_place_of_those_in_records(tmp_path: Path) -> None:
    labels = [
        {"trace_id": "t0", "verdict": {"thumbs": "down"}},
        {"trace_id": "t0", "verdict": {"thumbs": "up"}},
        {"trace_id": "t3", "verdict": {"thumbs": "down"}},
        {"trace_id": "t4", "verdict": {"score": 0.1}},
        {"trace_id": "t5", "expected": ["Nine."]},
        {"trace_id": "elsewhere", "verdict": {"thumbs": "down"}},
    ]
    args = ("polite", "--labels", write(tmp_path, labels, "labels.jsonl"), "--json", "--file")
    with chat_server(polite) as server:
        alone = found(run(server, tmp_path, *args, write(tmp_path, RECORDS)))
        both = found(run(server, tmp_path, *args, write(tmp_path, LABELLED)))
        scores = found(run(server, tmp_path, *args, write(tmp_path, RECORDS), "--good-from", "0.5"))
    say_bad = {one["trace_id"]: one["people_say_bad"] for one in alone["verdicts"]}
    assert say_bad == {**{f"t{number}": None for number in range(8)}, "t0": False, "t3": True}
    assert alone["labelled"] == 2
    assert both["verdicts"] == alone["verdicts"], "one source of labels"
    assert [one["trace_id"] for one in scores["verdicts"] if one["people_say_bad"] is not None] == ["t4"]


def test_labels_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    bad = {"trace_id": "t0", "verdict": {"thumbs": "sideways"}}
    with chat_server(polite) as server:
        args = ("polite", "--file", write(tmp_path, [RECORDS[1], RECORDS[0] | bad, "no JSON"]))
        ran = run(server, tmp_path, *args)
        assert len(server.sent) == 2
        refused = run(server, tmp_path, *args, "--labels", write(tmp_path, [bad], "labels.jsonl"))
        assert len(server.sent) == 2, "labels are read before any call"
    assert ran.exit_code == 1
    assert "label rejected: record 2: verdict.thumbs: input should be 'up' or 'down'" in ran.stdout
    assert "3 records: 2 evaluated, 1 rejected" in ran.stdout
    assert refused.exit_code == 2
    assert "label 1: verdict.thumbs: input should be 'up' or 'down'" in refused.stderr


def test_a_prompt_is_tried_before_workers_run_it(tmp_path: Path) -> None:
    off = '[evaluators]\ndisabled = ["polite"]\n[sampling.lanes]\njudge = 0.0\n'
    with chat_server(polite) as server:
        text = "".join(f"{json.dumps(one)}\n" for one in RECORDS)
        made = found(run(server, tmp_path, "polite", "--file", "-", "--json", stdin=text, extra=off))
    assert (made["scored"], made["passed"]) == (8, 6)


def test_an_unknown_prompt_and_none_at_all_are_errors(tmp_path: Path) -> None:
    file = write(tmp_path, RECORDS)
    with chat_server(polite) as server:
        wrong = run(server, tmp_path, "polit", "--file", file)
        assert server.sent == []
    assert wrong.exit_code == 2
    assert "there is no 'polit'; did you mean polite?" in wrong.stderr
    none = CliRunner().invoke(main, ["byop", "try", "polite", "--file", file], env={"RAGTIDE_CONFIG": None})
    assert none.exit_code == 2
    assert none.stderr == "ragtide: no prompt is set: add a table [evaluators.judge.byop.NAME] with prompt or file\n"


def test_without_an_endpoint_the_error_says_what_to_set(tmp_path: Path) -> None:
    variables = {"RAGTIDE_CONFIG": None, "RAGTIDE_EVALUATORS__JUDGE__BYOP__POLITE__PROMPT": PROMPT}
    ran = CliRunner().invoke(main, ["byop", "try", "polite", "--file", write(tmp_path, RECORDS)], env=variables)
    assert ran.exit_code == 2
    assert "'polite', which cannot run: no judge endpoint is set" in ran.stderr


def test_prompts_side_by_side_ask_for_themselves_and_beside_built_in_ones() -> None:
    def rule(sent: Sent) -> Any:
        if "polite" in sent.system:
            return {"verdict": "customer 1." in sent.user}
        if "short" in sent.system:
            return {"verdict": False}
        return {"verdicts": [{"number": number, "verdict": False} for number in range(1, 11)]}

    with chat_server(by_rule(rule)) as server:
        judge = {
            "endpoints": {"local": {"url": server.url, "model": "m"}},
            "byop": {"polite": {"prompt": PROMPT}, "short": {"prompt": "Is {answer} short?", "good_verdict": False}},
        }
        names = ["polite", "short", "safety_critic"]
        result = evaluate(RECORDS[:2], names, settings={"evaluators": {"judge": judge}})
        constant = {one.system for one in server.sent}
        questions = [one for one in server.sent if "short" in one.system]
    assert len(constant) == 3, "the first message is the same for all traces"
    assert [score.metrics["passes"] for score in result.scores("polite")] == [0.0, 1.0]
    assert [score.metrics["passes"] for score in result.scores("short")] == [1.0, 1.0]
    assert {score.status for score in result.scores("safety_critic")} == {"scored"}
    assert not [one for one in questions if "When?" in one.user], "a field that the prompt does not name is not sent"
    assert not re.search(r"customer|When", "".join(constant))


EVERYWHERE = """
[evaluators.judge.endpoints.local]
url = "http://127.0.0.1:9/v1"
model = "m"
[evaluators.judge.byop.polite]
prompt = "Is {answer} polite?"
description = "Tone of our replies"
[evaluators.judge]
endpoint_by_evaluator = { polite = "local" }
companions = { "polite.passes" = "support.support" }
[evaluators.tasks]
polite = ["summarization"]
[sampling.evaluators]
polite = 0.1
[[rules.overrides]]
metric = "polite.passes"
limit = 0.1
"""


def test_settings_and_commands_name_a_prompt_as_any_evaluator(tmp_path: Path) -> None:
    config = tmp_path / "r.toml"
    config.write_text(EVERYWHERE)

    def command(*args: str) -> str:
        ran = CliRunner().invoke(main, [*args, "--config", str(config)], env={"RAGTIDE_CONFIG": None})
        assert ran.exit_code == 0, ran.output
        return ran.stdout

    assert '"polite" = { "prompt" = "Is {answer} polite?"' in command("config", "--changed")
    assert "Tone of our replies" in command("evaluators", "polite")
    command("dashboards", "build", "--out", str(tmp_path / "boards"))
    boards = {file.name for file in (tmp_path / "boards").rglob("*.json") if "polite.passes" in file.read_text()}
    assert len(boards) >= 2, boards
    shown = command("byop", "try", "polite", "--file", write(tmp_path, RECORDS))
    assert "polite: 0 scored (0 pass, 0 fail), 0 could not tell" in shown
    assert shown.count("8 of other tasks") == 1


@pytest.mark.parametrize(("metric", "exit_code"), [("polite.passes", 0), ("polit.passes", 2)])
def test_a_rule_about_a_prompt_is_checked(tmp_path: Path, metric: str, exit_code: int) -> None:
    config = tmp_path / "r.toml"
    config.write_text(EVERYWHERE.replace('metric = "polite.passes"', f'metric = "{metric}"'))
    ran = CliRunner().invoke(main, ["config", "--config", str(config)], env={"RAGTIDE_CONFIG": None})
    assert ran.exit_code == exit_code, ran.output
