"""From settings to scores: the pipeline of workers, the client, and an endpoint."""

import json
import logging
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ragtide import evaluate
from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.spec import Lane
from ragtide.stream.api.result import Result
from ragtide.stream.cli import main
from ragtide.stream.settings.loader import Settings
from ragtide.stream.worker.lane import limits_of
from tests.stream.judge.chat_server import KEY, ChatServer, Sent, by_rule, chat_server, error

RECORDS = [
    {
        "trace_id": f"t{number}",
        "time": "2026-11-21T12:00:00Z",
        "app": "shop",
        "question": "When does it open?",
        "answer": f"It opens at nine. It closes at {number}.",
        "contexts": ["It opens at nine.", "It sells bread."],
        "expected": "It opens at nine.",
    }
    for number in range(30)
]
IDS = ["faithfulness", "noise_sensitivity", "context_precision", "context_recall"]


def simple_judge(sent: Sent) -> Any:
    """List sentences, and say yes to what a source or a reference holds."""
    sections = dict(re.findall(r"<<<[0-9a-f]{16} (.+)\n((?:.|\n)*?)\n[0-9a-f]{16}>>>", sent.user))
    numbered = {
        name: body.splitlines() for name, body in sections.items() if body.startswith("1: ") or name[-1:] == "2"
    }
    items = {name: [json.loads(line.partition(": ")[2]) for line in body] for name, body in numbered.items()}
    if "text" in sections:
        return {"texts": [f"{one.strip()}." for one in sections["text"].split(".") if one.strip()]}
    if "claims" in items:
        held = " ".join(items["source"])
        return {"verdicts": [{"number": at, "verdict": one in held} for at, one in enumerate(items["claims"], start=1)]}
    chunks = [items[f"chunk {number}"] for number in range(1, 3)]
    useful = [any(one in sections["reference"] for one in chunk) for chunk in chunks]
    return {"chunks": [{"number": at, "verdict": one} for at, one in enumerate(useful, start=1)], "sentences": [1]}


def settings_of(server: ChatServer, **endpoint: Any) -> dict[str, Any]:
    own = {"url": server.url, "model": "m", "api_key": KEY, "concurrency": 32, "retry_base_s": 0.01, **endpoint}
    return {"evaluators": {"judge": {"endpoints": {"local": own}}}}


def metrics_of(result: Result, id: str, key: str) -> set[float]:
    return {score.metrics[key] for score in result.scores(id)}


def test_traces_are_judged_and_calls_are_shared_and_made_at_the_same_time() -> None:
    with chat_server(by_rule(simple_judge, 0.1)) as server:
        result = evaluate(RECORDS, IDS, settings=settings_of(server))
        sent, most = len(server.sent), server.most_in_flight
        assert all(one.headers["Authorization"] == f"Bearer {KEY}" for one in server.sent)
    assert result.unavailable == {}
    assert [metrics_of(result, id, id) for id in IDS] == [{0.5}, {0.5}, {1.0}, {1.0}]
    assert sent == 30 + 30 + 30 + 1 + 1, "statements, support by contexts and by reference; recall and chunks are alike"
    assert most > 16


def test_a_broken_endpoint_fails_the_judged_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with chat_server(error(401, "invalid_api_key")) as server:
        result = evaluate(RECORDS[:3], ["faithfulness", "operations"], settings=settings_of(server))
    assert "status 401 (invalid_api_key)" in caplog.text
    assert KEY not in caplog.text
    assert "opens at nine" not in caplog.text
    assert {score.status for score in result.scores("faithfulness")} == {"failed"}
    assert {score.reason for score in result.scores("faithfulness")} == {"judge_rejected"}
    assert {score.status for score in result.scores("operations")} == {"scored"}


def test_without_an_endpoint_the_reason_says_what_to_set() -> None:
    with pytest.raises(
        ConfigError, match=r"faithfulness.*no judge endpoint is set: add a table \[evaluators\.judge\.endpoints"
    ):
        evaluate(RECORDS, ["faithfulness"])
    with pytest.raises(ConfigError, match="no evaluator can run"):
        evaluate(RECORDS, lanes="judge")


@pytest.mark.parametrize("status", [0, 401])
def test_evaluate_prints_what_its_judges_used(tmp_path: Path, status: int) -> None:
    file = tmp_path / "traces.jsonl"
    file.write_text("".join(f"{json.dumps(record)}\n" for record in RECORDS[:2]))
    with chat_server(error(status) if status else by_rule(simple_judge)) as server:
        endpoint = {"URL": server.url, "MODEL": "m", "OUTPUT_USD_PER_MILLION": "1000"}
        env = {f"RAGTIDE_EVALUATORS__JUDGE__ENDPOINTS__LOCAL__{name}": value for name, value in endpoint.items()}
        ran = CliRunner().invoke(main, ["evaluate", str(file), "--evaluators", "faithfulness"], env=env)
    assert ran.exit_code == 0, ran.output
    assert "judge local: " not in ran.stdout
    calls = "0 calls, 0 replies from the cache, 2 failures (judge_rejected 2)" if status else "4 calls, 0 replies"
    assert f"judge local: {calls}" in ran.stderr
    assert status or "200 output tokens, 0.2000 USD" in ran.stderr


def test_no_call_is_sent_about_traces_beyond_a_budget() -> None:
    """Neither while conversations are held nor while their traces are scored. `baker` asks the same and has money."""
    records = [*RECORDS[:4], RECORDS[0] | {"trace_id": "other", "app": "baker"}]
    with chat_server(by_rule(simple_judge)) as server:
        settings = settings_of(server, concurrency=1, input_usd_per_million=1000.0, output_usd_per_million=0.0)
        settings["evaluators"]["judge"]["limit_by_app"] = {"shop": {"usd_per_day": 3.0}}
        result = evaluate(records, ["faithfulness"], settings=settings)
        assert len(server.sent) <= 3 + 2, "a dollar a call, two calls a trace"
    statuses = {score.trace_id: (score.status, score.reason) for score in result.scores()}
    assert statuses.pop("other") == ("scored", "")
    assert list(statuses.values()).count(("sampled_out", "over_budget")) >= 2


def test_a_slice_of_the_lane_judge_is_done_before_live_fails() -> None:
    endpoint = {"url": "http://judge/v1", "model": "m"}
    judge = {"judge": {"endpoints": {"local": endpoint}}}

    def limits(lane: Lane, **sections: Any) -> tuple[int, float]:
        found = limits_of(Settings.model_validate({"evaluators": judge, **sections}), lane)
        return found.slice_records, found.live_after_s

    records, live_after_s = limits("judge")
    assert records * 15 * 2 / 16 < live_after_s / 4, "15 calls a trace, 2 s each, 16 at the same time"
    assert live_after_s == 300 + 300, "one trace may take trace_timeout_s"
    assert limits("model") == (500, 300)
    assert limits("judge", sampling={"lanes": {"judge": 0.1}})[0] == 320
    assert limits("judge", sampling={"lanes": {"judge": 0.1}, "evaluators": {"faithfulness": 0.5}})[0] == 64
    assert limits("judge", sampling={"lanes": {"judge": 0}})[0] == 500
