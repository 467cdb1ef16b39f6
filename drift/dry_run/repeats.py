"""Tries the limits of inconsistency on past answers: as often as the job looks, by those of `asked_within_s` before."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime

from drift.dry_run.looks import Looks
from drift.dry_run.would_be import WouldBe
from drift.flips import disagreeing, inconsistency
from drift.flips.asked import KIND, Seen, asked_since, asking
from drift.problems.events import Place
from drift.problems.troubles import Trouble
from drift.settings import RuleSettings
from drift.watching.look import Progress
from drift.windows.metrics import WatchedMetric
from sinks.clickhouse.database import Database


def try_repeats(
    database: Database, metrics: Mapping[str, WatchedMetric], rules: RuleSettings, moments: range, progress: Progress
) -> Iterator[WouldBe]:
    """What would have been raised at these moments, seconds since 1970; answers of the time before count too.

    Each is a look of the job: nothing is read of applications that repeat no question often enough.
    """
    if not moments:
        return
    askings = min(rules.of(app).inconsistency_askings for app in (*rules.apps, ""))
    first, last = (datetime.fromtimestamp(at, UTC) for at in (moments[0], moments[-1]))
    if not asking(database, asked_since(rules, first), last, askings):
        return
    looks: dict[Place, Looks[Trouble]] = {}
    for done, at in enumerate(moments, start=1):
        now = datetime.fromtimestamp(at, UTC)
        since = asked_since(rules, now)
        apps = asking(database, since, now, askings)
        scores = inconsistency.seen(database, metrics, rules, apps, since, now)
        _hear(looks, at, (*scores, *disagreeing.seen(database, rules, apps, since, now)), rules)
        progress(done, len(moments))
    for one in looks.values():
        yield from one.would_be(lambda trouble: trouble)


def _hear(looks: dict[Place, Looks[Trouble]], at: int, seen: Iterable[Seen], rules: RuleSettings) -> None:
    quiet = set(looks)
    for one in seen:
        quiet.discard(one.place)
        if one.trouble is not None:
            looks.setdefault(one.place, Looks(one.place, KIND, rules.of(one.place.app))).sees(at, one.trouble)
        elif one.place in looks and one.health == "unclear":
            looks[one.place].waits(at)
        elif one.place in looks:
            looks[one.place].sees_none(at)
    for place in quiet:
        looks[place].sees_none(at)
