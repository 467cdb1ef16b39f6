"""Judges closed windows of live traffic: every (rule, stretch, revision) once, whoever leads, however often it runs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from drift.leadership import Term
from drift.rules import any as any_record
from drift.rules import coverage, mean, share, stored, value
from drift.rules.allowed import allowed_records
from drift.rules.choose import rules_for
from drift.rules.series import NOTHING, Judgement, Rule, Series, Verdict, Window
from drift.rules.stretches import JudgedStretch, to_judge
from drift.settings import RuleSettings
from drift.windows.metrics import WatchedMetric
from drift.windows.segments import SegmentValues
from sinks.clickhouse.database import Database
from sinks.rows import LIVE

_HORIZON_S = 3600  # how far back a rule looks that is new to a series
_HOUR = 3600


@dataclass(frozen=True, slots=True)
class Round:
    """What one look of the rules found; `position` is for `stored.finish`."""

    rules: Mapping[Series, tuple[Rule, ...]]
    verdicts: int
    position: int


def judge(
    database: Database,
    metrics: Mapping[str, WatchedMetric],
    settings: RuleSettings,
    base_s: int,
    segments: SegmentValues,
    term: Term,
) -> Round:
    """The rules of every series that changed, whose verdicts are stored when this returns.

    Asked again before `stored.finish`, it gives the same rules and judges nothing twice.
    """
    since = stored.position(database)
    touched, position = stored.news(database, base_s, since)
    rules = {
        one.series: rules_for(one.series, metrics[one.series.metric], settings)
        for one in touched
        if one.series.metric in metrics
    }
    judged = stored.judged_stretches(database, {rule.rule_id for found in rules.values() for rule in found}, touched)
    looks = [
        _Look(rule, one, stretches, _needed(stretches, one, base_s * rule.m))
        for one in touched
        for rule in rules.get(one.series, ())
        for stretches in [judged.get((rule.rule_id, one.series, one.fingerprint), [])]
    ]
    hours: dict[int, list[_Look]] = {}
    for look in looks:
        hours.setdefault(look.first // _HOUR * _HOUR, []).append(look)
    count = 0
    for hour, some in hours.items():
        windows = stored.windows(database, metrics, base_s, hour, [look.one for look in some], since)
        rows = [
            verdict
            for look in some
            for verdict in _verdicts(
                database, look, windows.get((look.one.series, look.one.fingerprint), []), segments, term
            )
        ]
        database.insert("verdicts", rows)
        count += len(rows)
    return Round({series: found for series, found in rules.items() if found}, count, position)


@dataclass(frozen=True, slots=True)
class _Look:
    """One rule's look at one series: the stretches it judged before, and from when on windows matter to it."""

    rule: Rule
    one: stored.Touched
    stretches: Sequence[JudgedStretch]
    first: int


def _verdicts(
    database: Database, look: _Look, windows: Sequence[Window], segments: SegmentValues, term: Term
) -> Iterable[Verdict]:
    rule, one = look.rule, look.one
    samples = samples_of(rule)
    recent = [window for window in windows if window.start >= look.first]
    for window in to_judge(recent, look.stretches, rule.min_sample, samples):
        found = judgement(database, rule, one.series, segments, window) if samples(window) else None
        yield verdict_of(rule, one.series, one.fingerprint, window, found or NOTHING, term)


def verdict_of(rule: Rule, series: Series, fingerprint: str, window: Window, found: Judgement, term: Term) -> Verdict:
    """The row that says so; never a breach on too few records."""
    return Verdict(
        rule.rule_id,
        LIVE,
        *series,
        fingerprint,
        datetime.fromtimestamp(window.start, UTC),
        datetime.fromtimestamp(window.end, UTC),
        window.revision,
        int(found.breached and found.samples >= rule.min_sample),
        found.value,
        found.threshold,
        found.samples,
        found.wrong,
        int(window.incomplete),
        term.next_version(),
    )


def judgement(
    database: Database, rule: Rule, series: Series, segments: SegmentValues, window: Window
) -> Judgement | None:
    """What the rule says of the window; None where there is nothing to judge."""
    match rule.kind:
        case "mean":
            return mean.judge(window, rule)
        case "share":
            return share.judge(window, rule)
        case "value":
            return value.judge(window, rule, series)
        case "coverage":
            return coverage.judge(window, rule)
        case "any":
            excused = 0
            if (rule.allow_kinds or rule.allow_texts) and rule.wrong(window):
                excused = allowed_records(database, rule, series, segments, window.start, window.end)
            return any_record.judge(window, rule, excused)


def samples_of(rule: Rule) -> Callable[[Window], int]:
    """How many records of a window the rule rests on."""
    return _applicable if rule.kind == "coverage" else _scored


def _applicable(window: Window) -> int:
    return window.applicable


def _scored(window: Window) -> int:
    return window.scored


def _needed(judged: Sequence[JudgedStretch], one: stored.Touched, k_of_m_s: int) -> int:
    """From where on windows must be read: what changed, the stretch it stands in, and what waits to be pooled."""
    if not judged:
        return one.changed_from - max(_HORIZON_S, k_of_m_s)
    around = [stretch.start for stretch in judged if stretch.end > one.changed_from]
    return min([one.changed_from, max(stretch.end for stretch in judged), *around])
