"""No window is ever wrong without a mark that says so, whoever leads, dies half-way or goes on as a zombie.

Marks and terms are the real tables. Rows and windows are counted here: a window of a higher epoch wins, of one epoch
the later one.
"""

import itertools
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal, NamedTuple, get_args

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from ragtide.drift.leadership import Term, elect
from ragtide.drift.windows import dirty
from ragtide.drift.windows.scope import WindowKey
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import DirtyRow

pytestmark = pytest.mark.clickhouse

What = Literal["rows", "marks", "both", "elect", "round", "part", "die"]
ROUND = 4  # steps of a roll-up
_numbers = itertools.count(1)


class Event(NamedTuple):
    """What happens next; where a leader acts, 1 is the newest, 2 the one before it, and so on."""

    what: What
    back: int = 1
    start: int = 0


class Leader:
    """A term, and how far its roll-up is: it looks for marks, reads rows, stores windows, takes the marks back."""

    def __init__(self, term: Term) -> None:
        self.term = term
        self.at = 0
        self.marked: list[dirty.DirtyWindow] = []
        self.read: dict[WindowKey, int] = {}


class Story:
    """Workers that store rows and mark their windows, and leaders of which only the newest may win."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.app = f"app{next(_numbers)}"
        self.rows: Counter[WindowKey] = Counter()
        self.unmarked: set[WindowKey] = set()
        self.stored: dict[WindowKey, tuple[int, int]] = {}  # version and rows
        self.leaders = [self.elected()]

    def happens(self, event: Event) -> None:
        leader = self.leaders[-min(event.back, len(self.leaders))]
        if event.what == "elect":
            self.leaders.append(self.elected())
        elif event.what == "die":
            leader.at = 0
        elif event.what == "part":
            self.goes_on(leader)
        elif event.what == "round":
            for _ in range(ROUND - leader.at):
                self.goes_on(leader)
        else:
            self.written(event)

    def written(self, event: Event) -> None:
        """By a worker, which may be away for a while between rows and marks."""
        if event.what != "marks":
            window = WindowKey("live", self.app, "prod", event.start)
            self.rows[window] += 1
            self.unmarked.add(window)
        if event.what != "rows":
            mark = f"mark-{next(_numbers)}"
            rows = [
                DirtyRow(*window[:3], "fast", datetime.fromtimestamp(window.start, UTC), mark)
                for window in self.unmarked
            ]
            self.database.insert("dirty_windows", rows)
            self.unmarked.clear()

    def goes_on(self, leader: Leader) -> None:
        if leader.at == 0:
            leader.marked = self.pending(leader.term)
        elif leader.at == 1:
            leader.read = {one.window: self.rows[one.window] for one in leader.marked}
        elif leader.at == 2:
            for window, count in leader.read.items():
                ours = (leader.term.next_version(), count)
                self.stored[window] = max(self.stored.get(window, ours), ours)
        else:
            dirty.clear_marks(self.database, leader.term, leader.marked)
        leader.at = (leader.at + 1) % ROUND

    def wrong(self) -> set[WindowKey]:
        """Those that no longer tell of all rows whose marks are written."""
        return {one for one in self.rows if self.stored.get(one, (0, 0))[1] != self.rows[one]} - self.unmarked

    def marked(self) -> set[WindowKey]:
        return {one.window for one in self.pending(self.leaders[-1].term)}

    def pending(self, term: Term) -> list[dirty.DirtyWindow]:
        return [one for one in dirty.pending_windows(self.database, term, ["fast"]) if one.window.app == self.app]

    def elected(self) -> Leader:
        return Leader(elect(self.database, f"{self.app}-{next(_numbers)}"))


EVENTS = st.builds(
    Event,
    st.sampled_from([*get_args(What), "both", "round", "part"]),
    st.sampled_from([1, 1, 2, 2, 3]),
    st.sampled_from([0, 0, 60]),
)
LED = [Event("elect"), Event("both"), Event("round"), Event("both")]  # a window of the second leader, late rows
ZOMBIE = [*LED, Event("round", 2)]
ZOMBIE_OF_TWO_TERMS_AGO = [*LED, Event("elect"), Event("round", 3)]
REPAIR_DIED = [*ZOMBIE, Event("part"), Event("part"), Event("die"), Event("elect")]
MARK_IN_A_ROUND = [Event("both"), Event("part"), Event("part"), Event("both"), Event("round")]
ROWS_READ_BEFORE_THEIR_MARK = [Event("both"), Event("part"), Event("rows"), Event("round"), Event("both", start=60)]


@settings(
    max_examples=2,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@example(events=ZOMBIE)
@example(events=ZOMBIE_OF_TWO_TERMS_AGO)
@example(events=REPAIR_DIED)
@example(events=MARK_IN_A_ROUND)
@example(events=ROWS_READ_BEFORE_THEIR_MARK)
@given(events=st.lists(EVENTS, min_size=10, max_size=20))
def test_a_window_that_is_wrong_is_always_marked_and_is_right_in_the_end(
    database: Database, events: Sequence[Event]
) -> None:
    story = Story(database)
    for event in events:
        story.happens(event)
        if wrong := story.wrong():
            assert wrong <= story.marked()
    for last in ("marks", "die", "round"):
        story.happens(Event(last))
    assert story.wrong() == story.marked() == set()
