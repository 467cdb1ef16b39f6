"""Mask names in traces unless `privacy.store_texts` is full.

A user may have written into any of them: a session's id may be an e-mail address. Names that the deployment itself
gives (see `AS_SENT` of `ragtide.sinks.settings`) stay, since rows, rules and series are found by them.

The same name is masked in the same way in every row, so that series, links between traces and evidence still fit. With
`masked` two names that differ in personal data alone become one; with `hashed` they stay apart.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace as changed
from functools import partial

from msgspec.structs import replace

from ragtide.evaluators.outcome import Evidence, Outcome, Scored
from ragtide.evaluators.settings import EvaluatorSettings
from ragtide.evaluators.trace import AppError, Chunk, Relationship, Technique, TestCase, Trace
from ragtide.sinks.settings import PrivacySettings
from ragtide.stream.ingest.masking import Masking, by_hash, by_kind, limit_per_trace

Hide = Callable[[str], str]
# Nobody is named by one, and looking through its digits takes longer than through all other names.
_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")


class NameMasking:
    """Masks names with the scan of texts; user ids too, if `users`, because they are not hashed."""

    def __init__(self, masking: Masking, *, users: bool) -> None:
        self._masking = masking
        self._users = users

    def mask(self, trace: Trace) -> Trace:
        """Mask the names of the trace, not its texts. Names beyond `LONGEST` together are withheld."""
        masked = limit_per_trace(partial(self._masking.mask_name, trace.app))

        def hide(name: str, before: str = "") -> str:
            return name if _UUID.fullmatch(name) else masked(name, before=before)

        contexts, error, case, user = trace.contexts, trace.error, trace.test_case, trace.user_id
        return replace(
            trace,
            session_id=trace.session_id and hide(trace.session_id),
            span_id=trace.span_id and hide(trace.span_id),
            user_id=hide(user) if user and self._users else user,
            contexts=contexts and _mask_chunk_ids(contexts, hide),
            error=error and AppError(hide(error.type), error.message),
            categories=tuple(map(hide, trace.categories)),
            segments={hide(name): hide(value, f"{name}: ") for name, value in trace.segments.items()},
            relationships=tuple(_relationship(one, hide) for one in trace.relationships),
            test_case=case
            and TestCase(_optional(case.suite, hide), _optional(case.test, hide), _optional(case.key, hide)),
        )

    def mask_author(self, name: str) -> str:
        """Mask the author of a label."""
        return self._masking.mask_name("", name) if self._users else name


def with_chunk_ids(outcome: Outcome | None, chunk_ids: Mapping[str, str]) -> Outcome | None:
    """Replace chunk ids in the outcome's evidence."""
    if not isinstance(outcome, Scored) or not outcome.evidence:
        return outcome
    return changed(outcome, evidence=tuple(_with_chunk_id(one, chunk_ids) for one in outcome.evidence))


def new_chunk_ids(before: Trace, after: Trace) -> Mapping[str, str]:
    """New ids of masked chunks by their old ids."""
    pairs = zip(before.contexts or (), after.contexts or (), strict=True)
    return {old.id: new.id for old, new in pairs if old.id != new.id}


def name_masking_of(privacy: PrivacySettings, evaluators: EvaluatorSettings) -> NameMasking | None:
    """Make the masking that the settings ask for; None if names are stored as sent."""
    if privacy.store_texts == "full":
        return None
    hashed = privacy.store_texts == "hashed"
    mark = by_hash(privacy.hash_key.get_secret_value().encode()) if hashed else by_kind
    return NameMasking(Masking(evaluators, mark), users=not privacy.hash_users)


def _mask_chunk_ids(contexts: tuple[Chunk, ...], hide: Hide) -> tuple[Chunk, ...]:
    """Mask chunk ids so that different ids stay different: evidence points to one of them."""
    ids: dict[str, str] = {}
    times: Counter[str] = Counter()
    for chunk in contexts:
        if chunk.id in ids:
            continue
        ids[chunk.id] = shown = hide(chunk.id)
        if shown != chunk.id:
            times[shown] += 1
            if times[shown] > 1:
                ids[chunk.id] = f"{shown} {times[shown]}"
    return tuple(chunk if ids[chunk.id] == chunk.id else replace(chunk, id=ids[chunk.id]) for chunk in contexts)


def _relationship(one: Relationship, hide: Hide) -> Relationship:
    """Keep the trace id: traces are found by it."""
    techniques = tuple(
        Technique(hide(each.technique), hide(each.intensity) if isinstance(each.intensity, str) else each.intensity)
        for each in one.techniques
    )
    return Relationship(hide(one.type), one.trace_id, _optional(one.test_case, hide), techniques)


def _with_chunk_id(one: Evidence, chunk_ids: Mapping[str, str]) -> Evidence:
    new = chunk_ids.get(one.chunk_id or "")
    return one if new is None else changed(one, chunk_id=new)


def _optional(name: str | None, hide: Hide) -> str | None:
    return hide(name) if name else name
