"""What a search sends, what it reads, and how it fails: a kind and a reason, never a text, a key or a score."""

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.judge.calls import OVER_BUDGET, Answer, Asker, SearchCall, SearchResults, TraceCalls
from ragtide.evaluators.judge.settings import JudgeSettings
from ragtide.evaluators.outcome import Failed
from ragtide.stream.judge import JudgeClient, UsageKey, usage_by_endpoint, usage_lines
from ragtide.stream.judge_metrics import count_judge
from ragtide.stream.telemetry.registry import Telemetry
from tests.stream.judge.asking import LIMIT_S, STATEMENTS, ask
from tests.stream.judge.chat_server import chat_server, reply
from tests.stream.judge.search_server import (
    SEARCH_KEY,
    Behaviour,
    SearchServer,
    answer,
    cut_connection,
    found,
    hang,
    huge,
    page,
    raw,
    search_server,
    slow_stream,
)

QUERY = "Ms Roe & iron+lung? #1 100% /../ \u017e"
PAGE = "A page\nhttps://page.example/a\nIt opens at nine."
FAST = {"timeout_s": 0.4, "retries": 1, "retry_base_s": 0.01}
USE = UsageKey("local", "e", "shop")


@contextmanager
def searching(server: SearchServer, more: Mapping[str, Any] | None = None, **search: Any) -> Iterator[JudgeClient]:
    """A client with a search endpoint; `search` are its settings, `more` the other settings of judges."""
    own = {"url": server.url, "api_key": SEARCH_KEY, **FAST, **search}
    endpoint = {"url": "http://127.0.0.1:9/v1", "model": "m", "trace_timeout_s": 5}
    values = {"endpoints": {"local": endpoint}, **(more or {}), "search": own}
    client = JudgeClient(JudgeSettings.model_validate(values), seed=1)
    try:
        yield client
    finally:
        client.close()


def find(client: JudgeClient, query: str = QUERY, asker: Asker | None = None) -> Answer:
    done: SimpleQueue[Answer] = SimpleQueue()
    client.search(SearchCall(query), asker or Asker("e", TraceCalls("shop")), done.put)
    return done.get(timeout=LIMIT_S)


def failure(result: Answer) -> str:
    """The reason of a failure, without a secret or a text."""
    assert isinstance(result, Failed), result
    assert result.kind == "judge_search"
    for word in (SEARCH_KEY, "Roe", "lung", "opens"):
        assert word not in result.detail
    return result.detail


def test_by_default_a_search_is_a_get_as_searxng_takes_it() -> None:
    with (
        search_server(found("It opens at\n  nine.")) as server,
        searching(server, parameters={"format": "json"}) as one,
    ):
        assert find(one) == SearchResults((PAGE,))
        [sent] = server.sent
    assert (sent.method, sent.body) == ("GET", None)
    assert sent.query == {"q": QUERY, "format": "json"}
    assert sent.headers["Authorization"] == f"Bearer {SEARCH_KEY}"


@pytest.mark.parametrize(
    "query",
    [QUERY, "a&format=csv&key=1", "x#fragment", "http://169.254.169.254/?a=b", "\r\nHost: evil", "%2e%2e", "é+ "],
)
def test_a_query_stays_the_value_of_its_parameter(query: str) -> None:
    with search_server(found("a")) as server, searching(server, url=f"{server.url}?format=json&lang=en") as one:
        assert isinstance(find(one, query), SearchResults)
        [sent] = server.sent
    assert sent.query == {"format": "json", "lang": "en", "q": query}
    assert sent.path.startswith("/search?format=json&lang=en&q=")


def test_tavily_brave_and_serper_need_settings_alone() -> None:
    with search_server(found("It opens at nine.")) as server:
        tavily: dict[str, Any] = {
            "method": "POST",
            "query_field": "query",
            "parameters": {"max_results": 5, "topic": "general"},
        }
        with searching(server, **tavily) as one:
            assert find(one) == SearchResults((PAGE,))
        [sent] = server.sent
        assert sent.body == {"query": QUERY, "max_results": 5, "topic": "general"}
        assert (sent.method, sent.path) == ("POST", "/search")
        assert sent.headers["Authorization"] == f"Bearer {SEARCH_KEY}"
    own = {"title": "A page", "url": "https://page.example/a", "description": "It opens at nine."}
    with search_server(answer({"web": {"results": [own]}})) as server:
        brave: dict[str, Any] = {
            "api_key_header": "X-Subscription-Token",
            "results": "web.results",
            "text_field": "description",
        }
        with searching(server, **brave) as one:
            assert find(one) == SearchResults((PAGE,))
        assert server.sent[0].headers["X-Subscription-Token"] == SEARCH_KEY
        assert "Authorization" not in server.sent[0].headers
    own = {"title": "A page", "link": "https://page.example/a", "snippet": "It opens at nine."}
    with search_server(answer({"organic": [own]})) as server:
        serper: dict[str, Any] = {"method": "POST", "api_key_header": "X-API-KEY", "results": "organic"}
        with searching(server, **serper, link_field="link", text_field="snippet") as one:
            assert find(one) == SearchResults((PAGE,))
    with search_server(answer([own])) as server:
        plain: dict[str, Any] = {"results": "", "link_field": "link", "text_field": "snippet", "title_field": ""}
        with searching(server, **plain, api_key_field="key", parameters={"safe": True, "n": 3}) as one:
            assert find(one) == SearchResults((PAGE.partition("\n")[2],))
        assert server.sent[0].query == {"q": QUERY, "safe": "true", "n": "3", "key": SEARCH_KEY}
        assert "Authorization" not in server.sent[0].headers


def test_results_are_cut_in_number_and_length() -> None:
    pages = [page("x" * 100_000), page("", "no text"), page("b", url="https://" + "u" * 400), *[page("c")] * 60]
    odd = ["text", None, {"content": 7}, {"content": ["a"]}]
    behaviour = answer({"results": [*pages[:3], *odd, *pages[3:]]})
    with search_server(behaviour) as server, searching(server, max_results=8, max_characters=200) as one:
        result = find(one)
    assert isinstance(result, SearchResults)
    assert [len(text) for text in result.texts] == [200, len("A page\nb"), len("A page\nhttps://page.example/a\nc")]


def test_no_results_are_results() -> None:
    with search_server(answer({"results": []})) as server, searching(server) as one:
        assert find(one) == SearchResults(())
    behaviours = [answer({"type": "search"}), answer({"web": None})]
    brave: dict[str, Any] = {"results": "web.results", "missing_is_empty": True}
    with search_server(answer({"web": {"results": "odd"}}), *behaviours) as server, searching(server, **brave) as one:
        assert [find(one, query) for query in "ab"] == [SearchResults(())] * 2
        assert "no list at 'web.results'" in failure(find(one))


@pytest.mark.parametrize(
    ("behaviour", "why", "requests"),
    [
        (answer({"error": QUERY}, 401), "status 401", 1),
        (answer({"error": QUERY}, 404), "status 404", 1),
        (answer({}, 302, Location="http://169.254.169.254/latest"), "status 302", 1),
        (answer({}, 500), "status 500, 2 attempts", 2),
        (answer({}, 429), "status 429, 2 attempts", 2),
        (answer({}, 429, Retry_After="3600"), "status 429", 1),
        (hang, "no answer within 0.4 s, 2 attempts", 2),
        (slow_stream, "no answer within 0.4 s, 2 attempts", 2),
        (cut_connection, "no connection (ClientPayloadError), 2 attempts", 2),
        (huge, "the answer is too large", 1),
        (raw(b'{"results": ['), "the answer is no JSON", 1),
        (raw(b"\xff\xfe"), "the answer is no JSON", 1),
        (raw(b"[" * 200_000), "the answer is no JSON", 1),
        (raw(b""), "the answer is no JSON", 1),
        (raw(b"<html>Are you a robot?</html>"), "the answer is no JSON", 1),
        (answer({"web": []}), "the answer has no list at 'results': check evaluators.judge.search.results", 1),
        (answer(None), "the answer has no list at 'results': check evaluators.judge.search.results", 1),
        (answer({"results": [{"snippet": "a"}]}), "no result has a text in 'content'", 1),
    ],
)
def test_a_search_that_fails_says_why(
    behaviour: Behaviour, why: str, requests: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with search_server(behaviour) as server, searching(server) as one:
        start = time.monotonic()
        assert failure(find(one)).startswith(f"search: {why}")
        assert time.monotonic() - start < 3
        assert len(server.sent) == requests, "a redirect is not followed"
        assert one.usage()[USE].failures == {"judge_search": 1}
    assert SEARCH_KEY not in caplog.text
    assert "Roe" not in caplog.text


def test_a_search_that_passes_later_is_tried_again() -> None:
    script = (answer({}, 503), answer({}, 429, Retry_After="0"), hang)
    with search_server(found("It opens at nine."), *script) as server, searching(server, retries=3) as one:
        assert find(one) == SearchResults((PAGE,))
        assert len(server.sent) == 4


def test_no_connection_says_so() -> None:
    with search_server(found("a")) as server:
        url = server.url
    with searching(SearchServer(hang, [], url=url)) as one:
        assert failure(find(one)) == "search: no connection (ClientConnectorError), 2 attempts"


def test_the_time_of_a_trace_holds_for_searches_too() -> None:
    with search_server(hang) as server, searching(server, timeout_s=60, retries=9) as one:
        start = time.monotonic()
        result = find(one)
        assert 4 < time.monotonic() - start < 8, "trace_timeout_s is 5"
    assert isinstance(result, Failed)
    assert result.kind in ("judge_search", "judge_timeout")


def test_results_are_cached_beside_replies(tmp_path: Path) -> None:
    cache = {"cache": {"path": str(tmp_path / "replies.db")}}
    with search_server(found("It opens at nine.")) as server:
        for _ in range(2):
            with searching(server, cache) as one:
                assert find(one) == find(one) == SearchResults((PAGE,))
        assert len(server.sent) == 1
        with searching(server, cache, max_results=3) as one:
            find(one)
            find(one, "another query")
        assert len(server.sent) == 3, "other settings or another query, another search"
        assert one.usage()[USE].searches == 2
    failing = answer({}, 500)
    with search_server(found("b"), failing, failing) as server, searching(server, cache) as one:
        assert failure(find(one, "third"))
        assert isinstance(find(one, "third"), SearchResults), "a failure is not kept"


def limited(usd_per_day: float) -> dict[str, Any]:
    prices = {"input_usd_per_million": 0, "output_usd_per_million": 0}
    endpoint = {"url": "http://127.0.0.1:9/v1", "model": "m", "trace_timeout_s": 5, **prices}
    return {"endpoints": {"local": endpoint}, "limit": {"usd_per_day": usd_per_day}}


def test_searches_are_paid_from_the_budget_and_none_is_sent_beyond_it() -> None:
    with search_server(found("a")) as server, searching(server, limited(0.05), usd_per_search=0.02) as one:
        results = [find(one, f"query {number}") for number in range(6)]
        assert len(server.sent) == 3
        assert one.usage()[USE].cost_usd == pytest.approx(0.06)
        assert one.usage()[USE].searches == 3
    assert results[3:] == [OVER_BUDGET] * 3


def test_a_search_that_is_refused_costs_nothing_and_one_that_is_lost_does() -> None:
    with search_server(answer({}, 500)) as server, searching(server, limited(0.02), usd_per_search=0.02) as one:
        assert [failure(find(one, str(number)))[:18] for number in range(3)] == ["search: status 500"] * 3
    own: dict[str, Any] = {"usd_per_search": 0.02, "retries": 0, "timeout_s": 0.1}
    with search_server(hang) as server, searching(server, limited(0.02), **own) as one:
        assert failure(find(one, "a"))
        assert find(one, "b") == OVER_BUDGET


def test_searches_are_counted() -> None:
    telemetry = Telemetry()
    with search_server(found("a")) as server, searching(server) as one:
        one.report_to(lambda key, used: count_judge(telemetry, key, used))
        find(one)
        [line] = usage_lines(usage_by_endpoint(one.usage()))
    assert line.startswith("judge local: 0 calls, 1 searches, 0 replies from the cache")
    assert telemetry.registry.get_sample_value("ragtide_judge_searches_total", USE._asdict()) == 1


def test_certificates_that_cannot_be_read_are_an_error_of_settings(tmp_path: Path) -> None:
    settings = {"search": {"url": "https://search", "ca_file": tmp_path / "none.pem"}}
    with pytest.raises(ConfigError, match=r"judge\.search\.ca_file: .* cannot be used: FileNotFoundError"):
        JudgeClient(JudgeSettings.model_validate(settings))


def test_the_key_of_the_search_is_not_sent_to_the_judge_and_the_other_way_round() -> None:
    with chat_server(reply({"texts": ["a"]})) as judge, search_server(found("a")) as server:
        endpoint = {"url": judge.url, "model": "m", "api_key": "judge-key"}
        with searching(server, {"endpoints": {"local": endpoint}}) as one:
            ask(one, STATEMENTS)
            find(one)
        assert SEARCH_KEY not in repr(judge.sent)
        assert "judge-key" not in repr(server.sent)


def test_a_client_that_is_closed_ends_its_searches() -> None:
    with search_server(hang) as server, searching(server, timeout_s=30) as one:
        done: SimpleQueue[Answer] = SimpleQueue()
        one.search(SearchCall("a"), Asker("e", TraceCalls("shop")), done.put)
        time.sleep(0.2)
        one.close()
        assert done.get(timeout=5) == Failed("judge_unavailable", "the judge was shut down")
