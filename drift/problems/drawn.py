"""What a problem's chart draws: the figure that was judged, made of windows, and the line it is held against."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from drift.detectors.positives import CHANNELS as POSITIVE
from drift.detectors.scores import CHANNELS as SCORE
from drift.detectors.series import level_bin
from drift.problems.problem import Problem
from drift.windows import sql
from drift.windows.beyond import FAR, edges, in_bins
from drift.windows.bins import BINS
from drift.windows.metrics import WatchedMetric

_ASPECTS = ("level", "inputs", "coverage")  # of the others no window has the figure


class Line(NamedTuple):
    """A value on the chart, and what it is."""

    name: str
    value: float


class Figure(NamedTuple):
    """Expressions on rows of `windows` in groups: the figure under its name, and how many records it rests on.

    `of_whole`: the problem's segment is none that windows are cut by.
    """

    name: str
    value: str
    records: str
    line: Line | None
    of_whole: bool = False


def judged(problem: Problem, metric: WatchedMetric | None) -> Figure | None:
    """The figure that those moved who tell the problem now; None where windows do not have it.

    `metric` is the problem's, None where nobody knows it: then its bins cannot be read.
    """
    said = problem.attributes
    if problem.aspect not in _ASPECTS:
        return None
    if problem.aspect == "coverage":
        return _part("share without a score", "failed", "applicable", _line("limit", said.get("limit")))
    if "detector" in said:
        return _of_detector(said, metric)
    rule = said.get("rule")
    if rule == "mean":
        return _mean(_line("threshold", said.get("threshold")))
    if rule == "value":
        number, scored = "argMaxIf(value, scored, value IS NOT NULL)", "sumIf(scored, value IS NOT NULL)"
        return Figure("value of the largest window", number, scored, _line("threshold", said.get("threshold")))
    if metric is None:
        return None
    if said.get("min") is not None or said.get("max") is not None:
        wrong = in_bins(*edges(metric.scale, said.get("min"), said.get("max")))
        figure = _part("share that fails", wrong, "scored", _line("limit", said.get("limit")))
        return figure._replace(of_whole="objective" in said)
    return _of_days(said, metric)


def _of_detector(said: Mapping[str, Any], metric: WatchedMetric | None) -> Figure | None:
    channel, usual = said["channel"], _line("usual", said["baseline"])
    kind = said["detector"]
    if kind == "category":
        # Which labels are the others was known only while the detector looked.
        labelled = f"category_counts[{sql.text(channel)}]"
        every = "arraySum(mapValues(category_counts))"
        return None if channel == "other labels" else _part(f"share of {channel}", labelled, every, usual)
    if kind == "score" and channel == SCORE[0]:
        return _mean(usual)
    if kind == "score":
        scatter, freedom = "windows.sum_squares - windows.sum * windows.sum / scored", "sumIf(scored - 1, scored > 1)"
        value = f"sqrt(greatest(sumIf({scatter}, scored > 1), 0) / {freedom})"
        return Figure("standard deviation", value, freedom, usual)
    if kind == "rate" and metric is not None:
        threshold, higher = metric.metric.threshold, metric.metric.better == "higher"
        wrong = in_bins(*edges(metric.scale, threshold if higher else None, None if higher else threshold))
        return _part("share that did not pass", wrong, "scored", usual)
    if kind == "positive" and channel in POSITIVE and said.get("level") is not None:
        return _above(said["level"], level_bin(said["level"]), usual)
    return None


def _of_days(said: Mapping[str, Any], metric: WatchedMetric) -> Figure | None:
    """The share above a level, as a whole day is compared with the days before."""
    level, usual = said.get("level"), _line("usual", said.get("baseline"))
    if level is None:
        return None
    scale = metric.scale
    if not scale.bounded:
        return _above(level, level_bin(level), usual)
    edge = round((level - scale.low) / (scale.high - scale.low) * BINS)
    return _above(level, edge - (scale.better == "higher"), usual)


def _above(level: float, bin_: int, usual: Line | None) -> Figure:
    return _part(f"share above {level:.3g}", in_bins(-FAR, bin_), "scored", usual)


def _mean(line: Line | None) -> Figure:
    return _part("mean", "windows.sum", "scored", line)


def _part(name: str, part: str, of: str, line: Line | None) -> Figure:
    return Figure(name, f"sum({part}) / sum({of})", f"sum({of})", line)


def _line(name: str, value: object) -> Line | None:
    return Line(name, float(value)) if isinstance(value, int | float) else None
