"""What every insight has: a row that points at traces, an id that is the same for the same finding, a period."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple, Self

from drift.leadership import Term


class InsightRow(NamedTuple):
    """Table `insights`; `attributes` is JSON."""

    insight_id: str
    type: str
    app: str
    environment: str
    description: str
    attributes: str
    examples: Sequence[str]
    actions: Sequence[str]
    period_start: datetime
    period_end: datetime
    epoch: int
    withdrawn: int = 0


@dataclass(frozen=True, slots=True)
class Period:
    """What an insight speaks of: from `start` on and before `end`."""

    start: datetime
    end: datetime

    @classmethod
    def of(cls, now: datetime, length_s: float) -> Self:
        """The period that `now` lies in; periods follow one another from 1970 on."""
        length = int(length_s)
        first = int(now.timestamp()) // length * length
        return cls(datetime.fromtimestamp(first, UTC), datetime.fromtimestamp(first + length, UTC))


@dataclass(frozen=True, slots=True)
class Finding:
    """What an insight says. `identity` tells it from others of its type, app, environment and period."""

    type: str
    app: str
    environment: str
    identity: tuple[str | int, ...]
    description: str
    attributes: Mapping[str, Any]
    examples: Sequence[str]
    actions: Sequence[str]


def insight_row(found: Finding, period: Period, term: Term) -> InsightRow:
    """Stated again within its period, it takes the place of what was said before."""
    identity = [found.type, found.app, found.environment, period.start.isoformat(), period.end.isoformat()]
    return InsightRow(
        insight_id=hashlib.sha256(json.dumps([*identity, *found.identity]).encode()).hexdigest()[:16],
        type=found.type,
        app=found.app,
        environment=found.environment,
        description=found.description,
        attributes=json.dumps({"app": found.app, "environment": found.environment, **found.attributes}, sort_keys=True),
        examples=found.examples,
        actions=found.actions,
        period_start=period.start,
        period_end=period.end,
        epoch=term.epoch,
    )
