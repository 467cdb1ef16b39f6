"""What the client sends, and the replies that it reads."""

import logging
import time
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.judge.calls import Asker, Section, TraceCalls
from ragtide.evaluators.judge.reading import redact
from ragtide.evaluators.judge.replies import Texts
from ragtide.evaluators.outcome import Failed
from ragtide.stream.judge import Usage, UsageKey, usage_by_endpoint, usage_lines
from ragtide.stream.judge_metrics import count_judge
from ragtide.stream.telemetry.registry import Telemetry
from tests.stream.judge.asking import STATEMENTS, ask, ask_all, judge, kind, verdicts
from tests.stream.judge.chat_server import (
    KEY,
    Behaviour,
    Sent,
    by_rule,
    chat_server,
    cut_connection,
    error,
    reply,
    say,
)

GOOD = reply({"texts": ["It opens at nine."]})
SAID = Texts(("It opens at nine.",))
USE = UsageKey("local", "e", "shop")
PRIVATE = "Ms Jane Roe's iron lung"


def test_a_right_reply_is_read_and_the_request_is_as_the_api_wants_it() -> None:
    with chat_server(GOOD) as server, judge(f"{server.url}?api-version=7", temperature=0.2) as client:
        assert ask(client) == SAID
        [sent] = server.sent
    assert sent.path == "/v1/chat/completions?api-version=7"
    assert sent.headers["Authorization"] == f"Bearer {KEY}"
    assert [message["role"] for message in sent.body["messages"]] == ["system", "user"]
    assert (sent.body["model"], sent.body["temperature"], sent.body["max_tokens"]) == ("m-1", 0.2, 4096)
    schema = sent.body["response_format"]["json_schema"]
    assert schema["strict"] is True
    assert schema["schema"]["additionalProperties"] is False
    assert schema["schema"]["required"] == ["texts"]


def test_settings_of_the_request_reach_the_endpoint() -> None:
    more: dict[str, Any] = {
        "temperature": None,
        "max_tokens_field": "max_completion_tokens",
        "max_tokens": 7,
        "api_key_header": "api-key",
    }
    with (
        chat_server(GOOD) as server,
        judge(server.url, **more, headers={"X-Team": "rag"}, parameters={"reasoning_effort": "low"}) as client,
    ):
        assert ask(client) == SAID
        [sent] = server.sent
    assert sent.body["reasoning_effort"] == "low"
    assert sent.body["max_completion_tokens"] == 7
    assert not {"temperature", "max_tokens"} & sent.body.keys()
    assert (sent.headers["api-key"], sent.headers["X-Team"]) == (KEY, "rag")
    assert "Authorization" not in sent.headers


@pytest.mark.parametrize(
    "text",
    [
        '{"texts": ["It opens at nine."]}',
        'Sure! Here it is:\n```json\n{"texts": ["It opens at nine."]}\n```\nAnything else?',
        'The text says {"a": "b"} and so:\n{"texts": ["It opens at nine."]} I hope this helps {smile}.',
        '["It opens at nine."]',
        '{"result": {"texts": ["It opens at nine."]}}',
        '<think>{"texts": ["wrong"]}</think>{"texts": ["It opens at nine."], "confidence": 1}',
    ],
)
def test_prose_fences_and_wrappers_round_the_json_are_taken_off(text: str) -> None:
    with chat_server(say(text)) as server, judge(server.url) as client:
        assert ask(client) == SAID
        assert len(server.sent) == 1, "nothing to repair"


def test_wrong_types_are_read_where_they_are_plain() -> None:
    said = {
        "verdicts": [{"number": "1", "verdict": "Yes."}, {"number": 2, "verdict": "FALSE"}, {"number": 3, "verdict": 1}]
    }
    with chat_server(reply(said)) as server, judge(server.url) as client:
        result = ask(client, verdicts(3))
        assert getattr(result, "in_order", result) == [True, False, True]


@pytest.mark.parametrize(
    "bad",
    [
        {"verdicts": [{"number": 1, "verdict": True}]},
        {"verdicts": [{"number": 1, "verdict": True}, {"number": 1, "verdict": True}]},
        {"verdicts": [{"number": 1, "verdict": "perhaps"}, {"number": 2, "verdict": True}]},
        {"verdicts": "all true"},
        {},
    ],
)
def test_a_reply_that_does_not_fit_is_repaired_once(bad: object) -> None:
    good = reply({"verdicts": [{"number": 2, "verdict": True}, {"number": 1, "verdict": False}]})
    with chat_server(good, reply(bad)) as server, judge(server.url) as client:
        result = ask(client, verdicts(2))
        assert getattr(result, "in_order", result) == [False, True]
        assert client.usage()[USE].repairs == 1
        second = server.sent[1].body["messages"]
    assert [message["role"] for message in second] == ["system", "user", "assistant", "user"]
    assert second[:2] == server.sent[0].body["messages"]
    assert "could not be read" in second[3]["content"]


def test_a_reply_that_cannot_be_read_fails_with_its_shape_and_without_its_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    text = f'I think {PRIVATE}: {{"texts": ["{PRIVATE}", 7'
    with chat_server(say(text)) as server, judge(server.url) as client:
        result = ask(client)
        assert len(server.sent) == 2, "one repair, no more"
        assert client.usage()[USE].failures == {"judge_reply": 1}
    assert kind(result) == "judge_reply"
    assert isinstance(result, Failed)
    assert '{"texts": ["' in result.detail
    for word in ("Jane", "Roe", "iron", "lung", "think"):
        assert word not in result.detail
        assert word not in caplog.text


def test_a_reply_that_is_cut_is_not_asked_for_again() -> None:
    with chat_server(say('{"texts": ["It', finish="length")) as server, judge(server.url) as client:
        result = ask(client)
        assert len(server.sent) == 1
    assert kind(result) == "judge_reply"
    assert "max_tokens" in str(result)


@pytest.mark.parametrize("refusal", [say(None, refusal="I cannot."), say("", finish="content_filter")])
def test_a_refusal_is_a_failure_of_its_own(refusal: Behaviour) -> None:
    with chat_server(refusal) as server, judge(server.url) as client:
        assert kind(ask(client)) == "judge_refused"
        assert len(server.sent) == 1


def test_a_refusal_in_prose_is_a_reply_that_cannot_be_read() -> None:
    with chat_server(say("I'm sorry, but I cannot help with that.")) as server, judge(server.url) as client:
        assert kind(ask(client)) == "judge_reply"


def test_an_endpoint_without_structured_output_is_found_out_once() -> None:
    with chat_server(GOOD, structured=("json_object", "none")) as server, judge(server.url) as client:
        assert ask_all(client, [STATEMENTS] * 8) == [SAID] * 8
        assert ask(client) == SAID
        modes = [sent.mode for sent in server.sent]
    assert modes == ["json_schema"] + ["json_object"] * 9


def test_a_setting_says_what_structured_output_there_is() -> None:
    with chat_server(GOOD, structured=("none",)) as server, judge(server.url, structured="none") as client:
        assert ask(client) == SAID
        assert [sent.mode for sent in server.sent] == ["none"]


def test_a_request_that_is_rejected_for_itself_is_a_failure_and_finds_out_nothing() -> None:
    with chat_server(GOOD, *[error(400, "context_length_exceeded")] * 3) as server, judge(server.url) as client:
        assert "context_length_exceeded" in str(ask(client))
        assert ask(client) == SAID
        assert server.sent[-1].mode == "json_schema"


def test_calls_in_flight_are_limited_and_earlier_traces_go_first() -> None:
    orders: list[str] = []

    def rule(sent: Sent) -> object:
        orders.append(sent.user.split("text\n")[1][:1])
        return {"texts": ["a"]}

    with chat_server(by_rule(rule, 0.05)) as server, judge(server.url, concurrency=3, timeout_s=5) as client:
        early, late = TraceCalls("shop"), TraceCalls("shop")
        done: list[object] = []
        for at in range(9):
            call = replace(STATEMENTS, sections=(Section("text", f"L{at}"),))
            client.submit(call, Asker("e", late), done.append)
        for at in range(3):
            call = replace(STATEMENTS, sections=(Section("text", f"E{at}"),))
            client.submit(call, Asker("e", early), done.append)
        end = time.monotonic() + 10
        while len(done) < 12 and time.monotonic() < end:
            time.sleep(0.01)
        assert len(done) == 12
        assert server.most_in_flight <= 3
    assert orders[-6:] == ["L"] * 6, "the earlier trace did not wait for the later one"


def test_tokens_and_costs_are_counted_by_evaluator_and_app() -> None:
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "prompt_tokens_details": {"cached_tokens": 400}}
    prices: dict[str, Any] = {
        "input_usd_per_million": 2.0,
        "cached_usd_per_million": 0.5,
        "output_usd_per_million": 8.0,
    }
    with chat_server(reply({"texts": []}, usage=usage)) as server, judge(server.url, **prices) as client:
        for app in ("shop", "shop", "bank"):
            ask(client, asker=Asker("faithfulness", TraceCalls(app)))
        used = client.usage()
    shop = used[UsageKey("local", "faithfulness", "shop")]
    assert (shop.calls, shop.input_tokens, shop.cached_tokens, shop.output_tokens) == (2, 2000, 800, 200)
    assert shop.cost_usd == pytest.approx(2 * (600 * 2.0 + 400 * 0.5 + 100 * 8.0) / 1e6)
    assert used[UsageKey("local", "faithfulness", "bank")].calls == 1


def test_an_endpoint_that_reports_no_tokens_has_a_cost_all_the_same() -> None:
    with (
        chat_server(reply({"texts": []}, usage=None)) as server,
        judge(server.url, input_usd_per_million=1.0) as client,
    ):
        ask(client)
        [used] = client.usage().values()
        size = len(server.sent[0].system) + len(server.sent[0].user)
    assert used.uncounted == 1
    assert size / 4 < used.input_tokens < size
    assert used.cost_usd > 0


def test_no_secret_and_no_text_reaches_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with chat_server(error(500), error(429), cut_connection) as server, judge(server.url, retries=3) as client:
        kind(ask(client))
    assert KEY not in caplog.text
    assert "opens at nine" not in caplog.text


def test_a_worker_counts_what_its_judge_uses() -> None:
    telemetry, labels = Telemetry(), {"endpoint": "local", "evaluator": "e", "app": "shop"}

    def count(name: str, **more: str) -> float | None:
        return telemetry.registry.get_sample_value(f"ragtide_{name}_total", labels | more)

    with chat_server(GOOD, say("no"), say("no")) as server, judge(server.url, output_usd_per_million=1e6) as client:
        client.report_to(partial(count_judge, telemetry))
        kind(ask(client))
        ask(client)
    assert (count("judge_calls"), count("judge_cost_usd")) == (3, 150)
    assert (count("judge_tokens", kind="input"), count("judge_tokens", kind="output")) == (3000, 150)
    assert count("judge_failures", kind="judge_reply") == 1


def test_certificates_that_cannot_be_read_are_an_error_of_settings(tmp_path: Path) -> None:
    with (
        pytest.raises(ConfigError, match=r"judge\.endpoints\.local\.ca_file: .*cannot be used: FileNotFoundError"),
        judge("https://judge/v1", ca_file=tmp_path / "none.pem"),
    ):
        raise AssertionError("never made")


def test_a_bug_is_a_failure_that_names_its_kind_only(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*given: object) -> object:
        raise KeyError("It opens at nine")

    monkeypatch.setattr("ragtide.stream.judge.client.read_reply", broken)
    with chat_server(GOOD) as server, judge(server.url) as client:
        assert ask(client) == Failed("judge_crashed", "KeyError")
    assert "a judge call crashed: KeyError at " in caplog.text
    assert "opens" not in caplog.text


@pytest.mark.parametrize("text", ["नमस्ते दुनिया", "สวัสดีครับ ที่นี่", "🏥 👩🏽‍⚕️", "e\u0301 ﷽", "a_b+49 (30) 123#7"])
def test_no_sign_of_any_script_is_shown_of_a_reply(text: str) -> None:
    shown = redact(f'```json\n{{"texts": ["{text}", true]}}', Texts)
    assert shown.startswith('```json {"texts": ["x')
    assert shown.endswith('", true]}')
    assert set(shown) <= set('x ```json{}[]":, texts true')


def test_usage_is_a_line_for_each_endpoint() -> None:
    failed = Usage(failures=Counter(judge_timeout=2, judge_reply=1))
    used = Usage(calls=1200, repairs=3, from_cache=4, input_tokens=5000, cached_tokens=600, output_tokens=70)
    used.add(Usage(calls=1, cost_usd=0.25, uncounted=1))
    usage = {
        UsageKey("b", "e", "shop"): Usage(calls=2),
        UsageKey("a", "e", "bank"): failed,
        USE._replace(endpoint="a"): used,
    }
    assert usage_lines(usage_by_endpoint(usage)) == [
        "judge a: 1,201 calls (3 to repair a reply), 4 replies from the cache, 3 failures (judge_reply 1, "
        "judge_timeout 2), 5,000 input tokens (600 cached), 70 output tokens "
        "(estimated for 1 of the calls), 0.2500 USD",
        "judge b: 2 calls, 0 replies from the cache, 0 failures, 0 input tokens (0 cached), "
        "0 output tokens, 0.0000 USD",
    ]
