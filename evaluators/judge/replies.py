"""The forms of a judge's reply. Their JSON schemas go to endpoints with structured output."""

import copy
from collections.abc import Iterable
from typing import Any, Self

import msgspec

_LEFT_OUT = ("title", "description", "default", "$defs")  # of schemas


class JudgeReply(msgspec.Struct, frozen=True):
    """Base of all replies."""

    def fault(self, counts: tuple[int, ...]) -> str | None:
        """Return why the reply does not fit its call, or None. Never quotes it."""
        return None

    @classmethod
    def sample(cls, counts: tuple[int, ...], texts: tuple[str, ...], bits: int) -> Self:
        """Return a reply that fits, for tests without a judge. `bits` are random bits."""
        raise NotImplementedError


class Verdict(msgspec.Struct, frozen=True):
    """The verdict on the item with this number."""

    number: int
    verdict: bool


class TrueOrFalse(JudgeReply, frozen=True):
    """One verdict."""

    verdict: bool

    @classmethod
    def sample(cls, counts: tuple[int, ...], texts: tuple[str, ...], bits: int) -> Self:
        """A random verdict."""
        return cls(bool(bits & 1))


class Texts(JudgeReply, frozen=True):
    """Texts that the judge wrote: statements, questions, entities."""

    texts: tuple[str, ...]

    def fault(self, counts: tuple[int, ...]) -> str | None:
        """With a count, at least so many texts that are not blank are required."""
        given = sum(bool(text.strip()) for text in self.texts)
        return f"it has {given} texts instead of {counts[0]}" if counts and given < counts[0] else None

    @classmethod
    def sample(cls, counts: tuple[int, ...], texts: tuple[str, ...], bits: int) -> Self:
        """Pieces of the last text."""
        words = texts[-1][:400].split() if texts else []
        pieces = [" ".join(words[start : start + 8]) for start in range(0, len(words), 8)]
        return cls(tuple((pieces or (["Why?"] if counts else []))[:1] * counts[0] if counts else pieces))


class Verdicts(JudgeReply, frozen=True):
    """A verdict on each item."""

    verdicts: tuple[Verdict, ...]

    def fault(self, counts: tuple[int, ...]) -> str | None:
        """Every number from 1 on, once each."""
        return _numbering_fault((verdict.number for verdict in self.verdicts), counts[0])

    @property
    def in_order(self) -> list[bool]:
        """The verdicts by number."""
        return [one.verdict for one in sorted(self.verdicts, key=lambda one: one.number)]

    @classmethod
    def sample(cls, counts: tuple[int, ...], texts: tuple[str, ...], bits: int) -> Self:
        """A random verdict on each."""
        return cls(tuple(Verdict(at + 1, bool(bits >> at % 64 & 1)) for at in range(counts[0])))


class Picks(JudgeReply, frozen=True):
    """A verdict on each chunk, and the numbers of the sentences that the judge picked."""

    chunks: tuple[Verdict, ...]
    sentences: tuple[int, ...]

    def fault(self, counts: tuple[int, ...]) -> str | None:
        """Every chunk once, and sentences that exist. `counts`: chunks, sentences."""
        if not set(self.sentences) <= set(range(1, counts[1] + 1)):
            return f"it picks sentences that are not among the {counts[1]}"
        return _numbering_fault((chunk.number for chunk in self.chunks), counts[0])

    @property
    def in_order(self) -> list[bool]:
        """The verdicts by number."""
        return [one.verdict for one in sorted(self.chunks, key=lambda one: one.number)]

    @classmethod
    def sample(cls, counts: tuple[int, ...], texts: tuple[str, ...], bits: int) -> Self:
        """Random verdicts and sentences."""
        chunks = tuple(Verdict(at + 1, bool(bits >> at % 64 & 1)) for at in range(counts[0]))
        return cls(chunks, tuple(at + 1 for at in range(counts[1]) if bits >> at % 61 & 1))


class Grade(JudgeReply, frozen=True):
    """A grade. `counts`: the lowest and the highest."""

    grade: int

    def fault(self, counts: tuple[int, ...]) -> str | None:
        """A grade within the scale."""
        low, high = counts
        return None if low <= self.grade <= high else f"the grade is not from {low} to {high}"

    @classmethod
    def sample(cls, counts: tuple[int, ...], texts: tuple[str, ...], bits: int) -> Self:
        """A random grade."""
        low, high = counts
        return cls(low + bits % (high - low + 1))


def schema_of(reply: type[JudgeReply]) -> dict[str, Any]:
    """Return the JSON schema, as strict structured output takes it.

    Objects are closed and every field is required, one with a default may be null. No references, no descriptions.
    """
    schema = msgspec.json.schema(reply)
    defined = schema.get("$defs", {})
    closed: dict[str, Any] = _closed(schema, defined)
    closed.pop("$defs", None)
    return closed


def _closed(node: Any, defined: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_closed(one, defined) for one in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _closed(copy.deepcopy(defined[node["$ref"].rpartition("/")[2]]), defined)
    made = {key: _closed(value, defined) for key, value in node.items() if key not in _LEFT_OUT}
    if made.get("type") != "object":
        return made
    return {**made, "required": list(made.get("properties", ())), "additionalProperties": False}


def _numbering_fault(numbers: Iterable[int], count: int) -> str | None:
    given = list(numbers)
    if sorted(given) == list(range(1, count + 1)):
        return None
    return f"its {len(given)} verdicts are not one for each number from 1 to {count}"
