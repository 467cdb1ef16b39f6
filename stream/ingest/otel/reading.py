"""Read one source of the table from one span: each form of attribute has a function here."""

import math
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from ragtide.stream.ingest.otel.names import FIELDS, REDACTED, SYSTEM_PROMPTS
from ragtide.stream.ingest.otel.source import Form, Source
from ragtide.stream.ingest.otel.spans import Span, Value
from ragtide.stream.ingest.otel.unwrap import (
    Missing,
    assistant_text,
    decode_json,
    instructions_text,
    message_text,
    system_text,
    text_of,
    user_text,
)

Reading: TypeAlias = "str | float | list[str] | Missing | None"
_LONGEST_INDEX = 6  # digits
_LARGEST_NUMBER = 1e12  # of one call: tokens, US dollars, milliseconds. Sums of it fit 64 bits.
_MIME_TYPES = {"input.value": "input.mime_type", "output.value": "output.mime_type"}


class Reader(NamedTuple):
    """Reads a source from a span. None: it is not there; `Missing`: it is there, and its content is not.

    No span without the attribute `key` has the source; "": it is flattened, or an event.
    """

    source: Source
    key: str
    read: Callable[[Span, str], Reading]


def flattened(span: Span, prefix: str) -> dict[int, dict[str, Value]]:
    """Attributes `PREFIX.N.REST` as an object of REST for each N, in order of N."""
    found: dict[int, dict[str, Value]] = {}
    for name, value in span.attributes.items():
        if (place := _place(prefix, name)) is not None:
            number, rest = place
            if number in found:
                found[number][rest] = value
            else:
                found[number] = {rest: value}
    return found if len(found) < 2 else dict(sorted(found.items()))


@lru_cache(16_384)
def _place(prefix: str, name: str) -> tuple[int, str] | None:
    """N and REST of a flattened name; names repeat from trace to trace."""
    if not name.startswith(prefix):
        return None
    index, _, rest = name[len(prefix) + 1 :].partition(".")
    return (int(index), rest) if rest and len(index) <= _LONGEST_INDEX and index.isdecimal() else None


def scalar_text(value: Value) -> str | Missing | None:
    """A text, or a number as text. An empty one is none: these are names."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, str):
        return Missing("redacted") if value == REDACTED else value or None
    return Missing("wrong_type", "a text wanted")


def number_of(value: Value) -> float | Missing | None:
    """A number from 0 to 1e12, in a text too. No count, cost or time is larger."""
    if value is None:
        return None
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return Missing("wrong_type", "a number wanted")
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
        return Missing("wrong_type", "a number of 0 or more wanted")
    return value if value <= _LARGEST_NUMBER else Missing("out_of_range", f"more than {_LARGEST_NUMBER:g}")


def _resource_text(span: Span, attribute: str) -> Reading:
    return scalar_text(span.resource.get(attribute))


def _text(span: Span, attribute: str) -> Reading:
    return scalar_text(span.attributes.get(attribute))


def _input(span: Span, attribute: str) -> Reading:
    return text_of(span.attributes.get(attribute), "user", is_plain=_is_plain(span, attribute))


def _output(span: Span, attribute: str) -> Reading:
    return text_of(span.attributes.get(attribute), "assistant", is_plain=_is_plain(span, attribute))


def _is_plain(span: Span, attribute: str) -> bool:
    """Of OpenInference alone a text is plain unless it says otherwise."""
    mime_type = _MIME_TYPES.get(attribute)
    return mime_type is not None and span.attributes.get(mime_type) != "application/json"


def _number(span: Span, attribute: str) -> Reading:
    return number_of(span.attributes.get(attribute))


def _milliseconds(span: Span, attribute: str) -> Reading:
    found = number_of(span.attributes.get(attribute))
    return found / 1000 if isinstance(found, (int, float)) else found


def _time(span: Span, attribute: str) -> Reading:
    """Seconds from the start of the span to this time."""
    value = span.attributes.get(attribute)
    if value is None:
        return None
    try:
        time = datetime.fromisoformat(str(value).strip('"'))
    except ValueError:
        return Missing("wrong_type", "a time in RFC 3339 wanted")
    if time.tzinfo is None or not span.start_ns:
        return Missing("wrong_type", "a time with an offset wanted")
    seconds = time.timestamp() - span.start_ns / 1e9
    return seconds if seconds >= 0 else Missing("clock", "before the span starts")


def _user_message(span: Span, attribute: str) -> Reading:
    value = span.attributes.get(attribute)
    return None if value is None else user_text(value)


def _assistant_message(span: Span, attribute: str) -> Reading:
    value = span.attributes.get(attribute)
    return None if value is None else assistant_text(value)


def _system_message(span: Span, attribute: str) -> Reading:
    value = span.attributes.get(attribute)
    return None if value is None else system_text(value)


def _system_instructions(span: Span, attribute: str) -> Reading:
    return instructions_text(span.attributes.get(attribute))


def _indexed_messages(span: Span, attribute: str) -> list[Value]:
    messages: list[Value] = []
    for fields in flattened(span, attribute).values():
        content = fields.get("message.content")
        if content is None:
            parts = {
                name: text
                for name, text in fields.items()
                if name.startswith("message.contents.") and name.endswith(".message_content.text")
            }
            content = [parts[name] for name in sorted(parts, key=_part_number)]
        messages.append({"role": fields.get("message.role"), "content": content})
    return messages


def _part_number(name: str) -> int:
    number = name.split(".")[2]
    return int(number) if number.isdecimal() else 0


def _indexed_user_message(span: Span, attribute: str) -> Reading:
    messages = _indexed_messages(span, attribute)
    return user_text(messages) if messages else _redacted(span, attribute)


def _indexed_assistant_message(span: Span, attribute: str) -> Reading:
    messages = _indexed_messages(span, attribute)
    return assistant_text(messages) if messages else _redacted(span, attribute)


def _indexed_system_message(span: Span, attribute: str) -> Reading:
    return system_text(_indexed_messages(span, attribute))


def _redacted(span: Span, attribute: str) -> Reading:
    return Missing("redacted") if span.attributes.get(attribute) == REDACTED else None


def _legacy_messages(span: Span, attribute: str) -> list[Value]:
    return [
        {"role": fields.get("role", ""), "content": _maybe_parts(fields.get("content"))}
        for fields in flattened(span, attribute).values()
    ]


def _maybe_parts(content: Value) -> Value:
    return decode_json(content) if isinstance(content, str) and content.startswith("[{") else content


def _legacy_user_message(span: Span, attribute: str) -> Reading:
    messages = _legacy_messages(span, attribute)
    return user_text(messages) if messages else None


def _legacy_assistant_message(span: Span, attribute: str) -> Reading:
    messages = _legacy_messages(span, attribute)
    return assistant_text(messages) if messages else None


def _legacy_system_message(span: Span, attribute: str) -> Reading:
    return system_text(_legacy_messages(span, attribute))


def _indexed_text(span: Span, attribute: str) -> Reading:
    """`llm.prompts.N.prompt.text` and `llm.choices.N.completion.text`, or a list of texts under the name itself."""
    listed = span.attributes.get(attribute)
    if isinstance(listed, list):
        texts = [one for one in listed if isinstance(one, str)]
    else:
        found = flattened(span, attribute).values()
        texts = [text for fields in found for text in fields.values() if isinstance(text, str)]
    if not texts:
        return _redacted(span, attribute)
    return Missing("redacted") if REDACTED in texts else texts[0]


def _event_messages(span: Span, attribute: str) -> Iterator[dict[str, Value]]:
    for event in span.events:
        if event.name == attribute:
            inner = event.attributes.get("message")
            decoded = decode_json(inner) if isinstance(inner, str) else inner
            if isinstance(decoded, dict):
                yield decoded
            else:
                yield {"content": decoded if decoded is not None else event.attributes.get("content")}


def _event_user_message(span: Span, attribute: str) -> Reading:
    found = [message_text(message) for message in _event_messages(span, attribute)]
    return next((text for text in reversed(found) if text is not None), None)


def _event_assistant_message(span: Span, attribute: str) -> Reading:
    found = [message_text(message) for message in _event_messages(span, attribute)]
    return next((text for text in found if text is not None), None)


def _texts(span: Span, attribute: str) -> Reading:
    value = span.attributes.get(attribute)
    if isinstance(value, str):
        value = decode_json(value)
    items = value if isinstance(value, list) else [] if value is None else [value]
    texts = [text for one in items if isinstance(text := text_of(one, "assistant"), str)]
    if REDACTED in items:
        return Missing("redacted")
    return texts or None


def _json_key(span: Span, attribute: str) -> Reading:
    name, _, key = attribute.partition(":")
    value = span.attributes.get(name)
    decoded = decode_json(value) if isinstance(value, str) else value
    found = decoded.get(key) if isinstance(decoded, dict) else None
    if isinstance(found, list):
        return [one for one in found if isinstance(one, str)] or None
    return scalar_text(found)


_READERS: Mapping[Form, Callable[[Span, str], Reading]] = {
    "text": _text,
    "number": _number,
    "input": _input,
    "output": _output,
    "user message": _user_message,
    "assistant message": _assistant_message,
    "indexed user message": _indexed_user_message,
    "indexed assistant message": _indexed_assistant_message,
    "legacy user message": _legacy_user_message,
    "legacy assistant message": _legacy_assistant_message,
    "indexed text": _indexed_text,
    "event user message": _event_user_message,
    "event assistant message": _event_assistant_message,
    "system message": _system_message,
    "indexed system message": _indexed_system_message,
    "legacy system message": _legacy_system_message,
    "event system message": _event_user_message,  # the last event of this name
    "system instructions": _system_instructions,
    "texts": _texts,
    "milliseconds": _milliseconds,
    "seconds": _number,
    "time": _time,
    "json key": _json_key,
}


def _reader(source: Source) -> Reader:
    if source.of == "resource":
        return Reader(source, source.attribute, _resource_text)
    is_exact = not source.form.startswith(("indexed", "legacy", "event"))
    return Reader(source, source.attribute.partition(":")[0] if is_exact else "", _READERS[source.form])


# By field; documents have readers of their own.
READERS: Mapping[str, tuple[Reader, ...]] = {
    path: tuple(map(_reader, sources)) for path, sources in FIELDS.items() if path != "contexts"
}
# The prompt of the answer's LLM call: its last user message, and its last system message.
PROMPT_READERS: tuple[tuple[Reader, ...], tuple[Reader, ...]] = (
    tuple(reader for reader in READERS["question"] if reader.source.of == "answer"),
    tuple(map(_reader, SYSTEM_PROMPTS)),
)
# By field, the attributes that its sources need; None: some are flattened.
KEYS: Mapping[str, frozenset[str] | None] = {
    path: frozenset(reader.key for reader in readers) if all(reader.key for reader in readers) else None
    for path, readers in READERS.items()
}
