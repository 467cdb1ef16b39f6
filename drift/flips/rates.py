"""How often metrics flip under each sequence of techniques, from table `flips`."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from drift.flips.links import Link
from drift.flips.pairs import FlipRow
from drift.insights.shares import Share
from drift.problems.events import Place
from sinks.clickhouse.database import Database

_EXAMPLES = 5  # pairs


class Pair(NamedTuple):
    """A flip; the least one is the worst: a pass that became a fail by the furthest way."""

    is_better: bool
    nearness: float
    trace_id: str
    original_id: str


@dataclass(slots=True)
class Rate:
    """Pairs of one place. `unknown` are those of which one has no comparable score, `unpaired` have no original yet."""

    place: Place
    first: datetime
    last: datetime
    pairs: int = 0
    worse: int = 0
    better: int = 0
    unknown: int = 0
    unpaired: int = 0
    examples: list[Pair] = field(default_factory=list)
    by_topic: dict[str, Share] = field(default_factory=dict)

    @property
    def share(self) -> Share:
        """Of the pairs, at least one, those that flipped."""
        return Share(self.worse + self.better, self.pairs)


def place_of_flips(app: str, environment: str, model: str, metric: str, techniques: str) -> Place:
    """Techniques and intensities stand in the segment."""
    return Place(app, environment, model, "flip", metric, "techniques", techniques)


def rates(database: Database, found: Iterable[Link], since: datetime) -> dict[Place, Rate]:
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
    made: dict[Place, Rate] = {}
    for row in rows:
        place = place_of_flips(row["app"], row["environment"], row["model"], row["metric"], row["techniques"])
        _add(made.setdefault(place, Rate(place, row["first"], row["last"])), row)
    for rate in made.values():
        rate.examples = sorted(rate.examples)[:_EXAMPLES]
    paired = _paired(database, since)
    unpaired = Counter(_whose(link) for link in found if link.trace_id not in paired)
    for place, rate in made.items():
        rate.unpaired = unpaired[place.app, place.environment, place.model, place.segment_value]
    return made


def rate_of(place: Place, rows: Sequence[FlipRow]) -> Rate:
    """Of rows of one place, at least one; as `rates` makes it of the table. Of what is unpaired it says nothing."""
    made = Rate(place, rows[0].time, rows[0].time)
    for row in rows:
        is_flip = row.outcome in ("worse", "better")
        nearness = -abs((row.value or 0.0) - (row.original_value or 0.0))
        worst = [(row.outcome == "better", nearness, row.trace_id, row.original_id)] if is_flip else []
        counted = {f"n_{outcome}": int(row.outcome == outcome) for outcome in ("worse", "better", "unknown")}
        span = {"first": row.time, "last": row.time}
        _add(made, {**span, **counted, "pairs": int(row.outcome != "unknown"), "topic": row.topic, "worst": worst})
    made.examples = sorted(made.examples)[:_EXAMPLES]
    return made


def _add(rate: Rate, row: Mapping[str, Any]) -> None:
    rate.first, rate.last = min(rate.first, row["first"]), max(rate.last, row["last"])
    rate.pairs += row["pairs"]
    rate.worse += row["n_worse"]
    rate.better += row["n_better"]
    rate.unknown += row["n_unknown"]
    rate.examples += [Pair(*one) for one in row["worst"]]
    if row["topic"] and row["pairs"]:
        known = rate.by_topic.get(row["topic"], Share(0, 0))
        flipped = row["n_worse"] + row["n_better"]
        rate.by_topic[row["topic"]] = Share(known.hits + flipped, known.n + row["pairs"])


def _paired(database: Database, since: datetime) -> set[str]:
    rows = database.rows(
        "SELECT DISTINCT trace_id FROM flips FINAL WHERE time >= {since:DateTime64(3, 'UTC')}", {"since": since}
    )
    return {row["trace_id"] for row in rows}


def _whose(link: Link) -> tuple[str, str, str, str]:
    return link.app, link.environment, link.model, link.techniques
