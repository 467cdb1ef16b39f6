"""The verdicts of one rule, series and fingerprint as far as they matter to what comes next; of bounded size. Pure."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from drift.problems.facts import GOOD_STRETCHES, Judged
from drift.problems.following import REMEMBERED
from drift.rules.series import Verdict


@dataclass(slots=True)
class Line:
    """Takes verdicts in order of time; `most` of the last good and of the last bad ones are remembered.

    `first` is when the first one starts, `since` when the trouble began that verdicts are counted for (None: there is
    none), `breached` how many did since then.
    """

    most: int
    first: datetime
    since: datetime | None = None
    _good: deque[Verdict] = field(init=False)
    _bad: deque[Verdict] = field(init=False)
    breached: int = 0
    _samples: int = 0
    _wrong: int = 0
    _baseline: float | None = None

    def __post_init__(self) -> None:
        self._good = deque(maxlen=self.most + GOOD_STRETCHES)
        self._bad = deque(maxlen=self.most)

    def add(self, verdict: Verdict) -> None:
        """The next one."""
        (self._bad if verdict.breached else self._good).append(verdict)
        if self.since is not None and verdict.start >= self.since:
            self.breached += verdict.breached
            self._samples += verdict.samples
            self._wrong += verdict.wrong

    def count_from(self, since: datetime) -> None:
        """Verdicts count from then on, those that are remembered among them."""
        if since == self.since:
            return
        self.since = since
        counted = [verdict for verdict in (*self._good, *self._bad) if verdict.start >= since]
        self.breached = sum(verdict.breached for verdict in counted)
        self._samples = sum(verdict.samples for verdict in counted)
        self._wrong = sum(verdict.wrong for verdict in counted)
        before = [verdict for verdict in self._good if verdict.end <= since][-GOOD_STRETCHES:]
        total = sum(verdict.samples for verdict in before)
        self._baseline = sum(verdict.value * verdict.samples for verdict in before) / total if before else None

    def judged(self) -> Judged:
        """What the verdicts that count say together; closed windows have all their records."""
        return Judged(self._samples, self._wrong, 0, self._baseline)

    def last(self, at: datetime) -> Sequence[Verdict]:
        """In order of time, as the jobs remember them at that moment."""
        recent = [*list(self._good)[-self.most :], *self._bad]
        return sorted((one for one in recent if one.end > at - REMEMBERED), key=lambda verdict: verdict.start)
