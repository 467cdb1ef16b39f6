"""No commit passes a record that was not acknowledged, whatever the order, the gaps, the seeks and the rebalances."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from ragtide.stream.kafka.offsets import OffsetTracker, Ticket

TP = ("rag.traces", 0)


def test_only_the_acknowledged_prefix_is_committable() -> None:
    tracker: OffsetTracker[tuple[str, int]] = OffsetTracker()
    first = tracker.take(TP, 1, 0, 9, size=10)
    second = tracker.take(TP, 1, 10, 19, size=10)
    third = tracker.take(TP, 1, 20, 29, size=10)
    tracker.acknowledge(second)
    assert tracker.committable(TP) is None
    assert tracker.outstanding == 20
    tracker.acknowledge(first)
    assert tracker.committable(TP) == 20
    assert tracker.oldest(TP) == 20
    tracker.acknowledge(third)
    assert tracker.committable(TP) == 30
    assert tracker.oldest(TP) is None
    assert tracker.outstanding == 0
    assert tracker.unacknowledged == 0


def test_a_gap_between_slices_is_no_hole() -> None:
    tracker: OffsetTracker[tuple[str, int]] = OffsetTracker()
    tracker.acknowledge(tracker.take(TP, 1, 5, 5))
    tracker.acknowledge(tracker.take(TP, 1, 10, 11))
    assert tracker.committable(TP) == 12


def test_what_holds_no_record_is_passed_once_all_before_it_is_acknowledged() -> None:
    tracker: OffsetTracker[tuple[str, int]] = OffsetTracker()
    ticket = tracker.take(TP, 1, 0, 4)
    tracker.skip(TP, 1, 9)
    assert tracker.committable(TP) is None
    tracker.acknowledge(ticket)
    assert tracker.committable(TP) == 9
    tracker.skip(TP, 1, 7)
    assert tracker.committable(TP) == 9
    tracker.skip(TP, 1, 12)
    assert tracker.committable(TP) == 12
    tracker.skip(TP, 2, 3)
    assert tracker.committable(TP) == 3


def test_no_commit_passes_what_is_held_until_it_is_let_go() -> None:
    tracker: OffsetTracker[tuple[str, int]] = OffsetTracker()
    first, second = tracker.take(TP, 1, 0, 9), tracker.take(TP, 1, 10, 19)
    tracker.hold(TP, first, 4)
    tracker.acknowledge(first)
    assert tracker.committable(TP) == 4
    assert tracker.oldest(TP) == 10, "what is held is no lag"
    tracker.acknowledge(second)
    tracker.hold(TP, second, 12)
    assert tracker.committable(TP) == 12
    tracker.hold(TP, second, None)
    assert tracker.committable(TP) == 20
    tracker.take(TP, 2, 3, 5)
    tracker.hold(TP, second, 4)  # of the generation before
    tracker.acknowledge(tracker.take(TP, 2, 3, 5))
    assert tracker.committable(TP) == 6


def test_an_acknowledgement_of_an_older_generation_counts_for_nothing() -> None:
    tracker: OffsetTracker[tuple[str, int]] = OffsetTracker()
    tracker.take(TP, 1, 0, 7, size=1)
    old = tracker.take(TP, 1, 8, 10, size=1)
    tracker.take(TP, 2, 0, 10, size=1)  # one slice now, ending where the old one ended
    tracker.acknowledge(old)
    assert tracker.committable(TP) is None
    assert tracker.outstanding == 1


def test_reading_again_after_a_seek_replaces_what_was_held() -> None:
    tracker: OffsetTracker[tuple[str, int]] = OffsetTracker()
    lost = tracker.take(TP, 1, 0, 9, size=4)
    tracker.take(TP, 1, 10, 19, size=4)
    again = tracker.take(TP, 1, 0, 19, size=8)
    assert tracker.outstanding == 8
    tracker.acknowledge(lost)
    assert tracker.committable(TP) is None
    tracker.acknowledge(again)
    assert tracker.committable(TP) == 20


def test_a_seek_into_a_slice_leaves_the_part_before_it_to_that_slice() -> None:
    tracker: OffsetTracker[tuple[str, int]] = OffsetTracker()
    before = tracker.take(TP, 1, 0, 9)
    tracker.acknowledge(tracker.take(TP, 1, 5, 15))
    assert tracker.committable(TP) is None
    tracker.acknowledge(before)
    assert tracker.committable(TP) == 16


def test_a_revoked_partition_is_forgotten() -> None:
    tracker: OffsetTracker[tuple[str, int]] = OffsetTracker()
    ticket = tracker.take(TP, 1, 0, 9, size=4)
    tracker.forget([TP, ("other", 3)])
    assert not ticket.valid
    assert tracker.partitions() == []
    tracker.acknowledge(ticket)
    assert tracker.committable(TP) is None
    assert (tracker.outstanding, tracker.unacknowledged) == (0, 0)


class Consumption(RuleBasedStateMachine):
    """A partition read, acknowledged, sought, revoked and committed in any order, against a model of what is done."""

    tickets: Bundle[tuple[Ticket, tuple[int, ...]]] = Bundle("tickets")

    def __init__(self) -> None:
        super().__init__()
        self.tracker: OffsetTracker[tuple[str, int]] = OffsetTracker()
        self.generation = 0
        self.position = 0
        self.committed = 0
        self.exists: set[int] = set()  # offsets that hold a record; the rest are gaps
        self.end = 0
        self.done: set[int] = set()
        self.live: list[Ticket] = []

    @rule(target=tickets, gap=st.integers(0, 3), length=st.integers(1, 6), size=st.integers(0, 9))
    def read(self, gap: int, length: int, size: int) -> tuple[Ticket, tuple[int, ...]]:
        if self.position >= self.end:
            fresh = range(self.end + gap, self.end + gap + length)
            self.exists.update(fresh)
            self.end = fresh.stop
        offsets = tuple(o for o in range(self.position, self.end) if o in self.exists)[:length]
        if not offsets:
            offsets = (self.end,)
            self.exists.add(self.end)
            self.end += 1
        self.position = offsets[-1] + 1
        ticket = self.tracker.take(TP, self.generation, offsets[0], offsets[-1], size)
        self.live = [held for held in self.live if held.valid] + [ticket]
        return ticket, offsets

    @rule(gap=st.integers(0, 3))
    def find_nothing_more(self, gap: int) -> None:
        if not [offset for offset in self.exists if offset >= self.position]:
            self.end = max(self.end, self.position) + gap
            self.position = self.end
        self.tracker.skip(TP, self.generation, self.position)

    @rule(pair=tickets)
    def acknowledge(self, pair: tuple[Ticket, tuple[int, ...]]) -> None:
        ticket, offsets = pair
        self.done.update(offsets)
        self.tracker.acknowledge(ticket)

    @rule(pair=consumes(tickets))
    def acknowledge_and_drop(self, pair: tuple[Ticket, tuple[int, ...]]) -> None:
        self.acknowledge(pair)

    @rule()
    def commit(self) -> None:
        offset = self.tracker.committable(TP)
        if offset is not None and offset > self.committed:
            self.committed = offset

    @rule()
    def seek_to_committed(self) -> None:
        self.position = self.committed

    @rule()
    def rebalance(self) -> None:
        self.tracker.forget([TP])
        self.generation += 1
        self.position = self.committed
        self.live = []

    @rule()
    def assigned_without_a_revocation(self) -> None:
        self.generation += 1
        self.position = self.committed

    @rule()
    def acknowledge_all(self) -> None:
        for ticket in self.live:
            if ticket.valid:
                self.done.update(o for o in self.exists if ticket.first <= o <= ticket.last)
                self.tracker.acknowledge(ticket)
        held = [ticket for ticket in self.live if ticket.valid]
        if held:
            assert self.tracker.committable(TP) is not None
            assert self.tracker.oldest(TP) is None
            assert (self.tracker.outstanding, self.tracker.unacknowledged) == (0, 0)

    @invariant()
    def nothing_below_the_commit_is_undone(self) -> None:
        offset = self.tracker.committable(TP)
        below = max(self.committed, offset if offset is not None else 0)
        assert not [o for o in self.exists if o < below and o not in self.done]

    @invariant()
    def bytes_are_those_of_the_open_tickets(self) -> None:
        open_now = [t for t in self.live if t.valid and not t.acknowledged]
        assert self.tracker.outstanding == sum(t.size for t in open_now)
        assert self.tracker.unacknowledged == len(open_now)


Consumption.TestCase.settings = settings(max_examples=300, stateful_step_count=40, deadline=None)
TestConsumption = Consumption.TestCase
