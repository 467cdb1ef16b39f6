"""Which evidence counts where a version of an evaluator takes the place of another, or comes back. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from drift.rules.series import Rule, Verdict

_LAST = 5  # stretches that tell how long one of a fingerprint takes
_PATIENCE = 2  # times as long it may be silent while another scores: a small share of the traffic has pauses


class Begun(NamedTuple):
    """A fingerprint of a series and when it was seen there first; the newest is the greatest."""

    at: float
    fingerprint: str


class Span(NamedTuple):
    """Windows that were judged together; seconds since 1970."""

    start: float
    end: float


class Scoring(NamedTuple):
    """A fingerprint that scores now, and since when: what it said before another took its place is of the past."""

    begun: Begun
    since: float


def scoring_now(spans: Mapping[Begun, Sequence[Span]]) -> list[Scoring]:
    """Those not silent for longer than their own pace explains, the newest last; each has spans, in order of time."""
    until = max((of_one[-1].end for of_one in spans.values()), default=0.0)
    return [
        Scoring(begun, _since(of_one, (span for other, found in spans.items() if other != begun for span in found)))
        for begun, of_one in sorted(spans.items())
        if until - of_one[-1].end <= _pause(of_one)
    ]


def verdicts_that_count(rule: Rule, verdicts: Mapping[Begun, Sequence[Verdict]]) -> list[Verdict]:
    """In order of time, those of the newest fingerprint that scores now; of rule `any` of all that do.

    One bad record is one, whichever version found it.
    """
    enough = {begun: [v for v in some if v.samples >= rule.min_sample] for begun, some in verdicts.items()}
    spans = {begun: [Span(v.start.timestamp(), v.end.timestamp()) for v in some] for begun, some in enough.items()}
    scoring = scoring_now({begun: some for begun, some in spans.items() if some})
    chosen = scoring if rule.kind == "any" else scoring[-1:]
    found = [v for one in chosen for v in enough[one.begun] if v.start.timestamp() >= one.since]
    return sorted(found, key=lambda verdict: (verdict.start, verdict.end))


def _pause(spans: Sequence[Span]) -> float:
    return _PATIENCE * max(span.end - span.start for span in spans[-_LAST:])


def _since(spans: Sequence[Span], others: Iterable[Span]) -> float:
    """The start of the last of its spans before which it was silent for too long while others scored."""
    between = list(others)
    for nth in range(len(spans) - 1, 0, -1):
        before, after = spans[nth - 1], spans[nth]
        if after.start - before.end > _pause(spans[:nth]) and any(
            before.end <= other.start and other.end <= after.start for other in between
        ):
            return after.start
    return spans[0].start
