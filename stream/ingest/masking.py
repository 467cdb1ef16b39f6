"""Texts as `privacy.store_texts` wants them stored: with a mark in the place of what must not stand there."""

import hmac
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from hashlib import sha256
from typing import Any, cast

from msgspec.structs import replace

from evaluators.builtin.pii_leakage import Params as PersonalParams
from evaluators.builtin.pii_leakage import pii_leakage
from evaluators.builtin.sensitive_data_leakage import Params as SecretParams
from evaluators.builtin.sensitive_data_leakage import sensitive_data_leakage
from evaluators.leaks import Allowed, leaks_of, scanner
from evaluators.plan import parameters
from evaluators.resources import Batch
from evaluators.settings import EvaluatorSettings
from evaluators.trace import Trace
from sinks.settings import PrivacySettings

WITHHELD = "[withheld]"  # in the place of a text that could not be looked through
LONGEST = 400_000  # characters of a text that is looked through: the evaluators' own budget
_HASH_DIGITS = 16
_APPS = 1_000  # whose allowed values are kept

Mark = Callable[[str, str], str]  # of a kind and a value, what stands in its place


def by_kind(kind: str, value: str) -> str:
    """The kind alone."""
    return f"[{kind}]"


def by_hash(key: bytes) -> Mark:
    """The kind and a keyed hash of the value: the same for the same one, and who lacks the key cannot try values."""

    def mark(kind: str, value: str) -> str:
        digest = hmac.new(key, value.encode("utf-8", "replace"), sha256).hexdigest()
        return f"[{kind} {digest[:_HASH_DIGITS]}]"

    return mark


class Masking:
    """Puts a mark in the place of whatever `pii_leakage` and `sensitive_data_leakage` find, as they are configured.

    Kinds, region and allowed values are their parameters, whether they run or not; they share the scan where they do.
    """

    def __init__(self, settings: EvaluatorSettings, mark: Mark) -> None:
        personal = cast(PersonalParams, parameters(pii_leakage, settings))
        secrets = cast(SecretParams, parameters(sensitive_data_leakage, settings))
        self._kinds = personal.wanted | secrets.wanted
        self._scan = scanner(personal.region)
        self._allowed = lru_cache(_APPS)(personal.allowed)
        self._mark = mark

    def masked(self, trace: Trace, shared: Batch) -> Trace:
        """The trace with its texts masked: question, answer, chunks, references, error message and attributes.

        A text that is too long, or holds too much that looks like a telephone number, is withheld as a whole.
        """
        hide = partial(self._hidden, allowed=self._allowed(trace.app), shared=shared)
        error, contexts, expected = trace.error, trace.contexts, trace.expected
        return replace(
            trace,
            question=_optional(hide, trace.question),
            answer=_optional(hide, trace.answer),
            contexts=contexts and tuple(replace(chunk, text=_optional(hide, chunk.text)) for chunk in contexts),
            expected=expected and tuple(map(hide, expected)),
            error=error and replace(error, message=_optional(hide, error.message)),
            attributes=_in_attributes(hide, trace.attributes),
        )

    def text(self, text: str, shared: Batch) -> str:
        """A text of no app in particular, masked likewise."""
        return self._hidden(text, self._allowed(""), shared)

    def _hidden(self, text: str, allowed: Allowed, shared: Batch, before: str = "") -> str:
        """`text` with marks; `before` is what its name tells of it ("password: ") and stays out of the result."""
        whole = before + text
        if len(whole) > LONGEST:
            return WITHHELD
        leaks = leaks_of(whole, shared.once(self._scan, whole), self._kinds, allowed)
        if not leaks.complete:
            return WITHHELD
        parts: list[str] = []
        position = len(before)
        for hit in leaks.hits:
            if hit.end > position:
                start = max(hit.start, position)
                parts += (whole[position:start], self._mark(hit.kind, whole[start : hit.end]))
                position = hit.end
        return "".join((*parts, whole[position:])) if parts else text


def _optional(hide: Callable[[str], str], text: str | None) -> str | None:
    return hide(text) if text else text


def _in_attributes(hide: Callable[..., str], value: Any, name: str = "") -> Any:
    """Names and values of an attribute, at any depth; a number is masked where it would be as a text."""
    if isinstance(value, Mapping):
        return {hide(key): _in_attributes(hide, item, key) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_in_attributes(hide, item, name) for item in value]
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return value
    text = str(value)
    hidden = hide(text, before=f"{name}: ")
    return value if hidden == text else hidden


def masking_of(privacy: PrivacySettings, evaluators: EvaluatorSettings) -> Masking | None:
    """What the settings ask for; None where texts are stored as they came, or not at all."""
    if privacy.store_texts == "masked":
        return Masking(evaluators, by_kind)
    if privacy.store_texts == "hashed":
        return Masking(evaluators, by_hash(privacy.hash_key.get_secret_value().encode()))
    return None
