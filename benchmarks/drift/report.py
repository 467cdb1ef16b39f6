"""Tables of how detectors did, and whether ours reaches its goals."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from benchmarks.drift.changes import CHANGES
from benchmarks.drift.clock import PER_DAY
from benchmarks.drift.ours import FLEET, FLEET_DAYS
from benchmarks.drift.scoring import Judged, summary

FALSE_PER_DAY = 0.005
STEPS = ("-0.05", "-0.10", "-0.20")
STEPS_FOUND = 0.98
SHAPE_FOUND = 0.5  # of the changes of each unseen shape, some of which have a record in a quarter of an hour
DELAYS_MIN = {
    **dict.fromkeys(STEPS, 10),
    "sd x 1.5": 10,
    "1 to 3 %": 45,
    "latency x 1.3": 15,
    "8 % of mix": 15,
}


def tables(results: Mapping[str, Sequence[Judged]]) -> Iterable[str]:
    """Lines: detectors by change, of dense and of sparse series."""
    yield "false alarms a series-day, share of null time in alarm; minutes to half of the changes (share found)"
    for sparse in (False, True):
        head = f"{'sparse' if sparse else 'dense':16} {'series':>6} {'false':>8} {'messy':>8} {'in alarm':>8}"
        yield "\n" + head + "".join(f" {name:>14}" for name in CHANGES)
        for detector, judged in results.items():
            some = [one for one in judged if (one.label.regime == "sparse") == sparse]
            yield _row(detector, some) + "".join(f" {_found(some, name):>14}" for name in CHANGES)


def by_shape(results: Mapping[str, Sequence[Judged]]) -> Iterable[str]:
    """Lines: a table of each detector, shape by shape, those that change with the change that they have."""
    for detector, judged in results.items():
        yield f"\n{detector:24} {'series':>6} {'false':>8} {'in alarm':>8}  minutes to half of them (share found)"
        for shape in dict.fromkeys(one.label.shape for one in sorted(judged, key=lambda one: one.label.index)):
            some = [one for one in judged if one.label.shape == shape]
            what = dict.fromkeys(one.label.change for one in some if one.label.change)
            moved = ", ".join(f"{name}: {_found(some, name)}" for name in sorted(what))
            whole = summary(some)
            yield f"{shape:24} {len(some):6} {whole.false_per_day:8.4f} {whole.null_in_alarm:8.2%}  {moved}"
        whole = summary(judged)
        yield f"{'all':24} {len(judged):6} {whole.false_per_day:8.4f} {whole.null_in_alarm:8.2%}"


def unmet(judged: Sequence[Judged]) -> list[str]:
    """What falls short of the goals of the benchmark's own population."""
    short = too_many(judged)
    dense = [one for one in judged if one.label.regime != "sparse"]
    found = summary([one for one in dense if one.label.change in STEPS]).found
    if not found >= STEPS_FOUND:
        short.append(f"{found:.1%} of the steps found instead of {STEPS_FOUND:.0%}")
    for name, goal in DELAYS_MIN.items():
        delay = summary([one for one in dense if one.label.change == name]).delay_min
        if not delay <= goal:
            short.append(f"{name} at {delay:.0f} min instead of {goal}")
    return short


def of_fleet(judged: Sequence[Judged]) -> str:
    """How many false alarms all series together had, and in how many days of the whole fleet without a change."""
    false = sum(one.false_episodes for one in judged)
    days = sum(one.null_windows for one in judged) / PER_DAY / len(judged)
    expected = days / FLEET_DAYS
    return f"{FLEET}: {false} false in {days:.1f} days of {len(judged)} series; at most {expected:.1f} expected"


def too_many(judged: Sequence[Judged]) -> list[str]:
    """Whether false alarms are more than the goal."""
    false = summary(judged).false_per_day
    return [] if false <= FALSE_PER_DAY else [f"{false:.4f} false alarms a series-day instead of {FALSE_PER_DAY}"]


def unfound(judged: Sequence[Judged]) -> list[str]:
    """The shapes of which too few changes are found: a detector that never alarms has no false ones."""
    shapes = dict.fromkeys(one.label.shape for one in judged)
    found = {shape: summary(one for one in judged if one.label.shape == shape).found for shape in shapes}
    return [
        f"{share:.0%} of the changes of {shape} found instead of {SHAPE_FOUND:.0%}"
        for shape, share in found.items()
        if share < SHAPE_FOUND
    ]


def _row(detector: str, judged: Sequence[Judged]) -> str:
    whole, messy = summary(judged), summary(one for one in judged if one.label.regime == "messy")
    rates = f"{whole.false_per_day:8.4f} {messy.false_per_day:8.4f} {whole.null_in_alarm:8.2%}"
    return f"{detector:16} {len(judged):6} {rates}"


def _found(judged: Sequence[Judged], change: str) -> str:
    whole = summary(one for one in judged if one.label.change == change)
    if np.isnan(whole.found):
        return "-"
    delay = "never" if np.isinf(whole.delay_min) else f"{whole.delay_min:.0f}"
    return delay if whole.found == 1 else f"{delay} ({whole.found:.0%})"
