"""`ragtide evaluate --batch`: the scores of direct calls, in as many batches as evaluators take steps, paid once."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ragtide.evaluators import registry
from ragtide.stream.api.evaluation import evaluate_source
from ragtide.stream.api.inputs import open_source
from ragtide.stream.api.result import Result as StoredResult
from ragtide.stream.assembly import gather_traces, restrict
from ragtide.stream.cli import main
from ragtide.stream.settings.loader import Settings, load
from tests.stream.judge.batch_server import NEVER, BatchServer, Refusal, batch_server
from tests.stream.judge.chat_server import KEY, Sent
from tests.stream.judge.search_server import found, search_server
from tests.stream.judge.test_end_to_end import IDS, RECORDS, simple_judge

PRICES = {"INPUT_USD_PER_MILLION": "10", "OUTPUT_USD_PER_MILLION": "40"}


def fault_in_some(sent: Sent) -> Any:
    """The simple judge, which fails about one trace, writes prose about another, and is asked again about a third."""
    if "closes at 3." in sent.user:
        return Refusal(403, "content_policy")
    if "closes at 4." in sent.user:
        return "I am not sure."
    if "closes at 5." in sent.user and len(sent.body["messages"]) == 2:
        return "One moment."
    return simple_judge(sent)


def environment(server: BatchServer, folder: Path, **more: str) -> dict[str, str]:
    endpoint = {
        "URL": server.url,
        "MODEL": "m",
        "API_KEY": KEY,
        "RETRY_BASE_S": "0.01",
        "BATCH__POLL_S": "0.05",
        **PRICES,
        **more,
    }
    own = {f"RAGTIDE_EVALUATORS__JUDGE__ENDPOINTS__LOCAL__{name}": value for name, value in endpoint.items()}
    return {**own, "RAGTIDE_EVALUATORS__JUDGE__CACHE__PATH": str(folder / "replies.db")}


def traces_in(folder: Path, number: int = 30) -> Path:
    file = folder / "traces.jsonl"
    file.write_text("".join(f"{json.dumps(record)}\n" for record in RECORDS[:number]))
    return file


def arguments(file: Path, out: Path, *more: str) -> list[str]:
    return ["evaluate", str(file), "--evaluators", ",".join(IDS), "--out", str(out), *more]


def evaluate(server: BatchServer, folder: Path, *more: str, **endpoint: str) -> tuple[Result, list[Any]]:
    """Run the command; what it printed, and the scores that it wrote."""
    folder.mkdir(exist_ok=True)
    out = folder / "scores.jsonl"
    called = arguments(traces_in(folder), out, *more)
    ran = CliRunner().invoke(main, called, env=environment(server, folder, **endpoint))
    assert ran.exit_code == 0, ran.output
    return ran, [json.loads(line) for line in out.read_text().splitlines()]


def without_words(score: Mapping[str, Any]) -> dict[str, Any]:
    """A score without the detail of its failure, which names an endpoint's status in other words."""
    return {name: value for name, value in score.items() if name != "detail"}


def cost_in(ran: Result) -> float:
    [line] = [line for line in ran.stderr.splitlines() if line.startswith("judge local: ") and line.endswith(" USD")]
    return float(line.split()[-2])


def test_batches_give_the_scores_and_failures_of_direct_calls_at_half_the_cost(tmp_path: Path) -> None:
    with batch_server(fault_in_some) as server:
        direct, scores = evaluate(server, tmp_path / "direct")
        assert not server.batches
        sent = len(server.chats)
        batched, batched_scores = evaluate(server, tmp_path / "batched", "--batch")
        assert len(server.chats) == sent
        assert not server.files
    assert list(map(without_words, batched_scores)) == list(map(without_words, scores))
    reasons = {score["reason"] for score in scores if score["status"] == "failed"}
    assert reasons == {"judge_rejected", "judge_reply"}
    assert sum(score["status"] == "scored" for score in scores) > 100
    assert sum(server.calls) == sent
    assert len(server.calls) == 4, "two steps, of which both are repaired about one trace"
    assert cost_in(batched) == pytest.approx(cost_in(direct) / 2, abs=1e-4)
    assert cost_in(direct) > 0.5


def test_several_micro_batches_of_traces_are_one_batch(tmp_path: Path) -> None:
    with batch_server(simple_judge) as server:
        evaluate(server, tmp_path, "--batch", "--set", "worker.batch_records=4")
        assert len(server.calls) == 2


def test_traces_are_gathered_up_to_a_number(tmp_path: Path) -> None:
    with batch_server(simple_judge) as server:
        evaluate(server, tmp_path, "--batch", "--set", "evaluators.judge.batch_traces=10")
        assert len(server.calls) == 6


def test_traces_outside_the_sample_do_not_count_if_only_judges_run() -> None:
    known = registry.load()
    sampled = Settings.model_validate({"sampling": {"lanes": {"judge": 0.05}}})
    judges = restrict(sampled, (), ("judge",), known)
    assert gather_traces(judges, known).worker.batch_records == 200_000
    assert gather_traces(sampled, known).worker.batch_records == 10_000
    off = Settings.model_validate({"sampling": {"lanes": {"judge": 0.0}}})
    assert gather_traces(restrict(off, (), ("judge",), known), known).worker.batch_records == 10_000


def checks_facts(sent: Sent) -> Any:
    """An agent that searches first, and then gives its verdict."""
    if "result 1" in sent.user:
        return {"evaluation_summary": "As the page says.", "evaluation_score": 0.5}
    return {"tool": "search", "input": f"closing {sent.user.partition('closes at ')[2][:2]}"}


def test_each_step_of_an_agent_is_a_batch_and_searches_are_sent_directly(tmp_path: Path) -> None:
    file = traces_in(tmp_path, 8)
    own = {"ENDPOINT_BY_EVALUATOR__FACT_CHECK": "local"}
    with batch_server(checks_facts) as server, search_server(found("It closes at six.")) as search:
        own |= {"SEARCH__URL": search.url, "SEARCH__TIMEOUT_S": "2"}
        env = environment(server, tmp_path) | {f"RAGTIDE_EVALUATORS__JUDGE__{name}": own[name] for name in own}
        out = tmp_path / "scores.jsonl"
        called = ["evaluate", str(file), "--evaluators", "fact_check", "--batch", "--out", str(out)]
        ran = CliRunner().invoke(main, called, env=env)
        assert ran.exit_code == 0, ran.output
        assert server.calls == [8, 8]
        assert len(search.sent) == 8
        assert not server.chats
    scores = [json.loads(line) for line in out.read_text().splitlines()]
    assert [score["metrics"] for score in scores] == [{"fact_check": 0.5}] * 8


def test_progress_is_on_standard_error_and_no_key_is(tmp_path: Path) -> None:
    with batch_server(simple_judge) as server:
        ran, _ = evaluate(server, tmp_path, "--batch", "--set", "telemetry.log_level=DEBUG")
    assert "batch batch_1 with" in ran.stderr
    assert "completed, 60 of 60 calls" in ran.stderr
    assert "batch" not in ran.stdout
    assert KEY not in ran.output
    assert "opens at nine" not in ran.stderr


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--evaluators", "operations"], "--batch is for judges"),
        (["--set", "evaluators.judge.cache.path="], "--batch needs evaluators.judge.cache.path"),
    ],
)
def test_batches_that_cannot_be_are_an_error(tmp_path: Path, more: list[str], said: str) -> None:
    with batch_server(simple_judge) as server:
        env = environment(server, tmp_path)
        if "evaluators.judge.cache.path=" in more:
            del env["RAGTIDE_EVALUATORS__JUDGE__CACHE__PATH"]
            more = []
        called = ["evaluate", str(traces_in(tmp_path)), *(more or ["--lane", "judge"]), "--batch"]
        ran = CliRunner().invoke(main, called, env=env)
        assert ran.exit_code != 0
        assert said in f"{ran.output}{ran.exception}"
        assert not server.requests


@pytest.mark.parametrize("fault", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_result_that_cannot_be_stored_is_not_paid_for_again(tmp_path: Path, fault: BaseException) -> None:
    def refuse(result: StoredResult) -> None:
        raise fault

    with batch_server(lambda sent: "I am not sure.") as server:
        loaded = load(None, environment(server, tmp_path)).settings
        known = registry.load(loaded.evaluators)
        chosen = restrict(loaded, ["faithfulness"], (), known)
        file, largest = traces_in(tmp_path, 4), chosen.ingest.max_bytes
        with pytest.raises(type(fault)):
            evaluate_source(open_source(file, largest), chosen, known, progress=False, by_batch=True, store=refuse)
        assert server.calls == [4, 4], "the calls and their repairs"
        evaluate_source(open_source(file, largest), chosen, known, progress=False, by_batch=True)
        assert server.calls == [4, 4]
        assert not server.files


def start(server: BatchServer, folder: Path) -> "subprocess.Popen[bytes]":
    called = arguments(traces_in(folder), folder / "scores.jsonl", "--batch")
    command = [sys.executable, "-m", "ragtide.stream", *called]
    env = {**os.environ, **environment(server, folder)}
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.parametrize(("signalled", "steps"), [(signal.SIGKILL, 1), (signal.SIGKILL, 2), (signal.SIGINT, 2)])
def test_a_command_that_is_stopped_goes_on_without_paying_twice(
    tmp_path: Path, signalled: signal.Signals, steps: int
) -> None:
    """It ends while the batch of one of its steps is in flight."""
    with batch_server(simple_judge, looks=NEVER) as server:
        process = start(server, tmp_path)
        try:
            for step in range(1, steps + 1):
                end = time.monotonic() + 60
                while server.requests["look"] < 2 or len(server.calls) < step:
                    assert time.monotonic() < end, "no batch was sent"
                    assert process.poll() is None, process.communicate()
                    time.sleep(0.02)
                if step < steps:
                    list(server.batches.values())[-1].looks = 0
                    server.requests["look"] = 0
            process.send_signal(signalled)
            _, told = process.communicate(timeout=30)
        finally:
            process.kill()
        assert process.returncode != 0
        assert signalled == signal.SIGKILL or b"the same command finds them again" in told
        assert len(server.calls) == steps
        server.looks = 0
        list(server.batches.values())[-1].looks = 0
        again = start(server, tmp_path)
        _, told = again.communicate(timeout=60)
        assert again.returncode == 0, told
        assert len(server.calls) == 2
        assert not server.files
        scores = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text().splitlines()]
        assert {score["status"] for score in scores} == {"scored"}
        assert KEY.encode() not in told
