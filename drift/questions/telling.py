"""What is said where users ask otherwise than before: how far apart, what grew, and which questions show it."""

from datetime import datetime
from typing import Any

import numpy as np

from drift.detectors import watching
from drift.phrases import moment, percent, whereabouts
from drift.problems.accounts import account_of
from drift.problems.events import Account, Place
from drift.questions.comparing import MARGIN, Compared
from drift.questions.lots import Asked
from drift.questions.memory import Memory
from drift.questions.moved import Moved, moved
from drift.settings import RuleSettings
from drift.watching import grid

METRIC = "inputs.question_meaning"
RULE = "questions"
_EXAMPLES = 10
_NATURAL = float(np.log(10))


def place_of(asked: Asked) -> Place:
    """Where the problem is: questions come before any model answers them."""
    return Place(asked.app, asked.environment, "", "inputs", METRIC)


def onset(memory: Memory) -> int:
    """Since when it is so, as far as can be seen: the alarm's onset, or the start of the last whole day."""
    day = grid.floor(memory.until, grid.DAY_S) - grid.DAY_S
    if not memory.alarm:
        return day
    began = int(watching.read(memory.reference.baseline, memory.state).onset[0])
    return min(began, day) if memory.unlike else began


def account(
    asked: Asked, memory: Memory, found: Compared, since: datetime, rules: RuleSettings, margin: float
) -> Account:
    """Of trouble since then, `margin` times what is nobody's business or more. It quotes no question."""
    groups, place, number = moved(memory, found), place_of(asked), len(found.new.at)
    return account_of(
        "input_drift",
        place,
        None,
        _describe(place, memory, found, groups, since),
        _attributes(asked, memory, found, groups) | {"margin": margin * MARGIN},
        rules,
        wrong=round(_elsewhere(found, groups) * number),
        traffic=number,
        examples=found.worst(_EXAMPLES),
        rule_id=RULE,
    )


def _describe(place: Place, memory: Memory, found: Compared, groups: list[Moved], since: datetime) -> str:
    reference = memory.reference
    said = []
    if found.apart is not None:
        one = found.apart
        said.append(
            f"a classifier tells a new question from an old one in {percent(one.area)} of pairs "
            f"({percent(one.low)} to {percent(one.high)}; by chance 50 %)"
        )
    said += [f"{one.name} went from {percent(one.before)} to {percent(one.now)}" for one in groups]
    return (
        f"{whereabouts(place.app, place.environment)}: what users ask since {moment(since)} differs from what they "
        f"asked from {grid.time(reference.since):%Y-%m-%d} to {grid.time(reference.until - 1):%Y-%m-%d}: "
        f"{'; '.join(said)}; on {len(found.new.at):,} questions."
    )


def _attributes(asked: Asked, memory: Memory, found: Compared, groups: list[Moved]) -> dict[str, Any]:
    reference = memory.reference
    told: dict[str, Any] = {
        "encoder": asked.encoder,
        "groups": [one._asdict() for one in groups],
        "moved_share": _elsewhere(found, groups),
        "reference": reference.run_id,
        "reference_since": grid.time(reference.since).isoformat(),
        "reference_until": grid.time(reference.until).isoformat(),
        "sample_size": len(found.new.at),
        "log10_e_value": float(watching.read(reference.baseline, memory.state).evidence[0]) / _NATURAL,
    }
    if found.apart is not None:
        one = found.apart
        told |= {"value": one.area, "baseline": 0.5, "effect_size": 2 * one.area - 1, "low": one.low, "high": one.high}
    if (usual := reference.usual[np.isfinite(reference.usual)]).size:
        told |= {"usual_low": float(usual.min()), "usual_high": float(usual.max()), "days": usual.size}
    return told


def _elsewhere(found: Compared, groups: list[Moved]) -> float:
    """At least so large a share of the questions is not as it was: an area needs 2 area - 1, a group its own move."""
    by_area = 0.0 if found.apart is None else max(2 * found.apart.area - 1, 0.0)
    return max([by_area, *(abs(one.now - one.before) for one in groups)])
