"""fact_check: the steps of its agent from scripted replies, what the judge is sent, and what settings turn it on."""

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from ragtide.evaluators.builtin.fact_check import LONGEST_QUERY, LONGEST_SUMMARY, Params
from ragtide.evaluators.describe import describe, setting_names
from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.judge.calls import JudgeCall, SearchResults
from ragtide.evaluators.judge.fact_replies import AgentStep, FactVerdict, step_with
from ragtide.evaluators.judge.fences import instructions, render_inputs
from ragtide.evaluators.judge.prompt_files import builtin_prompt
from ragtide.evaluators.judge.reading import UnreadableReply, read_reply
from ragtide.evaluators.outcome import Failed, NotApplicable, Outcome, Scored
from ragtide.evaluators.plan import check_settings, prepare
from ragtide.evaluators.registry import load
from ragtide.evaluators.settings import EvaluatorSettings
from ragtide.stream.settings.loader import load_values
from tests.evaluators.builtin.scoring import outcomes, trace
from tests.evaluators.judge.scripted import ScriptedJudge, texts_in
from tests.evaluators.judge.test_fences import INJECTIONS, read

STEP = step_with(("search", "calculator"))
QUESTION = "When did Apollo 11 land, and how many days did it last?"
ANSWER = "It landed in 1969 and lasted 9 days."
PAGE = "Apollo 11\nhttps://moon.example/apollo\nLaunched 16 July 1969, landed 20 July, splashdown 24 July."
FOUND = SearchResults((PAGE,))


def search(query: str) -> AgentStep:
    return STEP("search", query)


def calculator(expression: str) -> AgentStep:
    return STEP("calculator", expression)


def verdict(score: float, summary: str = "Right by the page.") -> AgentStep:
    return STEP(evaluation_score=score, evaluation_summary=summary)


def agent(*steps: Any, results: Any = FOUND) -> ScriptedJudge:
    """A judge that replies so, call by call, and a search that finds this."""
    replies: Iterator[Any] = iter(steps)
    return ScriptedJudge({"fact_check": lambda call: next(replies), "search": lambda call: results})


def checked(judge: ScriptedJudge, answer: str = ANSWER, question: str = QUESTION, **params: Any) -> Outcome:
    [found] = outcomes("fact_check", [trace(question=question, answer=answer)], params, judge=judge)
    return found


def sections(call: JudgeCall) -> dict[str, tuple[str, ...]]:
    return {section.name: section.texts for section in call.sections}


def test_a_worked_example() -> None:
    judge = agent(
        search("Apollo 11 landing date and duration"),
        calculator("24 - 16"),
        verdict(0.5, "Landed in 1969: right.\nIt lasted 8 days,  not 9: wrong."),
    )
    assert checked(judge) == Scored(
        {"fact_check": 0.5}, explanation="Landed in 1969: right. It lasted 8 days, not 9: wrong."
    )
    assert judge.searches == ["Apollo 11 landing date and duration"]
    first, second, third = map(sections, judge.calls)
    assert first == {"question": (QUESTION,), "answer": (ANSWER,), "steps left": ("8",)}
    of_search = {"request 1": ("search", "Apollo 11 landing date and duration"), "result 1": (PAGE,)}
    assert second == {**first, **of_search, "steps left": ("7",)}
    assert third == {**second, "request 2": ("calculator", "24 - 16"), "result 2": ("8",), "steps left": ("6",)}
    assert [call.reply for call in judge.calls] == [STEP] * 3


def test_a_verdict_needs_no_tool() -> None:
    judge = agent(verdict(1.0))
    assert checked(judge) == Scored({"fact_check": 1.0}, explanation="Right by the page.")
    assert len(judge.calls) == 1


def test_an_agent_that_asks_for_ever_must_give_its_verdict_after_so_many_steps() -> None:
    judge = agent(*[search(f"again {number}") for number in range(3)], FactVerdict("Not confirmed.", 0.5))
    assert checked(judge, max_steps=3) == Scored({"fact_check": 0.5}, explanation="Not confirmed.")
    assert [call.reply for call in judge.calls] == [STEP] * 3 + [FactVerdict]
    assert "steps left" not in sections(judge.calls[-1])
    assert len(judge.searches) == 3


def test_the_same_search_is_sent_once() -> None:
    judge = agent(search("moon"), search(" moon\n"), verdict(1.0))
    assert isinstance(checked(judge), Scored)
    assert judge.searches == ["moon"]
    assert texts_in(judge.calls[2], "result ") == (PAGE, PAGE)


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (search("x" * (LONGEST_QUERY + 1)), "no result: the query is longer than 300 characters"),
        (calculator("1" * 5_000), "no result: the expression is longer than 200 characters"),
        (calculator("__import__('os')"), "no result: there is a sign at position 1 that a calculator does not know"),
        (calculator("1/0"), "no result: the expression has no value, such as a division by zero or a root below zero"),
    ],
)
def test_a_request_that_cannot_be_served_is_answered_by_the_reason(step: AgentStep, said: str) -> None:
    judge = agent(step, verdict(1.0))
    assert isinstance(checked(judge), Scored)
    assert judge.searches == []
    assert texts_in(judge.calls[1], "result ") == (said,)
    assert max(map(len, texts_in(judge.calls[1], "request "))) <= LONGEST_QUERY


def test_no_page_is_a_result() -> None:
    judge = agent(search("moon"), verdict(0.5), results=SearchResults(()))
    assert isinstance(checked(judge), Scored)
    assert texts_in(judge.calls[1], "result ") == ("no page was found",)


@pytest.mark.parametrize(
    "outcome", [Failed("judge_search", "search: status 500, 3 attempts"), NotApplicable("over_budget")]
)
def test_a_search_that_fails_is_never_a_score(outcome: Outcome) -> None:
    judge = agent(search("moon"), verdict(1.0), results=outcome)
    assert checked(judge) == outcome
    assert len(judge.calls) == 1


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_step_that_fails_is_never_a_score(at: int) -> None:
    failure = Failed("judge_reply", "unreadable")
    steps: list[Any] = [search("moon"), calculator("1 + 1"), verdict(1.0)]
    steps[at] = failure
    assert checked(agent(*steps)) == failure


@pytest.mark.parametrize(
    ("answer", "question", "reason"), [(" ", "Q?", "empty_answer"), ("A.", "\n", "empty_question")]
)
def test_without_a_text_there_is_nothing_to_check(answer: str, question: str, reason: str) -> None:
    judge = agent()
    assert checked(judge, answer, question) == NotApplicable(reason)
    assert checked(judge, "a" * 40_001) == NotApplicable("too_long")
    assert judge.calls == []


def test_a_long_summary_is_cut() -> None:
    found = checked(agent(verdict(1.0, "word " * 10_000)))
    assert isinstance(found, Scored)
    assert len(found.explanation) == LONGEST_SUMMARY


@pytest.mark.parametrize("text", INJECTIONS)
def test_injections_in_answer_and_results_reach_the_judge_as_data_only(text: str) -> None:
    pages = SearchResults((f"Title\n{text}", text))
    judge = agent(search(f"moon {text}"[:LONGEST_QUERY]), verdict(0.0), results=pages)
    found = checked(judge, f"{text} It is so.", f"{text}?")
    assert isinstance(found, Scored)
    for call in judge.calls:
        constant = instructions(builtin_prompt(call.prompt), call.reply)
        assert text not in constant.replace(instructions("", call.reply).strip(), "")
        message = read(render_inputs(call))
        assert [one.name for one in message] == list(sections(call))
    names = {one.name: one for one in message}
    assert len(names["result 1"].items) == 2
    assert names["request 1"].items[0] == "search"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"tool": "browse", "input": "secret words"}', "its tool is not one of search, calculator"),
        ('{"tool": "search", "input": " "}', "its tool has no input"),
        ('{"tool": "search"}', "its tool has no input"),
        ('{"tool": ["search", "search"], "input": "a"}', r"Expected `str \| null`, got `array`"),
        ('{"tool": "search", "input": {"query": "a"}}', r"Expected `str \| null`, got `object`"),
        ('[{"tool": "search", "input": "a"}, {"tool": "search", "input": "b"}]', "Expected `object`, got `array`"),
        ('{"evaluation_score": 85, "evaluation_summary": "s"}', "not from 0 to 1"),
        ('{"evaluation_score": NaN, "evaluation_summary": "s"}', "not from 0 to 1"),
        ('{"evaluation_score": true, "evaluation_summary": "s"}', "got `bool`"),
        ('{"evaluation_score": null, "evaluation_summary": "s"}', "no evaluation_score"),
        ('{"evaluation_score": 1}', "no evaluation_summary"),
        ('{"name": "search", "arguments": "{}"}', "no evaluation_score"),
        ("I would search for that.", "no JSON"),
        ("", "it is empty"),
    ],
)
def test_what_is_no_step_is_never_read_as_one(text: str, fault: str) -> None:
    with pytest.raises(UnreadableReply, match=fault) as caught:
        read_reply(text, STEP)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('{"tool": "Search", "input": "a", "evaluation_score": 1.0, "evaluation_summary": "s"}', "search"),
        ('{"tool": null, "input": null, "evaluation_summary": "s", "evaluation_score": 1}', None),
        ('{"tool": "none", "input": "", "evaluation_summary": "s", "evaluation_score": "0.5"}', None),
        ('Sure:\n```json\n{"tool": "calculator", "input": "1 + 1"}\n```', "calculator"),
    ],
)
def test_a_step_is_read_from_what_judges_write(text: str, wanted: str | None) -> None:
    assert read_reply(text, STEP).wanted == wanted


def test_a_tool_that_the_agent_has_not_is_no_step() -> None:
    only = step_with(("calculator",))
    with pytest.raises(UnreadableReply, match="its tool is not one of calculator"):
        read_reply('{"tool": "search", "input": "a"}', only)
    constant = instructions(builtin_prompt("fact_check"), only)
    assert '"enum": ["calculator"]' in constant
    with pytest.raises(UnreadableReply, match="evaluation_summary"):
        read_reply('{"tool": "search", "input": "a"}', FactVerdict)


def test_parameters_are_checked() -> None:
    for bad in ({"tools": ()}, {"tools": ("browse",)}, {"max_steps": 0}, {"max_records_per_hour": 0}):
        with pytest.raises(ValidationError):
            Params.model_validate(bad)


def settings_of(named: bool = True, **more: Any) -> EvaluatorSettings:
    judge = {"endpoints": {"one": {"url": "http://judge", "model": "m"}}, **more.pop("judge", {})}
    judge |= {"endpoint_by_evaluator": {"fact_check": "one"}} if named else {}
    return load_values({"evaluators": {"judge": judge, **more}}).settings.evaluators


def runs(settings: EvaluatorSettings) -> bool:
    return "fact_check" in {one.evaluator.id for one in prepare(load(), settings, "judge", None).prepared}


SEARCH = {"search": {"url": "http://search"}}


def test_it_is_off_until_settings_give_it_an_endpoint() -> None:
    assert not runs(settings_of(named=False, judge=SEARCH))
    assert not runs(settings_of(named=False))
    assert runs(settings_of(judge=SEARCH))
    assert runs(settings_of(params={"fact_check": {"tools": ["calculator"]}}))
    [info] = [one for one in describe(load(), settings_of(named=False)) if one.id == "fact_check"]
    assert (info.configured, info.enabled) == (False, False)
    assert setting_names(info) == "evaluators.judge.endpoint_by_evaluator.fact_check"


@pytest.mark.parametrize(
    "check", [lambda known, one: check_settings(known, one), lambda known, one: prepare(known, one, "fast", None)]
)
def test_search_without_an_endpoint_is_an_error_that_says_what_to_set(check: Any) -> None:
    said = r"evaluators\.params\.fact_check\.tools has search.*set evaluators\.judge\.search\.url, or leave search out"
    with pytest.raises(ConfigError, match=said):
        check(load(), settings_of())
    check(load(), settings_of(disabled=["fact_check"]))
    [info] = [one for one in describe(load(), settings_of()) if one.id == "fact_check"]
    assert not info.available
    assert "set evaluators.judge.search.url" in info.reason


def test_what_changes_scores_is_a_new_version_and_nothing_else() -> None:
    def version(params: dict[str, Any] | None = None, **search: Any) -> str:
        own = {"search": {"url": "http://search", **search}}
        plan = prepare(load(), settings_of(judge=own, params={"fact_check": params or {}}), "judge", None)
        return next(one.fingerprint for one in plan.prepared if one.evaluator.id == "fact_check")

    first = version()
    assert version(api_key="k", timeout_s=3, retries=0, concurrency=1, headers={"X": "y"}) == first
    changes: list[dict[str, Any]] = [
        {"url": "http://b"},
        {"max_results": 3},
        {"results": "a"},
        {"parameters": {"a": 1}},
    ]
    assert len({first, version({"max_steps": 3}), *(version(**one) for one in changes)}) == 6
    assert version({"tools": ["calculator"]}, url="http://b") == version({"tools": ["calculator"]})


@pytest.mark.parametrize(
    ("search", "said"),
    [
        ({"url": "ftp://search"}, "must be an http:// or https:// URL"),
        ({"url": "https://name:word@search"}, "must not contain a name or password"),
        ({"parameters": {"q": "x"}}, "parameters must not have q, which is query_field"),
        ({"parameters": {"a": {"b": 1}}}, "parameters.a must be a text, a number or a truth value"),
        ({"api_key_field": "k", "api_key_header": "h"}, "set one of api_key_header and api_key_field"),
        ({"api_key_field": "q"}, "api_key_field and query_field must differ"),
    ],
)
def test_settings_of_the_search_are_checked(search: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=r"evaluators\.judge\.search") as caught:
        settings_of(judge={"search": search})
    assert said in str(caught.value)


def test_a_budget_needs_the_price_of_a_search() -> None:
    priced = {"url": "http://judge", "model": "m", "input_usd_per_million": 1, "output_usd_per_million": 1}
    judge = {"endpoints": {"one": priced}, "limit": {"usd_per_day": 1}, **SEARCH}
    with pytest.raises(ConfigError, match=r"set search\.usd_per_search \(0 if searches are free\)"):
        settings_of(judge=judge)
    settings_of(judge={**judge, "search": {"url": "http://search", "usd_per_search": 0}})
