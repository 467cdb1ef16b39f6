"""Which faults happen when: of a seed always the same."""

import random
from collections.abc import Mapping
from typing import NamedTuple


class Kind(NamedTuple):
    """A kind of fault: what it befalls, and for how long. One thing suffers one fault at a time."""

    target: str
    shortest_s: float
    longest_s: float


class Fault(NamedTuple):
    """One fault; seconds from the beginning of the schedule."""

    at_s: float
    kind: str
    for_s: float


KINDS: Mapping[str, Kind] = {
    "kill_worker": Kind("worker", 0, 1),
    "stop_worker": Kind("worker", 0, 1),
    "stall_worker": Kind("worker", 0.5, 2),
    "zombie_worker": Kind("worker", 6, 8),  # longer than its session
    "second_worker": Kind("second worker", 4, 7),
    "kill_jobs": Kind("jobs", 0, 1),
    "zombie_jobs": Kind("jobs", 6, 8),
    "kill_clickhouse": Kind("clickhouse", 0, 2),
    "stall_clickhouse": Kind("clickhouse", 1, 4),
    "kill_broker": Kind("broker", 0, 1),
    "stall_broker": Kind("broker", 0.5, 3),
    "hostile_records": Kind("topic", 0, 1),
    "insert_answered_with_error": Kind("inserts", 1, 4),
    "insert_not_answered": Kind("inserts", 2, 7),  # longer than a worker waits
    "insert_delayed": Kind("inserts", 1, 4),
}


def schedule(seed: int, seconds: float) -> list[Fault]:
    """About a fault a second, all over after `seconds`; each kind once before one comes twice, as far as they fit."""
    dice = random.Random(seed)
    faults: list[Fault] = []
    free_at: dict[str, float] = {}
    waiting: list[str] = []
    at_s = 0.0
    while at_s < seconds:
        waiting = waiting or dice.sample(list(KINDS), len(KINDS))
        for name in waiting:
            kind = KINDS[name]
            if free_at.get(kind.target, 0) <= at_s and at_s + kind.shortest_s <= seconds:
                for_s = min(dice.uniform(kind.shortest_s, kind.longest_s), seconds - at_s)
                faults.append(Fault(round(at_s, 2), name, round(for_s, 2)))
                free_at[kind.target] = at_s + for_s
                waiting.remove(name)
                break
        at_s += dice.uniform(0.5, 1.3)
    return faults
