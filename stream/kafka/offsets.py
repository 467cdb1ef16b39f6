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

    `held` turns false when the partition moved on without it (revoked, or read again after a seek): acknowledging it
    then changes nothing.
    """

    __slots__ = ("acknowledged", "first", "held", "last", "size")

    def __init__(self, first: int, last: int, size: int) -> None:
        self.first = first
        self.last = last
        self.size = size
        self.acknowledged = False
        self.held = True


class _Held:
    """What is taken of one partition in one generation, in order; `upto` is the end of the acknowledged prefix."""

    __slots__ = ("generation", "tickets", "upto")

    def __init__(self, generation: Hashable) -> None:
        self.generation = generation
        self.tickets: deque[Ticket] = deque()
        self.upto: int | None = None


class OffsetTracker(Generic[P]):
    """Never lets a commit pass a slice that was taken and not acknowledged; gaps between slices are allowed.

    A generation is one assignment of partitions: taking in a new one forgets the old. Taking offsets again in the same
    generation replaces what was held from there on. Not thread-safe.
    """

    def __init__(self) -> None:
        self._partitions: dict[P, _Held] = {}
        self.outstanding = 0  # bytes taken and not acknowledged
        self.unacknowledged = 0  # slices

    def take(self, partition: P, generation: Hashable, first: int, last: int, size: int = 0) -> Ticket:
        """Hold a commit of `partition` at `first` until the ticket is acknowledged."""
        tickets = self._held(partition, generation).tickets
        while tickets and tickets[-1].first >= first:
            self._release(tickets.pop())
        if tickets and tickets[-1].last >= first:
            tickets[-1].last = first - 1  # the part before `first` is still that ticket's to acknowledge
        ticket = Ticket(first, last, size)
        tickets.append(ticket)
        self.outstanding += size
        self.unacknowledged += 1
        return ticket

    def skip(self, partition: P, generation: Hashable, following: int) -> None:
        """Nothing is left to take before `following`: a commit after what was taken may go there."""
        held = self._held(partition, generation)
        if held.tickets:
            held.tickets[-1].last = max(held.tickets[-1].last, following - 1)
        else:
            held.upto = following if held.upto is None else max(held.upto, following)

    def acknowledge(self, ticket: Ticket) -> None:
        """Say that everything the ticket stands for is done; any order, any number of times."""
        if ticket.acknowledged or not ticket.held:
            return
        ticket.acknowledged = True
        self.outstanding -= ticket.size
        self.unacknowledged -= 1

    def committable(self, partition: P) -> int | None:
        """The next offset to read once everything acknowledged without a hole before it is committed; None: nothing."""
        held = self._partitions.get(partition)
        if held is None:
            return None
        while held.tickets and held.tickets[0].acknowledged:
            end = held.tickets.popleft().last + 1
            held.upto = end if held.upto is None else max(held.upto, end)
        return held.upto

    def oldest(self, partition: P) -> int | None:
        """First offset that is taken and not acknowledged; None where nothing is in flight."""
        self.committable(partition)
        held = self._partitions.get(partition)
        return held.tickets[0].first if held and held.tickets else None

    def partitions(self) -> list[P]:
        """Those of which something was taken."""
        return list(self._partitions)

    def forget(self, partitions: Iterable[P]) -> None:
        """Let go of partitions that are somebody else's now; acknowledging their tickets changes nothing any more."""
        for partition in partitions:
            held = self._partitions.pop(partition, None)
            for ticket in held.tickets if held else ():
                self._release(ticket)

    def _held(self, partition: P, generation: Hashable) -> _Held:
        held = self._partitions.get(partition)
        if held is None or held.generation != generation:
            self.forget([partition])
            held = self._partitions[partition] = _Held(generation)
        return held

    def _release(self, ticket: Ticket) -> None:
        ticket.held = False
        if not ticket.acknowledged:
            self.outstanding -= ticket.size
            self.unacknowledged -= 1
