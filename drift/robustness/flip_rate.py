"""Check how often a metric flips between pass and fail under each sequence of perturbations.

A problem opens where the whole 95 % interval of the flip rate (Wilson) is above the limit. It clears where the rate
itself no longer is. With fewer pairs than `rules.flip_pairs` nothing changes."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from ragtide.drift.checks.hysteresis import CheckState
from ragtide.drift.leadership import Term
from ragtide.drift.problems.model import EventRow, Kind
from ragtide.drift.problems.report import Clear, Detection, ProblemKey, build_details, open_detections, report
from ragtide.drift.robustness.flip_pairs import FlipRow, store_pairs
from ragtide.drift.robustness.perturbation_links import PerturbationLink, perturbation_links
from ragtide.drift.robustness.share_limit import above_limit, describe_share, share_attributes
from ragtide.drift.settings import RuleSettings
from ragtide.drift.stats.proportions import Share, wilson
from ragtide.drift.text import percent, scope_label, timestamp
from ragtide.drift.windows.metrics import MetricRef
from ragtide.sinks.clickhouse.database import Database

_EXAMPLES = 5  # pairs


class FlipExample(NamedTuple):
    """A flip; the least one is the worst: a pass that became a fail by the furthest way."""

    is_better: bool
    nearness: float
    trace_id: str
    original_id: str


@dataclass(slots=True)
class FlipRate:
    """Pairs of one place. `unknown` are those of which one has no comparable score, `unpaired` have no original yet."""

    key: ProblemKey
    first: datetime
    last: datetime
    pairs: int = 0
    worse: int = 0
    better: int = 0
    unknown: int = 0
    unpaired: int = 0
    examples: list[FlipExample] = field(default_factory=list)
    by_topic: dict[str, Share] = field(default_factory=dict)

    @property
    def share(self) -> Share:
        """Of the pairs, at least one, those that flipped."""
        return Share(self.worse + self.better, self.pairs)


def key_of_flips(app: str, environment: str, model: str, metric: str, techniques: str) -> ProblemKey:
    """Techniques and intensities stand in the segment."""
    return ProblemKey(app, environment, model, "flip", metric, "techniques", techniques)


def flip_rates(database: Database, found: Iterable[PerturbationLink], since: datetime) -> dict[ProblemKey, FlipRate]:
    """Of the perturbed traces since then, `found` being all of them."""
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
    made: dict[ProblemKey, FlipRate] = {}
    for row in rows:
        key = key_of_flips(row["app"], row["environment"], row["model"], row["metric"], row["techniques"])
        _add(made.setdefault(key, FlipRate(key, row["first"], row["last"])), row)
    for rate in made.values():
        rate.examples = sorted(rate.examples)[:_EXAMPLES]
    paired = _paired_ids(database, since)
    unpaired = Counter(_group(link) for link in found if link.trace_id not in paired)
    for key, rate in made.items():
        rate.unpaired = unpaired[key.app, key.environment, key.model, key.segment_value]
    return made


def flip_rate(key: ProblemKey, rows: Sequence[FlipRow]) -> FlipRate:
    """Of rows of one place, at least one, as `flip_rates` makes it of the table; unpaired traces are left out."""
    made = FlipRate(key, rows[0].time, rows[0].time)
    for row in rows:
        is_flip = row.outcome in ("worse", "better")
        nearness = -abs((row.value or 0.0) - (row.original_value or 0.0))
        worst = [(row.outcome == "better", nearness, row.trace_id, row.original_id)] if is_flip else []
        counted = {f"n_{outcome}": int(row.outcome == outcome) for outcome in ("worse", "better", "unknown")}
        span = {"first": row.time, "last": row.time}
        _add(made, {**span, **counted, "pairs": int(row.outcome != "unknown"), "topic": row.topic, "worst": worst})
    made.examples = sorted(made.examples)[:_EXAMPLES]
    return made


def _add(rate: FlipRate, row: Mapping[str, Any]) -> None:
    rate.first, rate.last = min(rate.first, row["first"]), max(rate.last, row["last"])
    rate.pairs += row["pairs"]
    rate.worse += row["n_worse"]
    rate.better += row["n_better"]
    rate.unknown += row["n_unknown"]
    rate.examples += [FlipExample(*one) for one in row["worst"]]
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


_KIND: Kind = "flip"
_MAX_TOPICS = 10


class FlipRateResult(NamedTuple):
    """What one look did: pairs compared, and the events that follow."""

    pairs: int
    events: list[EventRow]


def check_flip_rate(
    database: Database, metrics: Mapping[str, MetricRef], rules: RuleSettings, term: Term, now: datetime
) -> FlipRateResult:
    """Table `flips` is up to date, and what the perturbed traces of the last day or so say is told, on return.

    `now` is the server's time.
    """
    period = timedelta(seconds=rules.asked_within_s)
    since = (now - period).replace(second=0, microsecond=0)
    found = perturbation_links(database, since, period)
    pairs = store_pairs(database, found, metrics, rules, since, term, now)
    reports: dict[ProblemKey, Detection | Clear] = {
        key: Clear(key, _KIND, now) for key in open_detections(database, _KIND)
    }
    for key, rate in flip_rates(database, found, since).items():
        own = rules.of(key.app)
        state = rate_state(rate.share, own)
        if state == "bad":
            reports[key] = detection_of(rate, metrics[key.metric], own)
        elif state == "unclear":
            reports.pop(key, None)
    return FlipRateResult(pairs, report(database, list(reports.values()), rules, term, now))


def rate_state(flipped: Share, rules: RuleSettings) -> CheckState:
    """Of pairs of which so many flipped."""
    return above_limit(flipped, rules.flip_limit) if flipped.n >= rules.flip_pairs else "unclear"


def detection_of(rate: FlipRate, metric: MetricRef, rules: RuleSettings) -> Detection:
    """What is said of a metric that flips too often."""
    key, share = rate.key, rate.share
    message = (
        f"{scope_label(key.app, key.environment)}: {key.metric} flips in {share.hits} of {share.n} pairs "
        f"({describe_share(share)}) of questions perturbed by {key.segment_value} and their originals, above "
        f"the limit of "
        f"{percent(rules.flip_limit)}: {rate.worse} from pass to fail, {rate.better} from fail to pass; "
        f"since {timestamp(rate.first)}."
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
    account = build_details(
        _KIND,
        key,
        metric,
        message,
        attributes,
        rules,
        severity="critical" if rate.worse else "warning",
        examples=[one for pair in rate.examples for one in (pair.original_id, pair.trace_id)],
    )
    return Detection(key, account, rate.first, rate.last)
