"""Which offset of a partition may be committed: the end of the acknowledged prefix of what was taken. Pure."""

from collections import deque
from collections.abc import Hashable, Iterable
from typing import Generic, NamedTuple, TypeVar

P = TypeVar("P", bound=Hashable)
Partition = tuple[str, int]


class Lag(NamedTuple):
    """Where a partition stands: the next offset to work off, and how many records lie from there on."""

    offset: int
    records: int


class Ticket:
    """Stands for offsets `first` to `last` of a partition; `size` in bytes.

    `state` turns false when the partition moved on without it (revoked, or read again after a seek): acknowledging it
    then changes nothing.
    """

    __slots__ = ("acknowledged", "first", "generation", "last", "size", "valid")

    def __init__(self, first: int, last: int, size: int, generation: Hashable = None) -> None:
        self.generation = generation
        self.first = first
        self.last = last
        self.size = size
        self.acknowledged = False
        self.valid = True


class _PartitionState:
    """What is taken of one partition in one generation, in order; `upto` is the end of the acknowledged prefix."""

    __slots__ = ("committed_upto", "generation", "hold_at", "tickets")

    def __init__(self, generation: Hashable) -> None:
        self.generation = generation
        self.tickets: deque[Ticket] = deque()
        self.committed_upto: int | None = None
        self.hold_at: int | None = None


class OffsetTracker(Generic[P]):
    """Never lets a commit pass a slice that was taken and not acknowledged; gaps between slices are allowed.

    A generation is one assignment of partitions: taking in a new one forgets the old. Taking offsets again in the same
    generation replaces what was held from there on. Not thread-safe.
    """

    def __init__(self) -> None:
        self._partitions: dict[P, _PartitionState] = {}
        self.outstanding = 0  # bytes taken and not acknowledged
        self.unacknowledged = 0  # slices

    def take(self, partition: P, generation: Hashable, first: int, last: int, size: int = 0) -> Ticket:
        """Hold a commit of `partition` at `first` until the ticket is acknowledged."""
        tickets = self._state_of(partition, generation).tickets
        while tickets and tickets[-1].first >= first:
            self._release(tickets.pop())
        if tickets and tickets[-1].last >= first:
            tickets[-1].last = first - 1  # the part before `first` is still that ticket's to acknowledge
        ticket = Ticket(first, last, size, generation)
        tickets.append(ticket)
        self.outstanding += size
        self.unacknowledged += 1
        return ticket

    def skip(self, partition: P, generation: Hashable, next_offset: int) -> None:
        """Nothing is left to take before `following`: a commit after what was taken may go there."""
        state = self._state_of(partition, generation)
        if state.tickets:
            state.tickets[-1].last = max(state.tickets[-1].last, next_offset - 1)
        else:
            state.committed_upto = (
                next_offset if state.committed_upto is None else max(state.committed_upto, next_offset)
            )

    def acknowledge(self, ticket: Ticket) -> None:
        """Say that everything the ticket stands for is done; any order, any number of times."""
        if ticket.acknowledged or not ticket.valid:
            return
        ticket.acknowledged = True
        self.outstanding -= ticket.size
        self.unacknowledged -= 1

    def committable(self, partition: P) -> int | None:
        """The next offset to read once everything acknowledged without a hole before it is committed; None: nothing."""
        state = self._partitions.get(partition)
        if state is None:
            return None
        while state.tickets and state.tickets[0].acknowledged:
            end = state.tickets.popleft().last + 1
            state.committed_upto = end if state.committed_upto is None else max(state.committed_upto, end)
        if state.hold_at is None or state.committed_upto is None:
            return state.committed_upto
        return min(state.committed_upto, state.hold_at)

    def hold(self, partition: P, ticket: Ticket, offset: int | None) -> None:
        """Let no commit pass `offset`, acknowledged or not, until the next call; None: nothing is held any more.

        Nothing happens if the partition moved on without `ticket`.
        """
        state = self._partitions.get(partition)
        if state is not None and ticket.generation == state.generation:
            state.hold_at = offset

    def oldest(self, partition: P) -> int | None:
        """First offset that is taken and not acknowledged; None where nothing is in flight."""
        self.committable(partition)
        state = self._partitions.get(partition)
        return state.tickets[0].first if state and state.tickets else None

    def partitions(self) -> list[P]:
        """Those of which something was taken."""
        return list(self._partitions)

    def forget(self, partitions: Iterable[P]) -> None:
        """Let go of partitions that are somebody else's now; acknowledging their tickets changes nothing any more."""
        for partition in partitions:
            state = self._partitions.pop(partition, None)
            for ticket in state.tickets if state else ():
                self._release(ticket)

    def abandon(self, partition: P) -> None:
        """Let go of what was taken and not acknowledged; commits stay before it until it is taken again."""
        self.committable(partition)
        state = self._partitions.get(partition)
        while state and state.tickets:
            self._release(state.tickets.pop())

    def _state_of(self, partition: P, generation: Hashable) -> _PartitionState:
        state = self._partitions.get(partition)
        if state is None or state.generation != generation:
            self.forget([partition])
            state = self._partitions[partition] = _PartitionState(generation)
        return state

    def _release(self, ticket: Ticket) -> None:
        ticket.valid = False
        if not ticket.acknowledged:
            self.outstanding -= ticket.size
            self.unacknowledged -= 1
