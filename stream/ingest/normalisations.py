"""The forms of a trace that are read although they are not the canonical one: one table of rules, by name.

A rule applies only where the value has one plausible meaning. What has several is refused with the form that is wanted.
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from ragtide.evaluators.errors import BadRecord
from ragtide.evaluators.trace import Chunk, Model, Trace
from ragtide.stream.ingest.fields import Field, Kind, fields_of

RULES: Mapping[str, str] = {
    "byte_order_mark": "A byte order mark (UTF-8) before the JSON is skipped.",
    "schema_registry_prefix": "Confluent's Schema Registry prefix before JSON (byte 0, id of 4 bytes) is skipped.",
    "json_in_text": "JSON in a JSON text, written twice, is read once more.",
    "envelope": "The trace is taken out of Kafka Connect's `payload`, or `data` of a CloudEvent.",
    "other_name": "A field has the name that another framework gives it; see the names below.",
    "camel_case": "A field is in camel case: `traceId`, `sessionId`, `costUsd`.",
    "number_as_text": "A number or a boolean becomes its JSON text: ids, `user_id`, names, segment values, answers.",
    "text_as_number": 'A text that holds a number becomes the number: `"0.002"`.',
    "decimal_as_count": "A whole number with a decimal point becomes one without: `100.0`.",
    "boolean_as_number": "`true` and `false` become 1 and 0 in `relevance` and `labels.scores`.",
    "single_value": "One value becomes a list of one: `expected`, `categories`, `contexts`, `artifacts`, ….",
    "messages_as_text": "Chat messages, content parts or a chat completion become the text of the last message.",
    "context_as_text": "A text in `contexts` becomes a chunk with this text.",
    "context_wrapped": "A chunk is taken out of `node`, `document`, `payload`, `_source` or LangChain's `kwargs`.",
    "context_with_score": "A pair of a chunk and a number becomes the chunk with this score.",
    "ids_as_relevance": "A list of chunk ids in `relevance` becomes grades of 1; a list of only 0 and 1 is refused.",
    "model_as_text": "A text in `model` becomes `model.requested`.",
    "no_error": "An empty text or `false` in `error` means no error.",
    "error_as_text": "A text in `error` becomes `error.message`, with the type `error`.",
    "error_without_type": "An `error` without a type has the type `error`.",
    "time_in_seconds": "Seconds since 1970 (2001 to 2105) become milliseconds.",
    "time_in_microseconds": "Microseconds since 1970 (2001 to 2105) become milliseconds.",
    "time_in_nanoseconds": "Nanoseconds since 1970 (2001 to 2105) become milliseconds.",
    "time_in_iso_8601": "Other forms of ISO 8601 with an offset are read: `20260301T120000Z`.",
}

# Names of other frameworks by field, the first one that fits wins. Only names that mean this field and nothing else.
NAMES: Mapping[type[msgspec.Struct], Mapping[str, tuple[str, ...]]] = {
    Trace: {
        "trace_id": ("trace.id", "traceid"),
        "time": ("timestamp", "@timestamp", "ts", "event_time", "created_at"),
        "app": ("application", "app_name", "application_name", "service", "service_name", "service.name"),
        "environment": ("env", "deployment_environment", "deployment.environment", "deployment.environment.name"),
        "session_id": ("conversation_id", "thread_id", "chat_id", "session.id"),
        "user_id": ("user", "user.id"),
        "question": ("query", "user_input", "user_query", "input"),
        "answer": ("response", "actual_output", "output", "output_text", "completion", "generation", "result"),
        "contexts": (
            "retrieved_contexts",
            "retrieval_context",
            "source_documents",
            "retrieved_documents",
            "retrieved_chunks",
            "source_nodes",
            "documents",
            "chunks",
            "context",
        ),
        "expected": (
            "ground_truth",
            "ground_truths",
            "reference",
            "references",
            "expected_output",
            "expected_answer",
            "reference_answer",
        ),
        "model": ("model_name", "model_id"),
    },
    Chunk: {
        "id": ("chunk_id", "id_", "_id", "node_id", "document.id"),
        "text": ("page_content", "content", "document.content", "chunk_text", "chunk", "passage", "document"),
        "score": ("similarity", "similarity_score", "relevance_score", "_score", "document.score"),
        "source": ("uri", "url"),
        "metadata": ("meta",),
    },
    Model: {"requested": ("name", "model")},
}

_LONGEST_FIELD = 64  # characters of a name that may stand for another
KEEP = object()  # a rule does not apply
_LARGEST_BITS = 256  # of an integer that becomes a text: ids have 128
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,17})(?:\.\d{1,20})?(?:[eE][+-]?\d{1,2})?")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_S, _LAST_S = 1_000_000_000, 4_291_747_200  # 2001-09-09 and 2106-01-01
_FIRST_MS = 100_000_000_000  # 1973: no trace is older, and fewer milliseconds are probably seconds
_UNITS = {"time_in_seconds": 1, "time_in_microseconds": 1_000_000, "time_in_nanoseconds": 1_000_000_000}
WRAPPERS = ("kwargs", "node", "document", "payload", "_source")
_TEXT_TYPES = ("text", "input_text", "output_text")
_ERROR_TYPE = "error"
_JSON_WHITESPACE = b" \t\r\n"

Count = Callable[[str], None]  # counts a rule by name


def skip_prefix(value: bytes, count: Count) -> bytes:
    """The record's bytes without the prefix of a schema registry and a byte order mark."""
    if value[:1] == b"\0" and value[5:].lstrip(_JSON_WHITESPACE)[:1] == b"{":
        count("schema_registry_prefix")
        value = value[5:]
    if value[:3] == b"\xef\xbb\xbf":
        count("byte_order_mark")
        value = value[3:]
    return value


def unwrap(decoded: Any, decode: Callable[[str], Any], count: Count) -> Any:
    """The trace within a text or an envelope; `decode` reads JSON and raises `msgspec.DecodeError`."""
    if isinstance(decoded, str) and decoded[:1] == "{":
        try:
            decoded = decode(decoded)
        except (msgspec.DecodeError, RecursionError):
            return decoded
        count("json_in_text")
    if isinstance(decoded, dict) and "trace_id" not in decoded:
        connect = decoded.get("payload") if decoded.keys() == {"schema", "payload"} else None
        inner = decoded.get("data") if "specversion" in decoded else connect
        if isinstance(inner, dict):
            count("envelope")
            return inner
    return decoded


def snake_case(name: str) -> str:
    """`traceId`, `TraceID` and `trace-id` as `trace_id`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).replace("-", "_").lower()


def field_meant(struct: type[msgspec.Struct], name: str, fields: Mapping[str, Any]) -> tuple[str, str] | None:
    """The known field that this unknown one of `fields` stands for, and the rule; None: none, or it is there too."""
    meaning = _meaning(struct, name) if len(name) <= _LONGEST_FIELD else None
    if meaning is None or fields.get(meaning.field) is not None or (value := fields[name]) is None:
        return None
    known = fields_of(struct)[meaning.field]
    rivals = (fields.get(one) for one in meaning.earlier)
    if meaning.rule == "other_name" and (not _fits(known, value) or any(_fits(known, one) for one in rivals)):
        return None
    return meaning.field, meaning.rule


class _Meaning(NamedTuple):
    """The field that a name stands for, by which rule; a name of `earlier` goes before it."""

    field: str
    rule: str
    earlier: tuple[str, ...]


@lru_cache(4096)
def _meaning(struct: type[msgspec.Struct], name: str) -> _Meaning | None:
    snake = snake_case(name)
    if snake in fields_of(struct):
        return _Meaning(snake, "camel_case", ())
    for field, names in NAMES.get(struct, {}).items():
        if snake in names:
            return _Meaning(field, "other_name", names[: names.index(snake)])
    return None


def _fits(field: Field, value: Any) -> bool:
    """Whether the value may be one of the field, so that a usual name such as `input` is not taken for it at random."""
    if value is None or isinstance(value, bool):
        return False
    if field.path in ("question", "answer", "text") and isinstance(value, (dict, list)):
        return _message_text(value) is not None
    numbers = (int, float) if field.kind in ("text", "time", "number") else ()
    texts = (str,) if field.kind in ("text", "texts", "objects", "time", "number", "object") else ()
    lists = (list,) if field.kind in ("texts", "objects") else ()
    objects = (dict,) if field.kind in ("object", "any object") else ()
    return isinstance(value, numbers + texts + lists + objects)


def convert(field: Field, value: Any, count: Count) -> Any:
    """The value in the form that the field takes, as far as a rule applies; else the value as it is."""
    rules = _RULES_OF_FIELD.get(field.path) or _RULES_OF_KIND.get(field.kind, ())
    for rule, apply in rules:
        converted = apply(value)
        if converted is not KEEP:
            count(rule)
            value = converted
            if isinstance(value, field.json_types):
                break
    if field.kind in ("texts", "label") and isinstance(value, list):
        return [_text_of_list(item, count) for item in value]
    if field.kind in ("text map", "number map") and isinstance(value, dict):
        return _map_values(field.kind, value, count)
    return value


def _text_of_list(item: Any, count: Count) -> Any:
    text = number_as_text(item)
    if text is KEEP:
        return item
    count("number_as_text")
    return text


def _map_values(kind: Kind, value: dict[str, Any], count: Count) -> dict[str, Any]:
    rules = _RULES_OF_KIND["text"] if kind == "text map" else _RULES_OF_GRADE
    converted = {}
    for key, item in value.items():
        for rule, apply in rules:
            if (new := apply(item)) is not KEEP:
                count(rule)
                item = new  # the loop's own item, as converted
        if item is not None or kind == "number map":
            converted[key] = item
    return converted


def number_as_text(value: Any) -> Any:
    """A number or a boolean as its JSON text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if value.bit_length() <= _LARGEST_BITS else KEEP
    return repr(value) if isinstance(value, float) else KEEP


def _text_as_number(value: Any) -> Any:
    if not isinstance(value, str) or _NUMBER.fullmatch(value.strip()) is None:
        return KEEP
    number = float(value)
    return int(value) if value.strip().lstrip("-").isdigit() else number


def _decimal_as_count(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1 << 53 else KEEP


def _boolean_as_number(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else KEEP


def _single_text(value: Any) -> Any:
    return [value] if isinstance(value, (str, int, float, bool)) else KEEP


def _single_object(value: Any) -> Any:
    return [value] if isinstance(value, dict) else KEEP


def _single_context(value: Any) -> Any:
    return [value] if isinstance(value, (dict, str)) else KEEP


def _messages_as_text(value: Any) -> Any:
    text = _message_text(value) if isinstance(value, (dict, list)) else None
    return KEEP if text is None else text


def _message_text(value: Any) -> str | None:
    """Text of a message, of its content parts, of the last one of several, or of a chat completion."""
    if isinstance(value, dict):
        if isinstance(choices := value.get("choices"), list) and choices and isinstance(choices[0], dict):
            value = choices[0].get("message")
        if not isinstance(value, dict):
            return None
        if "role" not in value and str(value.get("type")).lower() not in _TEXT_TYPES:
            return None
        content = value["text"] if "text" in value else value.get("content")
        return content if isinstance(content, str) else _parts_text(content)
    if isinstance(value, list) and value and isinstance(value[-1], dict) and "role" in value[-1]:
        return _message_text(value[-1])
    return _parts_text(value)


def _parts_text(parts: Any) -> str | None:
    if not isinstance(parts, list) or not parts:
        return None
    texts = [part.get("text") if isinstance(part, dict) and "type" in part else None for part in parts]
    return "\n".join(text for text in texts if isinstance(text, str)) if any(map(_is_text, texts)) else None


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _ids_as_relevance(value: Any) -> Any:
    listed = isinstance(value, list) and value and all(isinstance(item, (str, int)) for item in value)
    if listed and all(item in (0, 1) for item in value):
        wanted = 'an object of chunk ids and grades wanted, such as {"c-1": 1}'
        raise BadRecord("wrong_type", f"relevance: found a list of 0 and 1 without chunk ids; {wanted}", "relevance")
    return {item if isinstance(item, str) else str(item): 1 for item in value} if listed else KEEP


def _model_as_text(value: Any) -> Any:
    return {"requested": value} if isinstance(value, str) else KEEP


def _no_error(value: Any) -> Any:
    return None if value is False or (isinstance(value, str) and not value.strip()) else KEEP


def _error_as_text(value: Any) -> Any:
    return {"type": _ERROR_TYPE, "message": value} if isinstance(value, str) else KEEP


def normalise_context(item: Any, count: Count) -> Any:
    """One of `contexts` as an object with the fields of a chunk, as far as a rule applies."""
    if isinstance(item, list) and len(item) == 2 and isinstance(item[0], (dict, str)) and type(item[1]) in (int, float):
        count("context_with_score")
        chunk = normalise_context(item[0], count)
        return {**chunk, "score": item[1]} if isinstance(chunk, dict) else item
    if isinstance(item, str):
        count("context_as_text")
        return {"text": item}
    if not isinstance(item, dict) or item.keys().isdisjoint(WRAPPERS):
        return item
    inner = item.get("kwargs") if "lc" in item else next((item[key] for key in WRAPPERS[1:] if key in item), None)
    if isinstance(inner, dict):
        count("context_wrapped")
        outer = {key: value for key, value in item.items() if value is not inner and key not in ("lc", "type", "id")}
        item = {**inner, **({"id": item["id"]} if "id" in item and "lc" not in item else {}), **outer}
    return item


def with_error_type(error: Any, count: Count) -> Any:
    """An error with a type, which becomes a label."""
    if isinstance(error, dict) and error.get("type") is None and isinstance(error.get("message"), str):
        count("error_without_type")
        return {**error, "type": _ERROR_TYPE}
    return error


def convert_time(value: Any, count: Count) -> Any:
    """A time as a datetime, where its unit or form is certain; raises `BadRecord` where the unit is not."""
    if isinstance(value, str):
        number = _text_as_number(value)
        if number is KEEP:
            return _iso_8601(value, count)
        count("text_as_number")
        value = number
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    if not _FIRST_MS <= value < _LAST_S * 1000:
        value = _as_milliseconds(value, count)
    try:
        return _EPOCH + timedelta(milliseconds=value)
    except OverflowError:
        raise BadRecord("time_out_of_range", "time: before 1970 or after 2105", "time") from None


def _as_milliseconds(value: float, count: Count) -> float:
    """A number beyond the milliseconds that times have, in another unit if it fits one."""
    for rule, per_second in _UNITS.items():
        if _FIRST_S * per_second <= value < _LAST_S * per_second:
            count(rule)
            return value * 1000 if per_second == 1 else value / (per_second // 1000)
    if 0 <= value < _FIRST_MS:
        raise BadRecord("bad_time", "time: looks like seconds; milliseconds or RFC 3339 wanted", "time")
    return value


def _iso_8601(value: str, count: Count) -> Any:
    try:
        return msgspec.convert(value, datetime)
    except msgspec.ValidationError:
        pass
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        return value
    if time.tzinfo is not None:
        count("time_in_iso_8601")
    return time


_NUMBERS = (("text_as_number", _text_as_number),)
_RULES_OF_GRADE = (*_NUMBERS, ("boolean_as_number", _boolean_as_number))
_RULES_OF_KIND: Mapping[str, tuple[tuple[str, Callable[[Any], Any]], ...]] = {
    "text": (("number_as_text", number_as_text),),
    "texts": (("single_value", _single_text),),
    "label": (("number_as_text", number_as_text),),
    "number": _NUMBERS,
    "count": (*_NUMBERS, ("decimal_as_count", _decimal_as_count)),
    "objects": (("single_value", _single_object),),
}
_RULES_OF_FIELD: Mapping[str, tuple[tuple[str, Callable[[Any], Any]], ...]] = {
    "question": (("number_as_text", number_as_text), ("messages_as_text", _messages_as_text)),
    "answer": (("number_as_text", number_as_text), ("messages_as_text", _messages_as_text)),
    "contexts.text": (("number_as_text", number_as_text), ("messages_as_text", _messages_as_text)),
    "contexts": (("single_value", _single_context),),
    "relevance": (("ids_as_relevance", _ids_as_relevance),),
    "model": (("model_as_text", _model_as_text),),
    "error": (("no_error", _no_error), ("error_as_text", _error_as_text)),
}
