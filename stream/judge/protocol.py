"""The chat completions API: requests, answers and errors, as far as judges need them."""

import re
from dataclasses import dataclass
from typing import Any

import msgspec

from ragtide.evaluators.judge.replies import JudgeReply, schema_of
from ragtide.evaluators.judge.settings import JudgeEndpoint
from ragtide.stream.judge.usage import Tokens, estimate_tokens

MODES = ("json_schema", "json_object", "none")  # of structured output, the best first
_CODE = re.compile(r"[a-z]+(_[a-z]+)*\Z")  # nothing that could be a key or a user's text
_LONGEST_CODE = 48


class Message(msgspec.Struct, frozen=True):
    """A message that is sent."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Request:
    """Messages, and the form of the reply."""

    messages: tuple[Message, ...]
    form: type[JudgeReply]
    vote: int = 0


class Completion(msgspec.Struct, frozen=True):
    """What the model said. `refused` is whether it, or a filter, declined; `cut` whether it reached max_tokens."""

    text: str
    tokens: Tokens
    refused: bool
    cut: bool


class _Part(msgspec.Struct, frozen=True):
    text: str = ""


class _Said(msgspec.Struct, frozen=True):
    content: str | list[_Part] | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct, frozen=True):
    message: _Said
    finish_reason: str | None = None


class _Details(msgspec.Struct, frozen=True):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct, frozen=True):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: _Details | None = None


class _Answer(msgspec.Struct, frozen=True):
    choices: list[_Choice]
    usage: _Usage | None = None


class _Error(msgspec.Struct, frozen=True):
    code: Any = None
    type: Any = None


class _ErrorAnswer(msgspec.Struct, frozen=True):
    error: _Error


def encode_request(request: Request, settings: JudgeEndpoint, mode: str) -> bytes:
    """Return the body of a request. Votes need a temperature: at 0 all would be alike."""
    body: dict[str, Any] = {"model": settings.model, "messages": request.messages}
    if settings.temperature is not None:
        body["temperature"] = max(settings.temperature, 0.7) if request.vote else settings.temperature
    body[settings.max_tokens_field] = settings.max_tokens
    if mode == "json_schema":
        schema = {"name": request.form.__name__.lower(), "strict": True, "schema": schema_of(request.form)}
        body["response_format"] = {"type": mode, "json_schema": schema}
    elif mode == "json_object":
        body["response_format"] = {"type": mode}
    return msgspec.json.encode(body | settings.parameters)


def decode_answer(body: bytes, sent_bytes: int) -> Completion | None:
    """Return the completion, or None if the body is not one."""
    try:
        answer = msgspec.json.decode(body, type=_Answer)
        choice = answer.choices[0]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, IndexError):
        return None
    said, content = choice.message, choice.message.content
    text = content if isinstance(content, str) else "".join(part.text for part in content or ())
    return Completion(
        text,
        _tokens(answer.usage) or estimate_tokens(sent_bytes, len(text.encode("utf-8", "replace"))),
        refused=bool(said.refusal) or choice.finish_reason == "content_filter",
        cut=choice.finish_reason == "length",
    )


def error_code(body: bytes) -> str:
    """Return the endpoint's code of an error, such as "insufficient_quota". "" if it has none that is surely one."""
    try:
        error = msgspec.json.decode(body, type=_ErrorAnswer).error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    return safe_code(error.code) or safe_code(error.type)


def safe_code(code: object) -> str:
    """Return the code, or "" for something that could be a key or a user's text."""
    return code if isinstance(code, str) and len(code) <= _LONGEST_CODE and _CODE.match(code) else ""


def _tokens(usage: _Usage | None) -> Tokens | None:
    if usage is None or usage.prompt_tokens <= 0:
        return None
    details = usage.prompt_tokens_details
    cached = (details.cached_tokens if details else 0) or 0
    return Tokens(usage.prompt_tokens, min(max(0, cached), usage.prompt_tokens), max(0, usage.completion_tokens), True)
