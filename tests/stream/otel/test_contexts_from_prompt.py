"""Texts of chunks that no retrieval records come from the prompt, if the settings ask for it."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from pydantic import ValidationError

from ragtide.stream.ingest.otel import MappedSpans, MappedTrace, Span, map_spans, prompt_rule
from ragtide.stream.ingest.otel.prompt_contexts import LONGEST_PROMPT, MOST_MATCHES
from ragtide.stream.ingest.otel.spans import SpanEvent
from ragtide.stream.ingest.validation import validate
from ragtide.stream.settings.otel import OtelSettings
from tests.stream.otel.scene import ANSWER, HOURS, LIMITS, NAMES, PRICES, QUESTION, fields_of, oi, recorded, span

DOCS = {"contexts_from_prompt": "delimited", "context_start": "<doc[^>]*>", "context_end": "</doc>"}
LINES = {"contexts_from_prompt": "delimited", "context_start": "^Answer from: |\n"}
WHOLE = {"contexts_from_prompt": "whole"}
IDS = '[{"id": "h", "score": 0.9}, {"id": "p", "score": null}]'
DOC_PROMPT = f"Use this.\n<doc id=1>{HOURS}</doc>\n<doc id=2>\n{PRICES}\n</doc>\nQuestion: {QUESTION}"


def mapped(found: list[Span], **otel: Any) -> MappedSpans:
    return map_spans(found, (), prompt_rule(OtelSettings.model_validate(otel)))


def rag(prompt: str, documents: str = IDS, **llm: Any) -> list[Span]:
    """A retrieval that records ids and scores, and the LLM call that answers from this prompt of the user."""
    messages = [{"role": "user", "parts": [{"type": "text", "content": prompt}]}]
    retrieval: dict[str, Any] = {"gen_ai__retrieval__query__text": QUESTION, "gen_ai__retrieval__documents": documents}
    output = [{"role": "assistant", "parts": [{"type": "text", "content": ANSWER}]}]
    chat = {"gen_ai__input__messages": json.dumps(messages), "gen_ai__output__messages": json.dumps(output)}
    return [
        span(1, 0, 0, 9, gen_ai__operation__name="invoke_workflow"),
        span(2, 1, 1, 2, gen_ai__operation__name="retrieval", **retrieval),
        span(3, 1, 3, 4, gen_ai__operation__name="chat", **{**chat, **llm}),
    ]


def one(found: list[Span], **otel: Any) -> MappedTrace:
    [trace] = mapped(found, **otel).traces
    assert validate(trace.encode(), LIMITS).faults == ()
    return trace


def chunks(trace: MappedTrace) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = fields_of(trace)["contexts"]
    return found


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("otel", [DOCS, LINES, WHOLE], ids=["docs", "lines", "whole"])
def test_recorded_traces_change_only_where_a_retrieval_has_no_text(name: str, otel: dict[str, Any]) -> None:
    spans, logs = recorded(name)
    before, after = map_spans(spans, logs), map_spans(spans, logs, prompt_rule(OtelSettings.model_validate(otel)))
    is_changed = before.traces[0].encode() != after.traces[0].encode()
    expected = name in ("genai_langchain", "genai_langchain_events") and otel is not DOCS
    assert is_changed == expected
    assert (after.counts["contexts_from_prompt"] > 0) == expected


def test_the_default_takes_nothing_from_prompts() -> None:
    assert prompt_rule(OtelSettings()) is None
    trace = one(rag(DOC_PROMPT))
    assert [chunk.get("text") for chunk in chunks(trace)] == [None, None]
    assert trace.missing["contexts.text"].reason == "no_text"


def test_the_recorded_pipeline_has_its_two_texts_with_the_ids_of_the_retrieval() -> None:
    spans, _ = recorded("genai_langchain")
    trace = one(spans, **LINES)
    assert chunks(trace) == [
        {"rank": 1, "id": "hours-1", "text": HOURS, "source": "prompt"},
        {"rank": 2, "id": "prices-1", "text": PRICES, "source": "prompt"},
    ]
    assert fields_of(trace)["attributes"]["contexts_from"] == "prompt"
    assert (trace.origins["contexts"].span_name, trace.origins["contexts"].attribute) == (
        "chat fake-1",
        "gen_ai.input.messages",
    )
    assert trace.origins["contexts"].setting == "otel.contexts_from_prompt"
    assert "contexts.text" not in trace.missing


def test_ids_and_scores_come_by_rank_where_the_counts_agree() -> None:
    found = mapped(rag(DOC_PROMPT), **DOCS)
    assert found.counts["contexts_from_prompt"] == 1
    assert chunks(found.traces[0]) == [
        {"rank": 1, "id": "h", "score": 0.9, "text": HOURS, "source": "prompt"},
        {"rank": 2, "id": "p", "text": PRICES, "source": "prompt"},
    ]


def test_without_agreement_the_chunks_of_the_prompt_stand_alone_each_once() -> None:
    prompt = f"<doc>{HOURS}</doc><doc>{PRICES}</doc><doc>{HOURS}</doc>"
    assert chunks(one(rag(prompt), **DOCS)) == [
        {"rank": 1, "text": HOURS, "source": "prompt"},
        {"rank": 2, "text": PRICES, "source": "prompt"},
    ]


def test_documents_without_ids_have_the_hash_of_their_text() -> None:
    documents = '[{"id": null, "score": null}, {"id": null, "score": 0.5}]'
    found = chunks(one(rag(DOC_PROMPT, documents), **DOCS))
    assert [(chunk.get("id"), chunk.get("score"), chunk["text"]) for chunk in found] == [
        (None, None, HOURS),
        (None, 0.5, PRICES),
    ]


def test_a_template_is_its_text_as_it_is() -> None:
    otel = {"contexts_from_prompt": "delimited", "context_template": "[*{context}*]"}
    assert [chunk["text"] for chunk in chunks(one(rag(f"[*{HOURS}*] and [*{PRICES}*]"), **otel))] == [HOURS, PRICES]


def test_the_system_message_is_read_where_the_users_has_no_markers() -> None:
    messages = [
        {"role": "system", "parts": [{"type": "text", "content": DOC_PROMPT}]},
        {"role": "user", "parts": [{"type": "text", "content": QUESTION}]},
    ]
    trace = one(rag("", gen_ai__input__messages=json.dumps(messages)), **DOCS)
    assert [chunk["text"] for chunk in chunks(trace)] == [HOURS, PRICES]
    messages[1] = {"role": "user", "parts": [{"type": "text", "content": "<doc>other</doc>"}]}
    trace = one(rag("", gen_ai__input__messages=json.dumps(messages)), **DOCS)
    assert [chunk["text"] for chunk in chunks(trace)] == ["other"]


SYSTEM: dict[str, dict[str, Any]] = {
    "gen_ai.system_instructions": {"gen_ai__system_instructions": json.dumps([{"type": "text", "content": "{}"}])},
    "ai.prompt.messages": {"ai__prompt__messages": json.dumps([{"role": "system", "content": "{}"}])},
    "gen_ai.prompt": {"gen_ai__prompt__0__role": "system", "gen_ai__prompt__0__content": "{}"},
    "langfuse.observation.input": {"langfuse__observation__input": json.dumps([{"role": "system", "content": "{}"}])},
    "llm.input_messages": {
        "llm__input_messages__0__message__role": "developer",
        "llm__input_messages__0__message__content": "{}",
    },
}


@pytest.mark.parametrize("attribute", SYSTEM)
def test_a_system_prompt_is_read_from_every_convention(attribute: str) -> None:
    prompt = json.dumps(DOC_PROMPT)[1:-1] if attribute[-1] != "t" or attribute.startswith("lang") else DOC_PROMPT
    prompt = DOC_PROMPT if attribute in ("llm.input_messages", "gen_ai.prompt") else prompt
    values = {name: value.replace("{}", prompt) for name, value in SYSTEM[attribute].items()}
    trace = one(rag(QUESTION, **values), **DOCS)
    assert [chunk["text"] for chunk in chunks(trace)] == [HOURS, PRICES]
    assert trace.origins["contexts"].attribute == attribute


def test_events_of_a_span_hold_prompts_too() -> None:
    spans = rag("", gen_ai__input__messages=None)
    spans[2] = replace(spans[2], events=(SpanEvent("gen_ai.system.message", 0, {"content": DOC_PROMPT}),))
    assert [chunk["text"] for chunk in chunks(one(spans, **DOCS))] == [HOURS, PRICES]


def test_the_whole_message_without_the_question_is_one_chunk() -> None:
    trace = one(rag(f"{HOURS}\n{QUESTION}\n{PRICES}\n{QUESTION}"), **WHOLE)
    assert chunks(trace) == [{"rank": 1, "text": f"{HOURS}\n{QUESTION}\n{PRICES}", "source": "prompt"}]
    spans, _ = recorded("genai_langchain")  # its user message is the question
    [chunk] = chunks(one(spans, **WHOLE))
    assert chunk["text"] == f"Answer from: {HOURS}\n{PRICES}"


def test_a_prompt_of_the_question_alone_has_no_chunk() -> None:
    found = mapped(rag(QUESTION), **WHOLE)
    assert found.counts["contexts_not_in_prompt"] == 1
    assert found.traces[0].missing["contexts.text"] == ("not_in_prompt", "it is the question alone")
    assert [chunk["id"] for chunk in chunks(found.traces[0])] == ["h", "p"]


@pytest.mark.parametrize(
    ("prompt", "why"),
    [
        (f"{HOURS} {PRICES}", "the markers are not in it"),
        (f"<doc>{HOURS}", "the markers are not in it"),  # cut short, so that the chunk is not whole
        ("<doc> \n</doc>", "the markers are not in it"),
        ("<doc>a</doc>" * (MOST_MATCHES + 1), f"the markers match more than {MOST_MATCHES:,} times"),
        (f"<doc>{HOURS}</doc>" + "x" * LONGEST_PROMPT, f"it has more than {LONGEST_PROMPT:,} characters"),
        ("__REDACTED__", "its text is not recorded"),
    ],
)
def test_where_nothing_is_found_the_ids_stay_and_it_is_counted(prompt: str, why: str) -> None:
    found = mapped(rag(prompt), **DOCS)
    assert (+found.counts) == {"contexts_not_in_prompt": 1}
    [trace] = found.traces
    assert trace.missing["contexts.text"] == ("not_in_prompt", why)
    assert [chunk["id"] for chunk in chunks(trace)] == ["h", "p"]
    assert "contexts_from" not in fields_of(trace).get("attributes", {})


def test_hidden_texts_and_empty_results_are_left_alone() -> None:
    hidden = [oi("RETRIEVER", retrieval__documents__0__document__content="__REDACTED__")]
    for retrieval in (*hidden, {"gen_ai__operation__name": "retrieval", "gen_ai__retrieval__documents": "[]"}):
        spans = rag(DOC_PROMPT)
        spans[1] = span(2, 1, 1, 2, **retrieval)
        found = mapped(spans, **DOCS)
        assert +found.counts == {}
        assert found.traces[0].encode() == mapped(spans).traces[0].encode()


def test_one_recorded_text_is_enough_to_leave_the_prompt_alone() -> None:
    documents = json.dumps([{"id": "h", "content": HOURS}, {"id": "p"}])
    assert mapped(rag(DOC_PROMPT, documents), **DOCS).counts == {}


def test_without_a_retrieval_no_prompt_is_read() -> None:
    [root, _, chat] = rag(DOC_PROMPT)
    trace = one([root, chat], **DOCS)
    assert trace.missing["contexts"].reason == "no_span"


def test_a_retrieval_that_records_nothing_has_the_chunks_of_the_prompt() -> None:
    spans = rag(DOC_PROMPT, gen_ai__retrieval__documents=None)
    spans[1] = span(2, 1, 1, 2, gen_ai__operation__name="retrieval")
    assert [chunk["text"] for chunk in chunks(one(spans, **DOCS))] == [HOURS, PRICES]
    found = mapped(spans, contexts_from_prompt="delimited", context_start="nowhere")
    assert found.traces[0].missing["contexts"].reason == "not_sent"
    assert found.counts["contexts_not_in_prompt"] == 1


def test_of_several_llm_calls_the_one_that_wrote_the_answer_is_read() -> None:
    spans = rag(DOC_PROMPT)
    rewrite = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "<doc>rewrite</doc>"}]}])
    output = spans[2].attributes["gen_ai.output.messages"]
    earlier: dict[str, Any] = {"gen_ai__input__messages": rewrite, "gen_ai__output__messages": output}
    spans.append(span(4, 1, 0.2, 0.5, gen_ai__operation__name="chat", **earlier))
    spans.append(span(5, 2, 1.2, 8, gen_ai__operation__name="chat", **earlier))  # of the retriever
    for order in (spans, spans[::-1]):
        assert [chunk["text"] for chunk in chunks(one(order, **DOCS))] == [HOURS, PRICES]


def test_a_question_that_is_the_prompt_loses_the_chunks_found_in_it() -> None:
    spans = rag(f"<doc>{HOURS}\n{PRICES}\nBoth are from the site of the museum.</doc>\nWhen?")
    spans[1] = span(2, 1, 1, 2, gen_ai__operation__name="retrieval", gen_ai__retrieval__documents=IDS)
    trace = fields_of(one(spans, **DOCS))
    assert trace["question"] == "<doc></doc>\nWhen?"
    assert (trace["attributes"]["question_from"], trace["attributes"]["contexts_from"]) == ("prompt", "prompt")


PIECES = st.lists(st.text(st.characters(exclude_characters="<>")), max_size=6)


@given(PIECES, st.text(st.characters(exclude_characters="<>")), st.booleans())
@settings(deadline=None)
def test_whatever_stands_between_markers_is_found_stripped_and_in_order(
    pieces: list[str], around: str, is_closed: bool
) -> None:
    otel = DOCS if is_closed else {**DOCS, "context_end": ""}
    prompt = around + "".join(f"<doc>{piece}</doc>" if is_closed else f"<doc>{piece}" for piece in pieces)
    [answer] = [one for one in rag(prompt) if one.span_id.endswith("3")]
    rule = prompt_rule(OtelSettings.model_validate(otel))
    assert rule is not None
    found = rule.find(answer, "")
    wanted = [text for piece in pieces if (text := _as_sent(piece).strip())]
    assert list(getattr(found, "texts", [])) == wanted


def _as_sent(text: str) -> str:
    return text.encode(errors="replace").decode()


PATTERNS = st.sampled_from(
    [r"\b", r"(?m)^.", r".", r"(a|aa)+", r"\C", r"[^a]*a", r"(?s).*", r"(?m)$|x", r"[a-z]", r"a|a.*z", "\\x00", "é"]
)


@given(st.text("ab zé\n\x00😀", max_size=60), PATTERNS, PATTERNS | st.just(""))
@settings(max_examples=300, deadline=None)
def test_any_patterns_find_parts_of_the_prompt_and_end(prompt: str, start: str, end: str) -> None:
    try:
        otel = OtelSettings(contexts_from_prompt="delimited", context_start=start, context_end=end)
    except ValidationError as error:
        assert "matches an empty text" in str(error)  # noqa: PT017  # most are taken
        return
    rule = prompt_rule(otel)
    assert rule is not None
    found = rule.find(rag(prompt)[2], "")
    for text in getattr(found, "texts", []):
        assert text.strip("\ufffd") in prompt
        assert text.strip()


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("start", "end", "text"),
    [
        ("(a|aa)+b", "(a|aa)+c", "a"),
        ("a|a.*z", "a|a.*z", "a"),
        ("a", "b", "a"),
        ("a", "", "ab"),
        ("[ab]*a[ab]{900}z", "", "ab"),
        (r"\b", r"\b", "a "),
    ],
)
def test_no_pattern_stalls_a_worker(start: str, end: str, text: str) -> None:
    otel = OtelSettings(contexts_from_prompt="delimited", context_start=start, context_end=end)
    prompt = text * (LONGEST_PROMPT // len(text))
    assert mapped(rag(prompt), **otel.model_dump()).counts["contexts_not_in_prompt"] == 1


@pytest.mark.parametrize(
    ("otel", "message"),
    [
        ({"contexts_from_prompt": "delimited"}, "needs otel.context_start, or otel.context_template"),
        ({"contexts_from_prompt": "delimited", "context_end": "a"}, "needs otel.context_start"),
        ({"context_start": "a"}, "need otel.contexts_from_prompt = delimited, and it is off"),
        ({"contexts_from_prompt": "whole", "context_template": "a"}, "and it is whole"),
        ({**DOCS, "context_template": "<{context}>"}, "not both"),
        ({**WHOLE, "contexts_from_prompt": "delimited", "context_template": "<doc>"}, "needs {context} once"),
        ({"contexts_from_prompt": "delimited", "context_template": "{context}</doc>"}, "with a text before it"),
        ({**DOCS, "context_start": "(?=doc)"}, "look-around has no linear time"),
        ({**DOCS, "context_end": "x*"}, "otel.context_end matches an empty text"),
        ({**DOCS, "context_start": "a{900}b{900}c{900}"}, "too large"),
        ({**DOCS, "context_start": "("}, "otel.context_start: regular expression refused"),
    ],
)
def test_settings_that_cannot_work_are_refused(otel: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as raised:
        OtelSettings.model_validate(otel)
    assert message in str(raised.value)
