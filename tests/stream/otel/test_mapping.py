"""The rules by which spans become traces, on spans made by hand; docs/opentelemetry.md names them."""

import json
from typing import Any

from msgspec.structs import replace

from ragtide.stream.ingest.otel import LogEvent, map_spans
from ragtide.stream.ingest.otel.spans import SpanEvent
from ragtide.stream.ingest.validation import validate
from tests.stream.otel.scene import (
    ANSWER,
    HOURS,
    LIMITS,
    PRICES,
    QUESTION,
    TRACE,
    fields_of,
    map_one,
    oi,
    span,
)

CHAIN = oi("CHAIN", input__value=QUESTION, output__value=ANSWER)
RETRIEVER = oi(
    "RETRIEVER",
    **{
        "input__value": "museum hours",
        "retrieval__documents__0__document__id": "h1",
        "retrieval__documents__0__document__content": HOURS,
        "retrieval__documents__0__document__score": 0.9,
        "retrieval__documents__0__document__metadata": '{"source": "hours.md", "page": 2}',
        "retrieval__documents__1__document__content": PRICES,
    },
)


def llm(**more: Any) -> dict[str, Any]:
    return oi(
        "LLM",
        **{
            "llm__input_messages__0__message__role": "system",
            "llm__input_messages__0__message__content": f"Answer from: {HOURS}",
            "llm__input_messages__1__message__role": "user",
            "llm__input_messages__1__message__content": QUESTION,
            "llm__output_messages__0__message__role": "assistant",
            "llm__output_messages__0__message__content": ANSWER,
            "llm__token_count__prompt": 40,
            "llm__token_count__completion": 6,
            **more,
        },
    )


def messages(role: str, *parts: dict[str, Any]) -> str:
    return json.dumps([{"role": role, "parts": list(parts)}])


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "content": content}


def test_a_chain_below_a_server_span() -> None:
    server = span(1, until=2, session__id="s1", http__route="/ask")
    mapped = map_one(
        server,
        span(2, 1, 0.1, 1.6, **CHAIN),
        span(3, 2, 0.2, 0.5, **RETRIEVER),
        span(4, 2, 0.6, 1.5, **llm(llm__model_name="m-1", llm__provider="azure.ai.openai")),
    )
    assert fields_of(mapped) == {
        "trace_id": TRACE,
        "span_id": f"{2:016x}",
        "time": "2026-09-21T14:13:21.600Z",
        "app": "museum",
        "session_id": "s1",
        "question": QUESTION,
        "answer": ANSWER,
        "contexts": [
            {
                "rank": 1,
                "id": "h1",
                "text": HOURS,
                "score": 0.9,
                "source": "hours.md",
                "metadata": {"source": "hours.md", "page": 2},
            },
            {"rank": 2, "text": PRICES},
        ],
        "model": {"served": "m-1", "provider": "azure"},
        "tokens": {"input": 40, "output": 6},
        "latency": {"total_s": 1.5, "retrieval_s": 0.3, "generation_s": 0.9},
    }
    assert mapped.origins["question"].attribute == "input.value"
    assert mapped.origins["session_id"].span_id == server.span_id


def test_without_a_chain_the_question_is_the_query_and_siblings_are_one_trace() -> None:
    mapped = map_one(
        span(1, http__route="/ask"),
        span(
            2,
            1,
            0.1,
            0.2,
            gen_ai__operation__name="retrieval",
            gen_ai__retrieval__query__text=QUESTION,
            gen_ai__retrieval__documents='[{"id":"h1","score":null},{"id":"p1","score":0.4}]',
        ),
        span(
            3,
            1,
            0.3,
            0.9,
            gen_ai__operation__name="chat",
            gen_ai__output__messages=messages("assistant", {"type": "reasoning", "content": "hm"}, text(ANSWER)),
        ),
    )
    fields = fields_of(mapped)
    assert (fields["question"], fields["answer"]) == (QUESTION, ANSWER)
    assert fields["contexts"] == [{"rank": 1, "id": "h1"}, {"rank": 2, "id": "p1", "score": 0.4}]
    assert mapped.missing["contexts.text"] == ("no_text", "2 of 2 chunks")
    assert fields["latency"]["total_s"] == 0.8  # from the query to the end of the answer


def test_judges_are_left_out_with_everything_below_them() -> None:
    mapped = map_spans(
        [
            span(1, **CHAIN),
            span(2, 1, **oi("EVALUATOR", output__value="0.7")),
            span(3, 2, **llm(llm__token_count__prompt=999)),
            span(4, 1, 0, 0.5, **llm()),
            span(5, resource={"service.name": "ragtide"}, **oi("CHAIN", input__value="judge")),
            span(6, 1, langfuse__environment="langfuse-llm-as-a-judge", **llm()),
        ]
    )
    [trace] = mapped.traces
    assert mapped.counts["judge_span"] == 4
    assert fields_of(trace)["tokens"] == {"input": 40, "output": 6}


def test_redacted_is_not_recorded() -> None:
    hidden = "__REDACTED__"
    [mapped] = map_spans(
        [
            span(1, **oi("CHAIN", input__value=hidden, output__value=hidden)),
            span(
                2,
                1,
                **oi(
                    "RETRIEVER",
                    retrieval__documents__0__document__id="h1",
                    retrieval__documents__0__document__content=hidden,
                ),
            ),
        ]
    ).traces
    assert "question" not in fields_of(mapped)
    assert mapped.missing["question"].reason == mapped.missing["answer"].reason == "redacted"
    assert fields_of(mapped)["contexts"] == [{"rank": 1, "id": "h1"}]
    assert mapped.missing["contexts.text"].reason == "redacted"
    assert [fault.reason for fault in validate(mapped.encode(), LIMITS).faults] == ["missing_question_and_answer"]


def test_redacted_at_the_root_is_looked_for_further_on() -> None:
    mapped = map_one(span(1, **oi("CHAIN", input__value="__REDACTED__", output__value=ANSWER)), span(2, 1, **llm()))
    assert fields_of(mapped)["question"] == QUESTION


def test_empty_is_recorded_and_ends_the_search() -> None:
    mapped = map_one(span(1, **oi("CHAIN", input__value=QUESTION, output__value="")), span(2, 1, **llm()))
    assert fields_of(mapped)["answer"] == ""


def test_tokens_are_summed_over_llm_calls_without_one_below() -> None:
    mapped = map_one(
        span(1, gen_ai__usage__input_tokens=80, **oi("AGENT", input__value=QUESTION, output__value=ANSWER)),
        span(2, 1, 0, 1, **llm(llm__token_count__prompt=80)),  # a wrapper repeats the sum
        span(3, 2, 0, 0.4, **llm()),
        span(4, 2, 0.5, 1, **llm()),
    )
    assert fields_of(mapped)["tokens"] == {"input": 80, "output": 12}
    assert fields_of(mapped)["task"] == "agent"


def test_a_part_of_the_tokens_is_no_sum() -> None:
    mapped = map_one(span(1, **CHAIN), span(2, 1, **llm()), span(3, 1, **oi("LLM", llm__token_count__completion=6)))
    assert fields_of(mapped)["tokens"] == {"output": 12}
    assert mapped.missing["tokens.input"] == ("incomplete", "1 of 2 LLM calls have none")


def test_a_failed_call_that_was_retried_is_no_error() -> None:
    failed = span(2, 1, error=True, message="overloaded", **oi("LLM"))
    mapped = map_one(span(1, **CHAIN), failed, span(3, 1, **llm()))
    fields = fields_of(mapped)
    assert "error" not in fields
    assert fields["attributes"]["failed_calls"] == 1
    assert fields["tokens"]["input"] == 40


def test_the_error_of_the_root_is_the_application_s() -> None:
    thrown = SpanEvent("exception", 0, {"exception.type": "TimeoutError", "exception.message": "after 30 s"})
    mapped = map_one(span(1, error=True, events=(thrown,), **oi("CHAIN", input__value=QUESTION)))
    assert fields_of(mapped)["error"] == {"type": "TimeoutError", "message": "after 30 s"}
    mapped = map_one(span(1, error=True, error__type="503"), span(2, 1, **CHAIN))
    assert fields_of(mapped)["error"] == {"type": "503"}


def test_two_application_roots_are_two_traces() -> None:
    second = oi("CHAIN", input__value="And on Mondays?", output__value="Closed.")
    found = map_spans(
        [
            span(1, batch__job=True),
            span(2, 1, 0, 1, **CHAIN),
            span(3, 1, 2, 3, **second),
            span(4, 1, 1.5, 1.6, **RETRIEVER),
        ]
    )
    traces = [fields_of(one) for one in found.traces]
    assert [one["trace_id"] for one in traces] == [f"{TRACE}:{2:016x}", f"{TRACE}:{3:016x}"]
    assert [one["question"] for one in traces] == [QUESTION, "And on Mondays?"]
    assert ["contexts" in one for one in traces] == [False, True]  # the retrieval is before the second


def test_a_cycle_of_parents_is_cut_at_its_first_span() -> None:
    found = map_spans([span(1, 3, 0, 1, **CHAIN), span(2, 1, 0.1, 0.5, **llm()), span(3, 2, 0.2, 0.3), span(4, 4)])
    assert found.counts["cycle"] == 2
    assert [fields_of(one)["question"] for one in found.traces] == [QUESTION]


def test_a_parent_that_never_came_makes_a_root() -> None:
    found = map_spans([span(2, 1, **CHAIN)])
    assert found.counts["parent_missing"] == 1
    assert fields_of(found.traces[0])["answer"] == ANSWER


def test_clocks_that_jump_make_no_latency() -> None:
    mapped = map_one(span(1, 0, 5, 4, **CHAIN), span(2, 1, 3, 2, **llm()))
    assert "latency" not in fields_of(mapped)
    assert mapped.missing["latency.total_s"].reason == mapped.missing["latency.generation_s"].reason == "clock"


def test_a_root_without_an_end_takes_the_time_of_the_latest_end() -> None:
    mapped = map_one(replace(span(1, **CHAIN), end_ns=0), span(2, 1, 0, 2, **llm()))
    assert fields_of(mapped)["time"] == "2026-09-21T14:13:22.000Z"
    assert "total_s" not in fields_of(mapped)["latency"]


def test_parallel_calls_count_once_in_latencies() -> None:
    mapped = map_one(
        span(1, until=4, **CHAIN), span(2, 1, 0, 2, **llm()), span(3, 1, 1, 2.5, **llm()), span(4, 1, 3, 4, **llm())
    )
    assert fields_of(mapped)["latency"]["generation_s"] == 3.5


def test_the_last_reranker_goes_before_retrievers() -> None:
    reranked = oi(
        "RERANKER",
        reranker__query=QUESTION,
        reranker__output_documents__0__document__id="p1",
        reranker__output_documents__0__document__content=PRICES,
        reranker__output_documents__0__document__score=0.2,
    )
    mapped = map_one(span(1, **CHAIN), span(2, 1, 0, 0.2, **RETRIEVER), span(3, 1, 0.3, 0.4, **reranked))
    assert fields_of(mapped)["contexts"] == [{"rank": 1, "id": "p1", "text": PRICES, "score": 0.2}]


def test_several_retrievers_are_merged_each_chunk_once() -> None:
    inner = oi("RETRIEVER", retrieval__documents__0__document__content="only inside")
    again = oi(
        "RETRIEVER",
        retrieval__documents__0__document__id="h1",
        retrieval__documents__0__document__content=HOURS,
        retrieval__documents__1__document__content="Dogs wait outside.",
    )
    mapped = map_one(
        span(1, **CHAIN),
        span(2, 1, 0.5, 0.6, **again),
        span(3, 1, 0.1, 0.3, **RETRIEVER),
        span(4, 3, 0.1, 0.2, **inner),  # its result is a part of the outer one's
    )
    assert [(one["rank"], one["text"]) for one in fields_of(mapped)["contexts"]] == [
        (1, HOURS),
        (2, PRICES),
        (3, "Dogs wait outside."),
    ]


def test_no_retriever_and_an_empty_retrieval_differ() -> None:
    mapped = map_one(span(1, **CHAIN))
    assert "contexts" not in fields_of(mapped)
    assert mapped.missing["contexts"].reason == "no_span"
    empty = span(2, 1, gen_ai__operation__name="retrieval", gen_ai__retrieval__documents="[]")
    assert fields_of(map_one(span(1, **CHAIN), empty))["contexts"] == []


def test_the_answer_is_of_the_last_call_that_wrote_text() -> None:
    tool_call = messages("assistant", {"type": "tool_call", "id": "1", "name": "search", "arguments": {}})
    mapped = map_one(
        span(1, gen_ai__operation__name="invoke_workflow"),
        span(2, 1, 0, 0.5, **llm(llm__model_name="writes")),
        span(3, 1, 0.6, 0.9, gen_ai__operation__name="chat", gen_ai__output__messages=tool_call),
        span(4, 1, 0.9, 1, **oi("TOOL")),
        span(5, 4, 0.9, 1, **llm(llm__model_name="of a tool")),
    )
    assert fields_of(mapped)["model"]["served"] == "writes"
    assert fields_of(mapped)["answer"] == ANSWER


def test_content_in_log_records_is_joined_to_its_span() -> None:
    spans = (
        span(1, gen_ai__operation__name="invoke_workflow"),
        span(2, 1, gen_ai__operation__name="chat", gen_ai__response__model="m-1"),
    )
    details = LogEvent(
        TRACE,
        spans[1].span_id,
        "gen_ai.client.inference.operation.details",
        attributes={
            "gen_ai.input.messages": [{"role": "user", "parts": [text(QUESTION)]}],
            "gen_ai.output.messages": [{"role": "assistant", "parts": [text(ANSWER)]}],
            "gen_ai.response.model": "not this one",
        },
    )
    fields = fields_of(map_one(*spans, logs=(details,)))
    assert (fields["question"], fields["answer"], fields["model"]) == (QUESTION, ANSWER, {"served": "m-1"})
    choice = LogEvent(TRACE, spans[1].span_id, "gen_ai.choice", body={"message": {"content": ANSWER}})
    asked = LogEvent(TRACE, spans[1].span_id, "gen_ai.user.message", body={"content": QUESTION})
    fields = fields_of(map_one(*spans, logs=(choice, asked, choice)))
    assert (fields["question"], fields["answer"]) == (QUESTION, ANSWER)


def test_content_by_reference_is_never_fetched() -> None:
    chat = span(
        1,
        gen_ai__operation__name="chat",
        gen_ai__input__messages=messages("user", text(QUESTION)),
        gen_ai__output__messages_ref="s3://bucket/1",
    )
    mapped = map_one(chat)
    assert mapped.missing["answer"] == ("content_by_reference", "gen_ai.output.messages_ref")


def test_spans_of_no_application_are_no_trace() -> None:
    found = map_spans([span(1, http__route="/"), span(2, 1, db__system="postgresql")])
    assert found.traces == []
    assert found.counts["no_application"] == 1


def test_unknown_names_of_conventions_are_counted_by_prefix() -> None:
    found = map_spans([span(1, gen_ai__new__thing=1, llm__brand_new="x", http__route="/", **CHAIN)])
    assert found.unmapped == {"gen_ai": 1, "llm": 1}


def test_the_question_of_langfuse_goes_before_the_root_s() -> None:
    mapped = map_one(span(1, **CHAIN), span(2, 1, langfuse__trace__input='{"question": "As asked?"}'))
    assert fields_of(mapped)["question"] == "As asked?"
