"""A metric that flips when a question is only worded otherwise is a problem of its sequence of techniques.

It opens where the whole 95 % interval of the flip rate (Wilson) is above the limit, and is over where the rate itself
no longer is; nothing is said of fewer pairs than `rules.flip_pairs`.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from drift.flips.judging import attributes_of, in_words, judged
from drift.flips.links import links
from drift.flips.pairs import store_pairs
from drift.flips.rates import Rate, rates
from drift.insights.shares import Share, wilson
from drift.kinds.recent import Health
from drift.leadership import Term
from drift.phrases import moment, percent, whereabouts
from drift.problems.accounts import account_of
from drift.problems.events import Place
from drift.problems.problem import EventRow, Kind
from drift.problems.troubles import Over, Trouble, standing, tell
from drift.settings import RuleSettings
from drift.windows.metrics import WatchedMetric
from sinks.clickhouse.database import Database

_KIND: Kind = "flip"
_TOPICS = 10


class FlipsSeen(NamedTuple):
    """What one look did: pairs compared, and the events that follow."""

    pairs: int
    events: list[EventRow]


def watch_flips(
    database: Database, metrics: Mapping[str, WatchedMetric], rules: RuleSettings, term: Term, now: datetime
) -> FlipsSeen:
    """Table `flips` is up to date, and what the perturbed traces of the last day or so say is told, on return.

    `now` is the server's time.
    """
    period = timedelta(seconds=rules.asked_within_s)
    since = (now - period).replace(second=0, microsecond=0)
    found = links(database, since, period)
    pairs = store_pairs(database, found, metrics, rules, since, term, now)
    told: dict[Place, Trouble | Over] = {place: Over(place, _KIND, now) for place in standing(database, _KIND)}
    for place, rate in rates(database, found, since).items():
        own = rules.of(place.app)
        state = health(rate.share, own)
        if state == "bad":
            told[place] = trouble_of(rate, metrics[place.metric], own)
        elif state == "unclear":
            told.pop(place, None)
    return FlipsSeen(pairs, tell(database, list(told.values()), rules, term, now))


def health(flipped: Share, rules: RuleSettings) -> Health:
    """Of pairs of which so many flipped."""
    return judged(flipped, rules.flip_limit) if flipped.n >= rules.flip_pairs else "unclear"


def trouble_of(rate: Rate, metric: WatchedMetric, rules: RuleSettings) -> Trouble:
    """What is said of a metric that flips too often."""
    place, share = rate.place, rate.share
    said = (
        f"{whereabouts(place.app, place.environment)}: {place.metric} flips in {share.hits} of {share.n} pairs "
        f"({in_words(share)}) of questions perturbed by {place.segment_value} and their originals, above the limit of "
        f"{percent(rules.flip_limit)}: {rate.worse} from pass to fail, {rate.better} from fail to pass; "
        f"since {moment(rate.first)}."
    )
    topics = sorted(rate.by_topic.items(), key=lambda one: (-wilson(one[1]).low, one[0]))[:_TOPICS]
    attributes = {
        **attributes_of(share, rules.flip_limit),
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
    account = account_of(
        _KIND,
        place,
        metric,
        said,
        attributes,
        rules,
        severity="high" if rate.worse else "medium",
        examples=[one for pair in rate.examples for one in (pair.original_id, pair.trace_id)],
    )
    return Trouble(place, account, rate.first, rate.last)
