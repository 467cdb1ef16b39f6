"""What rules, or jobs by the same settings, would have raised."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from drift.problems.problem import State
from drift.settings import Severity


class WouldBe(NamedTuple):
    """One episode of a problem as the settings would have raised it; it opened, and opened again, at `openings`.

    `rule` is the rule's kind, or the job's. `windows` is how many breached, several that were pooled as one; of what
    jobs look for, at how many looks it was so. `since` is when the trouble began. Severity and description are those
    of the last word.
    """

    problem_id: str
    episode: int
    state: State
    app: str
    environment: str
    model: str
    aspect: str
    metric: str
    segment: str
    segment_value: str
    rule: str
    severity: Severity
    description: str
    windows: int
    since: datetime
    openings: Sequence[datetime]
    resolved_at: datetime | None
