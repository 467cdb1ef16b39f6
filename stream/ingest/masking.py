"""Mask texts as `privacy.store_texts` demands."""

import hmac
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from hashlib import sha256
from typing import Any, cast

from msgspec.structs import replace

from ragtide.evaluators.builtin.pii_leakage import Params as PersonalParams
from ragtide.evaluators.builtin.pii_leakage import pii_leakage
from ragtide.evaluators.builtin.sensitive_data_leakage import Params as SecretParams
from ragtide.evaluators.builtin.sensitive_data_leakage import sensitive_data_leakage
from ragtide.evaluators.leaks import Allowlist, Scan, leaks_of, scanner
from ragtide.evaluators.plan import parameters
from ragtide.evaluators.resources import Batch
from ragtide.evaluators.settings import EvaluatorSettings
from ragtide.evaluators.trace import Trace
from ragtide.sinks.settings import PrivacySettings
from ragtide.stream.ingest.names import cut_name

WITHHELD = "[withheld]"  # replaces a text that could not be scanned
MAX_CHARACTERS = 400_000  # characters of a trace's texts, or names, that are scanned: the evaluators' budget
CHARACTERS_PER_TEXT = 20  # characters that take as long as to begin with a text
_HASH_DIGITS = 16
_APPS = 1_000  # whose allowed values are kept
_NAMES, _NAME = 20_000, 256  # whose masks are kept, and their characters: most names come again and again

Mark = Callable[[str, str], str]  # of a kind and a value, what stands in its place


def by_kind(kind: str, value: str) -> str:
    """The kind alone."""
    return f"[{kind}]"


def by_hash(key: bytes) -> Mark:
    """The kind and a keyed hash of the value: equal for equal values, and useless to guess values without the key."""

    def mark(kind: str, value: str) -> str:
        digest = hmac.new(key, value.encode("utf-8", "replace"), sha256).hexdigest()
        return f"[{kind} {digest[:_HASH_DIGITS]}]"

    return mark


class Masking:
    """Replaces everything that `pii_leakage` and `sensitive_data_leakage` can find, with their parameters, by a mark.

    Kinds, regions and allowed values are their parameters, whether they run or not; they share the scan where they do.
    Kinds that are seldom personal are masked too, unless `kinds` is a list without them.
    """

    def __init__(self, settings: EvaluatorSettings, mark: Mark) -> None:
        personal = cast(PersonalParams, parameters(pii_leakage, settings))
        secrets = cast(SecretParams, parameters(sensitive_data_leakage, settings))
        self._kinds = personal.masked | secrets.wanted
        self._scan = scanner(personal.regions)
        self._allowed = lru_cache(_APPS)(personal.allowlist)
        self._mark = mark
        self._mask_short_name = lru_cache(_NAMES)(self._mask_name)

    def mask(self, trace: Trace, shared: Batch) -> Trace:
        """Mask the texts of the trace: question, answer, chunks, references, error message and attributes.

        A text that is too long, or holds too much that looks like a telephone number, is withheld as a whole. So are
        those that do not fit into `MAX_CHARACTERS` with the texts before them.
        """
        hide = limit_per_trace(
            partial(self._replace_leaks, allowed=self._allowed(trace.app), scan=partial(shared.once, self._scan))
        )
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

    def mask_text(self, text: str, shared: Batch) -> str:
        """Mask a text that belongs to no app."""
        return self._replace_leaks(text, self._allowed(""), partial(shared.once, self._scan))

    def mask_name(self, app: str, name: str, before: str = "") -> str:
        """Mask a short text of an app; cut what marks make longer than a name may be. Caches the latest masks."""
        return (self._mask_short_name if len(name) + len(before) <= _NAME else self._mask_name)(app, name, before)

    def _mask_name(self, app: str, name: str, before: str) -> str:
        return cut_name(self._replace_leaks(name, self._allowed(app), self._scan, before))

    def _replace_leaks(self, text: str, allowed: Allowlist, scan: Callable[[str], Scan], before: str = "") -> str:
        """Replace leaks in `text` by marks. `before` is context ("password: ") and not part of the result."""
        whole = before + text
        if len(whole) > MAX_CHARACTERS:
            return WITHHELD
        leaks = leaks_of(whole, scan(whole), self._kinds, allowed)
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


def limit_per_trace(hide: Callable[..., str]) -> Callable[..., str]:
    """Wrap `hide` for one trace: a text beyond the limit of the trace becomes `WITHHELD`."""
    left = MAX_CHARACTERS

    def bounded(text: str, **more: Any) -> str:
        nonlocal left
        if len(text) + CHARACTERS_PER_TEXT > left:
            return WITHHELD
        left -= len(text) + CHARACTERS_PER_TEXT
        return hide(text, **more)

    return bounded


def _optional(hide: Callable[[str], str], text: str | None) -> str | None:
    return hide(text) if text else text


def _in_attributes(hide: Callable[..., str], value: Any, name: str = "") -> Any:
    """Mask names and values of an attribute at any depth; numbers too, if their text would be masked."""
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
    """Make the masking that the settings ask for; None if texts are stored as sent, or not at all."""
    if privacy.store_texts == "masked":
        return Masking(evaluators, by_kind)
    if privacy.store_texts == "hashed":
        return Masking(evaluators, by_hash(privacy.hash_key.get_secret_value().encode()))
    return None
