"""Reads a judge's reply: JSON as it should be, or JSON with prose or a fence round it, or with wrong types."""

import json
import re
from collections.abc import Iterator, Mapping
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from ragtide.evaluators.judge.replies import JudgeReply, schema_of

Reply = TypeVar("Reply", bound=JudgeReply)
_WORDS = {"yes": True, "true": True, "y": True, "1": True, "no": False, "false": False, "n": False, "0": False}
_THINKING = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)
_MOST_STARTS = 64  # places where JSON may begin
_MOST_SHOWN = 160  # characters
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_WORD = re.compile(r"""[^\s{}\[\]"':,.`<>/]+""", re.ASCII)  # all but structure: vowel signs and emoji are users' too
_ALWAYS_SHOWN = frozenset({"json", "true", "false", "null"})


class UnreadableReply(ValueError):
    """The reply cannot be read. The message says why and never quotes it."""


def read_reply(text: str, form: type[Reply], counts: tuple[int, ...] = ()) -> Reply:
    """Return the reply. Raises `UnreadableReply`.

    Of several JSON values in prose the last that fits counts: a judge may repeat its input first.
    """
    fault = ""
    for value in _values(_THINKING.sub("", text)):
        try:
            reply = msgspec.convert(_fitted(value, form), form, strict=False)
        except (msgspec.ValidationError, RecursionError) as error:
            fault = fault or (f"{error}" if isinstance(error, msgspec.ValidationError) else "it is nested too deeply")
            continue
        wrong = reply.fault(counts)
        if wrong is None:
            return reply
        fault = fault or wrong
    raise UnreadableReply(fault or ("it is empty" if not text.strip() else "it has no JSON that can be read"))


def redact(text: str, form: type[JudgeReply]) -> str:
    """Return the start of a reply without its words: they may be a user's. Names of the form stay.

    "x" stands for everything else but JSON's signs: `{"verdicts": [{"number": x, "verdict": "xxxxx"}], xxxx`.
    """
    known = _ALWAYS_SHOWN | set(_WORD.findall(json.dumps(schema_of(form))))
    cut = text[: 4 * _MOST_SHOWN]
    shown = _WORD.sub(lambda word: word[0] if word[0] in known else "x" * min(len(word[0]), 8), cut)
    shown = " ".join(shown.split())
    return shown if len(shown) <= _MOST_SHOWN and len(cut) == len(text) else f"{shown[:_MOST_SHOWN]}..."


def _values(text: str) -> Iterator[Any]:
    """Yield the JSON values in a text: all of it (or a bare "Yes."), else the outermost ones, the last first."""
    try:
        yield json.loads(text)
        return
    except (ValueError, RecursionError):
        if _truth_value(text) is not None:
            yield text
            return
    decoder, found, at = json.JSONDecoder(), list[Any](), 0
    for _ in range(_MOST_STARTS):
        start = re.compile(r"[{\[]").search(text, at)
        if start is None:
            break
        try:
            value, at = decoder.raw_decode(text, start.start())
            found.append(value)
        except (ValueError, RecursionError):
            at = start.end()
    yield from reversed(found)


def _truth_value(text: str) -> bool | None:
    """Return the truth value that a word means, or None."""
    return _WORDS.get(text.strip(" \n.!*`\"'").lower())


def _fitted(value: Any, form: Any) -> Any:
    """Fit a value to a form: a bare value becomes its only field, words truth values, a wrapper is taken off."""
    if isinstance(form, UnionType) and value is not None:
        form = next(one for one in get_args(form) if one is not NoneType)
    if not (isinstance(form, type) and issubclass(form, msgspec.Struct)):
        if form is str and isinstance(value, str):
            return _SURROGATE.sub("\ufffd", value)  # JSON may hold half a pair, which has no UTF-8
        if form is bool and isinstance(value, str):
            truth = _truth_value(value)
            return value if truth is None else truth
        if form is int and isinstance(value, str):
            return int(value) if value.strip().isascii() and value.strip().isdigit() and len(value) < 10 else value
        if get_origin(form) is tuple:
            item = get_args(form)[0]
            return [_fitted(one, item) for one in value] if isinstance(value, list) else value
        return value
    hints = get_type_hints(form)
    if not isinstance(value, Mapping) and len(hints) == 1:
        value = {next(iter(hints)): value}
    if isinstance(value, Mapping) and len(value) == 1 and not hints.keys() & value.keys():
        [value] = value.values()
    if not isinstance(value, Mapping):
        return value
    return {name: _fitted(value[name], hint) for name, hint in hints.items() if name in value}
