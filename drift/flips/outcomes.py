"""Whether a metric of a perturbed trace lies on the other side of its line than the original's. Pure."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

Outcome = Literal["same", "worse", "better", "unknown"]


class Lines(NamedTuple):
    """A record is bad below `least` or above `greatest`; equal to them is good."""

    least: float
    greatest: float

    def hold(self, value: float) -> bool:
        """Whether the record is good."""
        return self.least <= value <= self.greatest


class Score(NamedTuple):
    """What one evaluator said of a trace, by which version of it, and which model had answered."""

    status: str
    metrics: Mapping[str, float]
    fingerprint: str
    model: str
    topic: str = ""

    def value(self, key: str) -> float | None:
        """None where there is none."""
        return self.metrics.get(key) if self.status == "scored" else None


NO_SCORE = Score("absent", {}, "", "")


def outcome(here: Score, there: Score, key: str, lines: Lines) -> Outcome | None:
    """Of the perturbed trace `here` and its original; None where the metric is of neither.

    Unknown: one of the two has no value, or failed, or they are of different models or versions of the evaluator.
    """
    value, before = here.value(key), there.value(key)
    if value is None and before is None:
        return "unknown" if "failed" in (here.status, there.status) else None
    if value is None or before is None or here[2:4] != there[2:4]:
        return "unknown"
    passes, passed = lines.hold(value), lines.hold(before)
    if passes == passed:
        return "same"
    return "better" if passes else "worse"
