"""The demo's screen: pure functions from a view to what rich renders."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from ragtide.drift.problems.model import Problem
from ragtide.drift.rules.kinds import KINDS
from ragtide.stream.console import plain_text
from ragtide.stream.demo.observe import Point, Snapshot
from ragtide.stream.demo.schedule import Episode
from ragtide.stream.demo.shown_metrics import ShownMetric
from ragtide.stream.terminal_text import plain

_BARS = "▁▂▃▄▅▆▇█"
_TREND = 18  # windows
_EXAMPLES = 2
_PROBLEMS = 4


@dataclass(frozen=True, slots=True)
class View:
    """Everything that the console shows at one instant."""

    stage: str  # what is going on, for people
    elapsed_s: float | None  # since the first score
    fault: Episode | None
    sent: int
    snapshot: Snapshot | None
    shown_metrics: Sequence[ShownMetric]
    problems: Sequence[Problem]


def render(view: View) -> RenderableType:
    """The whole screen."""
    parts: list[RenderableType] = [_head(view)]
    if view.snapshot:
        parts += [_metrics(view.snapshot, view.shown_metrics), _problems(view.problems)]
    return Panel(Group(*parts), title="ragtide demo", subtitle="Ctrl-C ends it", border_style="cyan")


def clock(seconds: float) -> str:
    """Minutes and seconds, e.g. 01:07."""
    return f"{int(seconds) // 60:02d}:{int(seconds) % 60:02d}"


def number(value: float | None) -> str:
    """Three significant digits, or a dash for "could not tell"."""
    return "-" if value is None else f"{value:.3g}"


def limit(metric: ShownMetric) -> str:
    """The limit of a metric in words."""
    if KINDS[metric.rule].zero_tolerance:
        return "not one"
    ends = ((metric.low, "≥"), (metric.high, "≤"))
    return " ".join(f"{sign} {number(end)}" for end, sign in ends if end is not None)


def sparkline(points: Sequence[Point], metric: ShownMetric) -> Text:
    """The means of the last windows as bars, bad ones red; a dot for no score."""
    means = [point.mean for point in points[-_TREND:]]
    known = [mean for mean in means if mean is not None] or [0.0]
    low = min(0.0, *known)
    high = max(metric.low or 0.0, metric.high or 0.0, *known)
    text = Text()
    for mean in means:
        if mean is None:
            text.append("·", style="dim")
            continue
        height = (mean - low) / (high - low) if high > low else 0.0
        text.append(_BARS[round(height * (len(_BARS) - 1))], style="green" if metric.good(mean) else "red")
    return text


def _head(view: View) -> RenderableType:
    if view.elapsed_s is None or view.snapshot is None:
        return Text(view.stage)
    line = Text(f"{clock(view.elapsed_s)} since the first score   ")
    if view.fault:
        line.append(f"fault: {view.fault.fault.title}", style="bold yellow")
    else:
        line.append("no fault is on", style="dim")
    snapshot = view.snapshot
    lag = ", ".join(f"{lane} {records}" for lane, records in snapshot.lag.items()) or "-"
    flow = Text(
        f"{snapshot.rate:.1f} traces/s   {view.sent:,} sent, {snapshot.stored:,} stored   "
        f"lag in records: {lag}   dead letters: {snapshot.dead_letters}\n"
    )
    return Group(line, flow)


def _metrics(snapshot: Snapshot, shown_metrics: Sequence[ShownMetric]) -> RenderableType:
    table = Table(expand=True, box=None, pad_edge=False, title="means of the last closed window", title_justify="left")
    table.add_column("metric", no_wrap=True)
    for name in ("mean", "limit", "scored / seen"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("trend", no_wrap=True)
    for one in shown_metrics:
        points = snapshot.series.get(one.metric, ())
        if not points:
            table.add_row(one.metric, "-", limit(one), "-", "")
            continue
        last = points[-1]
        bad = last.mean is not None and not one.good(last.mean)
        mean = Text(f"{number(last.mean)} {one.unit}".rstrip(), style="bold red" if bad else "green")
        table.add_row(one.metric, mean, limit(one), f"{last.scored} / {last.seen}", sparkline(points, one))
    return table


def change(problem: Problem) -> str:
    """The metric, its values before and after, and the number of traces; unknown parts are left out."""
    found = problem.evidence
    moved = " → ".join(_figure(figure, found.rule) for figure in (found.baseline, found.value) if figure is not None)
    words = f"{problem.metric} {'not passed by ' if _is_share(found.rule) else ''}{moved}".rstrip()
    return words if found.sample_size is None else f"{words} on {found.sample_size} traces"


def _figure(value: float, rule: str) -> str:
    return f"{100 * value:.3g} %" if _is_share(rule) else number(value)


def _is_share(rule: str) -> bool:
    kind = KINDS.get(rule)
    return kind is not None and kind.value_type == "share" and not kind.counts_unscored


def _problems(problems: Sequence[Problem]) -> RenderableType:
    if not problems:
        return Text("\nproblems: none", style="green")
    table = Table(expand=True, box=None, pad_edge=False, title="\nproblems", title_justify="left")
    table.add_column("state", no_wrap=True)
    table.add_column("what", ratio=1)
    shown = sorted(problems, key=lambda problem: problem.state != "open")[:_PROBLEMS]
    for problem in shown:
        what = plain_text(change(problem))
        if problem.examples:
            examples = plain(", ".join(problem.examples[:_EXAMPLES]))
            what.append(f"\ne.g. traces {examples}", style="dim")
        table.add_row(Text(problem.state, style="bold red" if problem.state == "open" else "green"), what)
    hidden = len(problems) - len(shown)
    if hidden:
        table.add_row("", Text(f"and {hidden} more: ragtide problems list", style="dim"))
    return table
