"""What is asked: the series that moved, when, and what it is compared with."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np

from drift.causes.splits import Marks
from drift.rules.series import Rule, Series
from drift.rules.value import records_behind
from drift.windows.metrics import WatchedMetric
from drift.windows.scope import MINUTE

_MOST_TIMES = 480
_LEAST_BEFORE = 240  # base windows
_MOST_AFTER_S = 86_400  # later windows say nothing new of an onset


@dataclass(frozen=True, slots=True)
class Question:
    """A metric of an environment moved at `since`, and that lasted until `until`.

    None is every app, or every model. `rule` says what counts where there is one: its lines, or that coverage is meant.
    `problem_id` seeds what is drawn.
    """

    environment: str
    watched: WatchedMetric
    since: datetime
    until: datetime
    app: str | None = None
    model: str | None = None
    segment: str = ""
    segment_value: str = ""
    rule: Rule | None = None
    problem_id: str = ""

    @property
    def seed(self) -> int:
        """The same for the same problem."""
        return int.from_bytes(self.problem_id.encode("utf-8", "replace")[:16], "big")


def question_of(series: Series, rule: Rule, since: datetime, until: datetime, problem_id: str) -> Question:
    """Of a series that a rule judges. What a window is made of is asked of the records behind it."""
    asked = Question(
        series.environment, rule.watched, since, until, series.app, series.model, series.segment, series.segment_value,
        rule, problem_id,
    )  # fmt: skip
    if rule.kind != "value":
        return asked
    behind = records_behind(series, rule)
    return replace(
        asked,
        watched=behind.rule.watched,
        segment=behind.series.segment,
        segment_value=behind.series.segment_value,
        rule=behind.rule,
    )


@dataclass(frozen=True, slots=True)
class Timeline:
    """[start, end) in equal steps, seconds since 1970; step 0 begins at `since`, those before are negative."""

    since: int
    step_s: int
    before: int
    after: int
    end: int

    @property
    def start(self) -> int:
        """Where the stretch begins that the time since the onset is compared with."""
        return self.since - self.before * self.step_s

    @property
    def minutes(self) -> tuple[datetime, datetime]:
        """Widened to whole minutes, the grain of the sorting keys (see `Scope.minutes`)."""
        first, last = self.start // MINUTE * MINUTE, -(-self.end // MINUTE) * MINUTE
        return datetime.fromtimestamp(first, UTC), datetime.fromtimestamp(last, UTC)

    def step_of(self, seconds: str) -> str:
        """Expression: the step of a time that is an expression in seconds since 1970."""
        return f"toInt32(floor(({seconds} - {self.since}) / {self.step_s}))"

    def within(self, seconds: str) -> str:
        """Condition on such a time."""
        return f"{seconds} >= {self.start} AND {seconds} < {self.end}"

    def kept(self, bad: Sequence[tuple[int, int]]) -> Marks:
        """Which steps, from the first, are to be compared: not those before the onset that stand in a bad stretch."""
        starts = self.start + np.arange(self.before + self.after) * self.step_s
        kept = np.ones(len(starts), dtype=bool)
        for first, last in bad:
            kept &= (starts >= self.since) | (starts + self.step_s <= first) | (starts >= last)
        return kept


def timeline(question: Question, base_s: int) -> Timeline:
    """Before the onset at least 240 windows, and eight times as long as it has lasted, a day at most."""
    since = int(question.since.timestamp()) // base_s * base_s
    end = -(-int(question.until.timestamp()) // base_s) * base_s
    end = max(min(end, since + _MOST_AFTER_S), since + base_s)
    before_s = max(_LEAST_BEFORE * base_s, min(8 * (end - since), _MOST_AFTER_S))
    step_s = base_s * -(-(before_s + end - since) // (base_s * _MOST_TIMES))
    return Timeline(since, step_s, before_s // step_s, -(-(end - since) // step_s), end)
