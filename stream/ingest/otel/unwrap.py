"""Find the text in what instrumentation records as input or output: a text, JSON, chat messages, their parts."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from ragtide.evaluators.errors import BadRecord
from ragtide.stream.ingest.canonical_json import repair_json
from ragtide.stream.ingest.otel.names import REDACTED
from ragtide.stream.ingest.otel.spans import Value

Reason = Literal[
    "not_sent",
    "redacted",
    "content_by_reference",
    "ambiguous",
    "no_text",
    "not_in_prompt",
    "wrong_type",
    "out_of_range",
    "no_span",
    "incomplete",
    "clock",
]
Side = Literal["user", "assistant"]


class Missing(NamedTuple):
    """An attribute is there and its content is not recorded. `detail` holds names of keys, never content."""

    reason: Reason
    detail: str = ""


_KEYS: Mapping[Side, tuple[str, ...]] = {
    "user": (
        *("question", "query", "query_str", "input", "inputs", "user_input", "user_msg"),
        *("prompt", "text", "message", "messages"),
    ),
    "assistant": ("answer", "output", "outputs", "response", "result", "text", "content", "messages"),
}
_ROLES: Mapping[Side, tuple[str, ...]] = {
    "user": ("user", "human"),
    "assistant": ("assistant", "ai", "model"),
}
_SYSTEM_ROLES = ("system", "developer")
_OTHER_ROLES = (*_SYSTEM_ROLES, "tool", "function")
_MOST_LEVELS = 8
_MOST_KEYS = 12  # named in a detail
_LONGEST_KEY = 40
_TEXT_PARTS = ("text", "input_text", "output_text")
_LONGEST_INT = 18  # digits that fit 64 bits
_DECODE = msgspec.json.Decoder().decode


def decode_json(text: str) -> Value:
    """Decode a text that may hold JSON; a text that does not stays as it is.

    Numbers that are not finite become null, and halves of surrogate pairs U+FFFD: JSON has neither, Python writes both.
    """
    if text.lstrip()[:1] not in ("{", "["):
        return text
    try:
        decoded: Value = _DECODE(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return _repaired(text)
    return decoded


def _repaired(text: str) -> Value:
    try:
        lenient = json.loads(text, parse_constant=lambda _: None, parse_float=_finite, parse_int=_finite_int)
        decoded: Value = repair_json(json.dumps(lenient).encode())
    except (ValueError, RecursionError, BadRecord):
        return text
    return decoded


def _finite(digits: str) -> float | None:
    number = float(digits)
    return number if math.isfinite(number) else None


def _finite_int(digits: str) -> float | None:
    return int(digits) if len(digits) <= _LONGEST_INT else _finite(digits)


def text_of(value: Value, side: Side, *, is_plain: bool = False) -> str | Missing | None:
    """Find the text of one side in a recorded input or output; None: nothing is recorded.

    `is_plain`: the producer did not say that the text is JSON, so that JSON without a usual key is the text itself.
    """
    if isinstance(value, str):
        if value == REDACTED:
            return Missing("redacted")
        decoded = decode_json(value)
        if isinstance(decoded, str):
            return decoded
        found = _search(decoded, side, 0)
        return value if is_plain and (found is None or isinstance(found, Missing)) else found
    return _search(value, side, 0)


def _search(node: Value, side: Side, level: int) -> str | Missing | None:
    if node is None or isinstance(node, bytes):
        return None
    if isinstance(node, str):
        return Missing("redacted") if node == REDACTED else node
    if isinstance(node, (bool, int, float)):
        return msgspec.json.encode(node).decode()
    if level >= _MOST_LEVELS:
        return Missing("ambiguous", "nested too deep")
    if isinstance(node, list):
        return _search_list(node, side, level)
    return _search_object(node, side, level)


def _search_list(items: list[Value], side: Side, level: int) -> str | Missing | None:
    if len(items) == 1:
        return _search(items[0], side, level + 1)
    if not items:
        return ""
    if any(isinstance(one, dict) and role_of(one) for one in items):
        return last_text(items, _ROLES[side])
    if all(isinstance(one, dict) and one.get("type") in _TEXT_PARTS for one in items):
        return parts_text(items)
    if all(isinstance(one, list) for one in items):
        return _search(items[-1], side, level + 1)
    return Missing("ambiguous", f"a list of {len(items)}")


def _search_object(node: dict[str, Value], side: Side, level: int) -> str | Missing | None:
    if node.keys() == {"id", "model"}:  # Phoenix writes it in place of an answer
        return None
    if role_of(node):
        return message_text(node)
    if node.get("type") in _TEXT_PARTS:
        return parts_text([node])
    kwargs = node.get("kwargs")
    if node.get("lc") is not None and isinstance(kwargs, dict):  # an object of LangChain
        return _search(kwargs, side, level + 1)
    for key in _KEYS[side]:
        if node.get(key) is not None:
            return _search(node[key], side, level + 1)
    texts = [one for one in node.values() if isinstance(one, str)]
    if len(texts) == 1 or len(node) == 1:
        return _search(texts[0] if texts else next(iter(node.values())), side, level + 1)
    if not node:
        return None
    return Missing("ambiguous", ", ".join(sorted(key[:_LONGEST_KEY] for key in node)[:_MOST_KEYS]))


def role_of(message: Mapping[str, Value]) -> str:
    """The role of a chat message, "" for what is none."""
    role = message.get("role")
    if role is None and ("content" in message or "kwargs" in message or "data" in message):
        role = message.get("type")
        inner = message.get("kwargs")
        if isinstance(inner, dict):
            role = inner.get("type")
    known = (*_ROLES["user"], *_ROLES["assistant"], *_OTHER_ROLES)
    return role.lower() if isinstance(role, str) and role.lower() in known else ""


def message_text(message: Mapping[str, Value]) -> str | Missing | None:
    """The text of a chat message: of its content, or of the text parts of it."""
    inner = message.get("kwargs", message.get("data"))
    if isinstance(inner, dict) and "content" not in message:
        message = inner
    parts = message.get("parts", message.get("content"))
    if isinstance(parts, str):
        return Missing("redacted") if parts == REDACTED else parts
    return parts_text(parts) if isinstance(parts, list) else None


def parts_text(parts: Sequence[Value]) -> str | Missing | None:
    """The text parts, joined by line breaks; reasoning, tool calls, files and unknown parts have none."""
    texts = []
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict) and part.get("type", "text") in _TEXT_PARTS:
            text = part.get("content", part.get("text"))
            if isinstance(text, str):
                texts.append(text)
    if REDACTED in texts:
        return Missing("redacted")
    return "\n".join(texts) if texts else None


def messages_of(value: Value) -> list[Mapping[str, Value]] | Missing:
    """The chat messages of an attribute, JSON or not; what is no message is left out."""
    if isinstance(value, str):
        if value == REDACTED:
            return Missing("redacted")
        value = decode_json(value)
    if isinstance(value, dict):
        inner = value.get("messages")
        value = inner if isinstance(inner, list) else [value]
    if not isinstance(value, list):
        return Missing("wrong_type", "a list of messages wanted")
    return [one for one in value if isinstance(one, dict)]


def user_text(value: Value) -> str | Missing | None:
    """The text of the last message of the user that has one."""
    messages = messages_of(value)
    return messages if isinstance(messages, Missing) else last_text(messages, _ROLES["user"])


def assistant_text(value: Value) -> str | Missing | None:
    """The text of the first message of the assistant that has one."""
    messages = messages_of(value)
    return messages if isinstance(messages, Missing) else last_text(messages[::-1], _ROLES["assistant"])


def system_text(value: Value) -> str | Missing | None:
    """The text of the last message of the system that has one."""
    messages = messages_of(value)
    return messages if isinstance(messages, Missing) else last_text(messages, _SYSTEM_ROLES)


def instructions_text(value: Value) -> str | Missing | None:
    """The text of a system prompt on its own: a text, or parts in JSON or not."""
    decoded = decode_json(value) if isinstance(value, str) else value
    if isinstance(decoded, str):
        return Missing("redacted") if decoded == REDACTED else decoded
    return parts_text(decoded) if isinstance(decoded, list) else None


def last_text(messages: Iterable[Value] | Iterable[Mapping[str, Value]], roles: tuple[str, ...]) -> str | Missing:
    """The text of the last message of one of the roles that has one; a redacted one ends the search."""
    for message in reversed(list(messages)):
        if isinstance(message, Mapping) and role_of(message) in roles:
            text = message_text(message)
            if text is not None:
                return text
    return Missing("no_text", f"no message of {roles[0]} with text")
