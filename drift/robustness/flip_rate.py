"""Check how often a metric flips between pass and fail under each sequence of perturbations.

A problem opens if the whole 95 % interval of the flip rate (Wilson) is above the limit. It clears once the rate itself
is not. With fewer pairs than `rules.flip_pairs` nothing changes.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ragtide.drift import sql
from ragtide.drift.array_types import Flags, Integers
from ragtide.drift.checks import Check, CheckContext, Observation
from ragtide.drift.problems import Detection, ProblemKey, build_details
from ragtide.drift.robustness.flip_pairs import PAIRS_PER_BATCH, FlipRow, flip_rows, store_pairs
from ragtide.drift.robustness.perturbation_links import NEWEST, STREAM, PerturbationLink, id_batches, perturbation_links
from ragtide.drift.robustness.repeated_questions import above_limit, describe_share, lookback_start, share_attributes
from ragtide.drift.settings import JobSettings
from ragtide.drift.stats import Share, calendar, wilson
from ragtide.drift.text import scope_label, timestamp
from ragtide.sinks.clickhouse.database import Database

_EXAMPLES = 5  # pairs
_MAX_TOPICS = 10
_MINUTE = 60  # a lookback starts at a whole one


class _FlipExample(NamedTuple):
    """A flip; they sort from the worst: from pass to fail by the largest difference."""

    is_better: bool
    nearness: float
    trace_id: str
    original_id: str


@dataclass(slots=True)
class _FlipCounts:
    """Pairs of one key. `unknown` pairs have no comparable scores, `unpaired` traces no original yet."""

    key: ProblemKey
    first: datetime
    last: datetime
    pairs: int = 0
    worse: int = 0
    better: int = 0
    unknown: int = 0
    unpaired: int = 0
    examples: list[_FlipExample] = field(default_factory=list)
    by_topic: dict[str, Share] = field(default_factory=dict)

    @property
    def share(self) -> Share:
        """Share of flips; needs at least one pair."""
        return Share(self.worse + self.better, self.pairs)


class _TimedRow(NamedTuple):
    """A row, the time at which it was `known` (the later trace's), and its own time `at`; seconds since 1970."""

    known: float
    at: float
    row: FlipRow


class FlipRate(Check):
    """A metric flips in too great a share of the pairs of perturbed questions and their originals."""

    kind = "flip"
    job = "flips"

    def interval_s(self, jobs: JobSettings) -> float:
        """Return the seconds between two runs."""
        return jobs.rates_every_s

    def observe(self, ctx: CheckContext, now: datetime) -> Iterator[Observation]:
        """Observe the perturbed traces of `rules.repeats_within_s`; a live run first updates table `flips`."""
        since = lookback_start(ctx, now)
        links = perturbation_links(ctx.database, since, timedelta(seconds=ctx.rules.repeats_within_s))
        if ctx.term is not None:
            store_pairs(ctx.database, links, ctx.metrics, ctx.rules, since, ctx.term, now)
        for key, counts in _load_counts(ctx.database, links, since).items():
            yield _observation(ctx, key, counts.share, partial(_detection, ctx, counts), counts.pairs + counts.unknown)

    def history(self, ctx: CheckContext, first: int, until: int) -> Iterator[tuple[int, Observation]]:
        """Observe at each end of a base window; earlier pairs count."""
        instants = np.arange(first + ctx.windows.base_s, until + 1, ctx.windows.base_s)
        sinces = ((instants - ctx.rules.repeats_within_s) // _MINUTE * _MINUTE).astype(np.int64)
        for key, pairs in sorted(_timed_pairs(ctx, first, until).items()):
            known, compared, flipped = (
                _count_within(pairs, those, instants, sinces).tolist()
                for those in (
                    np.ones(len(pairs), bool),
                    np.array([one.row.outcome != "unknown" for one in pairs]),
                    np.array([one.row.outcome in ("worse", "better") for one in pairs]),
                )
            )
            for nth, (since, at) in enumerate(zip(sinces.tolist(), instants.tolist(), strict=True)):
                share = Share(flipped[nth], compared[nth])
                detection = partial(_past_detection, ctx, key, pairs, since, at)
                yield at, _observation(ctx, key, share, detection) if known[nth] else Observation(key, "good")


def _observation(
    ctx: CheckContext, key: ProblemKey, flipped: Share, detection: Callable[[], Detection], read: int = 0
) -> Observation:
    own = ctx.rules.of(key.app)
    state = above_limit(flipped, own.flip_limit) if flipped.n >= own.flip_pairs else "unclear"
    return Observation(key, state, detection if state == "bad" else None, read)


def _key(app: str, environment: str, model: str, metric: str, techniques: str) -> ProblemKey:
    """Return the key, with techniques and intensities as its segment."""
    return ProblemKey(app, environment, model, "flip", metric, "techniques", techniques)


def _load_counts(
    database: Database, links: Iterable[PerturbationLink], since: datetime
) -> dict[ProblemKey, _FlipCounts]:
    """Count flips by key since then; `links` are all perturbed traces."""
    rows = database.rows(
        f"""
        SELECT app, environment, model, metric, techniques, topic, countIf(outcome != 'unknown') AS pairs,
            countIf(outcome = 'worse') AS n_worse, countIf(outcome = 'better') AS n_better,
            countIf(outcome = 'unknown') AS n_unknown, min(time) AS first, max(time) AS last,
            arraySlice(arraySort(groupArrayIf((outcome = 'better',
                -abs(ifNull(value, 0) - ifNull(original_value, 0)), trace_id, original_id),
                outcome IN ('worse', 'better'))), 1, {_EXAMPLES}) AS worst
        FROM flips FINAL WHERE time >= {{since:DateTime64(3, 'UTC')}}
        GROUP BY app, environment, model, metric, techniques, topic
        ORDER BY app, environment, model, metric, techniques, topic""",
        {"since": since},
    )
    made: dict[ProblemKey, _FlipCounts] = {}
    for row in rows:
        key = _key(row["app"], row["environment"], row["model"], row["metric"], row["techniques"])
        _add(made.setdefault(key, _FlipCounts(key, row["first"], row["last"])), row)
    for rate in made.values():
        rate.examples = sorted(rate.examples)[:_EXAMPLES]
    paired = _paired_ids(database, since)
    unpaired = Counter(_group(link) for link in links if link.trace_id not in paired)
    for key, rate in made.items():
        rate.unpaired = unpaired[key.app, key.environment, key.model, key.segment_value]
    return made


def _past_counts(key: ProblemKey, pairs: Sequence[_TimedRow], since: int, until: int) -> _FlipCounts:
    """Count as `_load_counts` does of the table at that time; unpaired traces are left out."""
    rows = [one.row for one in pairs if one.known < until and one.at >= since]
    made = _FlipCounts(key, rows[0].time, rows[0].time)
    for row in rows:
        is_flip = row.outcome in ("worse", "better")
        nearness = -abs((row.value or 0.0) - (row.original_value or 0.0))
        worst = [(row.outcome == "better", nearness, row.trace_id, row.original_id)] if is_flip else []
        counted = {f"n_{outcome}": int(row.outcome == outcome) for outcome in ("worse", "better", "unknown")}
        span = {"first": row.time, "last": row.time}
        _add(made, {**span, **counted, "pairs": int(row.outcome != "unknown"), "topic": row.topic, "worst": worst})
    made.examples = sorted(made.examples)[:_EXAMPLES]
    return made


def _add(rate: _FlipCounts, row: Mapping[str, Any]) -> None:
    rate.first, rate.last = min(rate.first, row["first"]), max(rate.last, row["last"])
    rate.pairs += row["pairs"]
    rate.worse += row["n_worse"]
    rate.better += row["n_better"]
    rate.unknown += row["n_unknown"]
    rate.examples += [_FlipExample(*one) for one in row["worst"]]
    if row["topic"] and row["pairs"]:
        known = rate.by_topic.get(row["topic"], Share(0, 0))
        flipped = row["n_worse"] + row["n_better"]
        rate.by_topic[row["topic"]] = Share(known.hits + flipped, known.n + row["pairs"])


def _paired_ids(database: Database, since: datetime) -> set[str]:
    rows = database.rows(
        "SELECT DISTINCT trace_id FROM flips FINAL WHERE time >= {since:DateTime64(3, 'UTC')}", {"since": since}
    )
    return {row["trace_id"] for row in rows}


def _group(link: PerturbationLink) -> tuple[str, str, str, str]:
    return link.app, link.environment, link.model, link.techniques


def _count_within(pairs: Sequence[_TimedRow], those: Flags, moments: Integers, sinces: Integers) -> Integers:
    """Count the pairs known at each instant and not older than `sinces` allows."""
    known, at = (np.sort(np.array([one[nth] for one in pairs])[those]) for nth in (0, 1))
    found: Integers = np.searchsorted(known, moments) - np.searchsorted(at, sinces)
    return found


def _timed_pairs(ctx: CheckContext, first: int, until: int) -> dict[ProblemKey, list[_TimedRow]]:
    """Read pairs of traces up to then, as they and their scores are stored now."""
    database, within_s = ctx.database, ctx.rules.repeats_within_s
    since = lookback_start(ctx, calendar.utc(first))
    links = perturbation_links(database, since, timedelta(seconds=within_s))
    found = [one for one in links if one.time.timestamp() < until]
    made: dict[ProblemKey, list[_TimedRow]] = {}
    for start in range(0, len(found), PAIRS_PER_BATCH):
        some = found[start : start + PAIRS_PER_BATCH]
        times = _times(database, some)
        for link, rows in flip_rows(database, some, ctx.metrics, ctx.rules, version=0):
            at = link.time.timestamp()
            known = max(at, times.get(link.original_id, at))
            for row in rows if known - at < within_s else ():
                key = _key(row.app, row.environment, row.model, row.metric, row.techniques)
                made.setdefault(key, []).append(_TimedRow(known, at, row))
    return made


def _times(database: Database, some: Sequence[PerturbationLink]) -> dict[str, float]:
    """Read the times of the originals, seconds since 1970."""
    return {
        row["trace_id"]: row["at"].timestamp()
        for ids in id_batches(sorted({link.original_id for link in some if link.original_id}))
        for row in database.rows(
            f"SELECT trace_id, argMax(time, {NEWEST}) AS at FROM traces "
            f"WHERE {STREAM} AND trace_id IN {sql.texts(ids)} GROUP BY trace_id"
        )
    }


def _past_detection(
    ctx: CheckContext, key: ProblemKey, pairs: Sequence[_TimedRow], since: int, until: int
) -> Detection:
    return _detection(ctx, _past_counts(key, pairs, since, until))


def _detection(ctx: CheckContext, rate: _FlipCounts) -> Detection:
    key, share = rate.key, rate.share
    metric, rules = ctx.metrics[key.metric], ctx.rules.of(key.app)
    message = (
        f"{scope_label(key.app, key.environment)}: {key.metric} flipped in {share.hits} of {share.n} pairs of a "
        f"question and its form perturbed by {key.segment_value}. "
        f"{describe_share('Flip rate', share, rules.flip_limit)} "
        f"From pass to fail: {rate.worse}, from fail to pass: {rate.better}, since {timestamp(rate.first)}."
    )
    topics = sorted(rate.by_topic.items(), key=lambda one: (-wilson(one[1]).low, one[0]))[:_MAX_TOPICS]
    attributes = {
        **share_attributes(share, rules.flip_limit),
        "pass_to_fail": rate.worse,
        "fail_to_pass": rate.better,
        "unknown": rate.unknown,
        "unpaired": rate.unpaired,
        "coverage": share.n / (share.n + rate.unknown + rate.unpaired),
        "topics": [
            {"topic": name, "sample_size": one.n, "value": one.value, "interval": list(wilson(one))}
            for name, one in topics
        ],
        "pairs": [{"original": one.original_id, "perturbed": one.trace_id} for one in rate.examples],
    }
    details = build_details(
        FlipRate.kind,
        key,
        metric,
        message,
        attributes,
        rules,
        severity="critical" if rate.worse else "warning",
        examples=[one for pair in rate.examples for one in (pair.original_id, pair.trace_id)],
    )
    return Detection(key, details, rate.first, rate.last)
