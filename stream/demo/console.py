"""The demo's screen: pure functions from a view to what rich renders."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from ragtide.drift.notify import AlertContext, alert_of
from ragtide.drift.problems import Groups, Problem
from ragtide.drift.rules import RULE_KINDS
from ragtide.stream.demo.observe import Point, Snapshot
from ragtide.stream.demo.schedule import Episode
from ragtide.stream.demo.shown_metrics import ShownMetric
from ragtide.stream.terminal_text import plain

_BARS = "▁▂▃▄▅▆▇█"
_TREND, _LEAST_TREND = 18, 6  # windows
_GAP = 2  # between columns
_BORDER, _FRAME_ROWS = 4, 2  # columns and rows of the panel's frame
_SPACIOUS_ROWS = 30
_FIGURES = ("mean", "limit", "scored / seen")
_TITLE = "means of the last closed window"
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
    problems: Sequence[Problem]  # without symptoms
    delay: str = ""  # how far the jobs are behind; empty: not at all
    dashboards: str = ""  # address of the viewer
    groups: Groups = field(default_factory=lambda: Groups({}, {}))


def render(view: View, columns: int = 120, rows: int = 40) -> RenderableType:
    """The whole screen, within `columns` and `rows`: names, trends and examples give way, numbers do not."""
    width = columns - _BORDER
    parts: list[RenderableType] = [*_head(view, width)]
    if view.dashboards:
        parts.append(Text(f"dashboards: {view.dashboards}", style="cyan", no_wrap=True, overflow="fold"))
    if view.snapshot:
        gaps = [Text()] if rows >= _SPACIOUS_ROWS else []
        parts += [*gaps, Text(_TITLE, style="italic"), _metrics(view.snapshot, view.shown_metrics, width), *gaps]
        left = rows - _FRAME_ROWS - len(parts) - len(view.shown_metrics)  # the table has a row of heads, too
        parts.append(_problems(view, width, left))
    return Panel(Group(*parts), title="ragtide demo", subtitle="Ctrl-C ends it", border_style="cyan")


def clock(seconds: float) -> str:
    """Minutes and seconds, e.g. 01:07."""
    return f"{int(seconds) // 60:02d}:{int(seconds) % 60:02d}"


def number(value: float | None) -> str:
    """Three significant digits, or a dash for "could not tell"."""
    return "-" if value is None else f"{value:.3g}"


def limit(metric: ShownMetric) -> str:
    """The limit of a metric in words."""
    if RULE_KINDS[metric.rule].zero_tolerance:
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


def _head(view: View, width: int) -> list[Text]:
    """Lines on the time, the fault and the flow."""
    if view.elapsed_s is None or view.snapshot is None:
        return [Text(view.stage)]
    begin = f"{clock(view.elapsed_s)} since the first score   "
    fault, style = (f"fault: {view.fault.fault.title}", "bold yellow") if view.fault else ("no fault is on", "dim")
    first, *others = _wrapped(fault, width - len(begin))
    lines = [Text(begin).append(first, style), *(Text(f"{'':{len(begin)}}{one}", style) for one in others)]
    snapshot = view.snapshot
    lag = ", ".join(f"{lane} {records}" for lane, records in snapshot.lag.items()) or "-"
    flow = (
        f"{snapshot.rate:.1f} traces/s",
        f"{view.sent:,} sent, {snapshot.stored:,} stored",
        f"lag in records: {lag}",
        f"dead letters: {snapshot.dead_letters}",
    )
    return lines + [Text(one) for one in _joined(flow, width)]


def _joined(facts: Sequence[str], width: int) -> list[str]:
    """The facts side by side, on as many lines as they need."""
    lines = [""]
    for fact in facts:
        beside = f"{lines[-1]}   {fact}".strip()
        lines[-1:] = [beside] if len(beside) <= width or not lines[-1] else [lines[-1], fact]
    return lines


def _metrics(snapshot: Snapshot, shown_metrics: Sequence[ShownMetric], width: int) -> Table:
    cells = [_figures(one, snapshot.series.get(one.metric, ())) for one in shown_metrics]
    figures = [max(map(len, column)) for column in zip(_FIGURES, *cells, strict=True)]
    names = max((len(one.metric) for one in shown_metrics), default=0)
    space = width - sum(figures) - _GAP * len(figures)
    trend = min(_TREND, space - _GAP - names)
    trend = trend if trend >= _LEAST_TREND else 0
    table = Table(box=None, pad_edge=False, width=width)
    names_width = min(names, space - trend - (_GAP if trend else 0))
    table.add_column("metric", no_wrap=True, overflow="ellipsis", width=max(names_width, 1))
    for name, figure_width in zip(_FIGURES, figures, strict=True):
        table.add_column(name, justify="right", no_wrap=True, width=figure_width)
    if trend:
        table.add_column("trend", no_wrap=True, width=trend)
    for one, (mean, bound, coverage) in zip(shown_metrics, cells, strict=True):
        points = snapshot.series.get(one.metric, ())
        bad = bool(points) and points[-1].mean is not None and not one.good(points[-1].mean)
        styled = Text(mean, style="bold red" if bad else "green")
        bars = [sparkline(points[-trend:], one)] if trend else []
        table.add_row(one.metric, styled, bound, coverage, *bars)
    return table


def _figures(metric: ShownMetric, points: Sequence[Point]) -> tuple[str, str, str]:
    """Mean of the last closed window, limit, and coverage."""
    if not points:
        return "-", limit(metric), "-"
    last = points[-1]
    return f"{number(last.mean)} {metric.unit}".rstrip(), limit(metric), f"{last.scored} / {last.seen}"


def change(problem: Problem) -> str:
    """The metric and its segment, values before and after, and the number of traces; unknown parts are left out."""
    found, about = problem.evidence, f"{problem.metric} {problem.segment_value}".rstrip()
    moved = " → ".join(_figure(figure, found.rule) for figure in (found.baseline, found.value) if figure is not None)
    words = f"{about} {'not passed by ' if _is_share(found.rule) else ''}{moved}".rstrip()
    return words if found.sample_size is None else f"{words} on {found.sample_size} traces"


def alert_line(problem: Problem, groups: Groups, *, with_labels: bool = False) -> str:
    """The alert that Alertmanager would get: name, severity and title; all labels as Prometheus writes them."""
    alert = alert_of(problem, AlertContext(), groups.symptoms_of(problem))
    pairs = ", ".join(f'{name}="{value}"' for name, value in alert.labels.items() if name != "alertname")
    labels = f"{{{pairs}}}" if with_labels else f", {alert.labels['severity']}"
    return f"alert {alert.labels['alertname']}{labels}: {alert.annotations['title']}"


def symptom_count(symptoms: Sequence[object]) -> str:
    """The number of symptoms in words."""
    return f"{len(symptoms)} {'symptom' if len(symptoms) == 1 else 'symptoms'}"


def _figure(value: float, rule: str) -> str:
    return f"{100 * value:.3g} %" if _is_share(rule) else number(value)


def _is_share(rule: str) -> bool:
    kind = RULE_KINDS.get(rule)
    return kind is not None and kind.value_type == "share" and not kind.counts_unscored


def _problems(view: View, width: int, rows: int) -> RenderableType:
    """The problems, open ones first: as many as `rows` hold, with examples if there is room."""
    if not view.problems:
        return Text(f"problems: {view.delay or 'none'}", style="yellow" if view.delay else "green")
    table = Table(box=None, pad_edge=False, width=width, show_header=False)
    state_width = max(len(problem.state) for problem in view.problems)
    table.add_column(no_wrap=True, width=state_width)
    table.add_column(overflow="fold", ratio=1)
    ordered = sorted(view.problems, key=lambda problem: problem.state != "open")
    fitting = _fitting(ordered, view.groups, width - state_width - _GAP, rows - 1)
    for problem, what in fitting:
        table.add_row(Text(problem.state, style="bold red" if problem.state == "open" else "green"), what)
    if hidden := len(ordered) - len(fitting):
        table.add_row("", Text(f"and {hidden} more: ragtide problems list", style="dim"))
    return Group(Text(f"problems{f' ({view.delay})' if view.delay else ''}", style="italic"), table)


def _fitting(problems: Sequence[Problem], groups: Groups, width: int, rows: int) -> list[tuple[Problem, Text]]:
    """The first problems that `rows` hold, one at least; a row is left where others are hidden."""
    found: list[tuple[Problem, Text]] = []
    for number, problem in enumerate(problems[:_PROBLEMS], 1):
        symptoms = groups.symptoms_of(problem)
        suffix = f", with {symptom_count(symptoms)}" if symptoms else ""
        lines = _wrapped(plain(f"{change(problem)}{suffix}"), width)
        if found and len(lines) + (number < len(problems)) > rows:
            break
        rows -= len(lines)
        found.append((problem, Text("\n".join(lines))))
    rows -= len(found) < len(problems)
    for problem, what in found:
        examples = _wrapped(plain(f"e.g. traces {', '.join(problem.examples[:_EXAMPLES])}"), width)
        alert = _wrapped(plain(alert_line(problem, groups)), width) if problem.state == "open" else []
        for lines in (examples if problem.examples else [], alert):
            if len(lines) <= rows:
                rows -= len(lines)
                what.append("".join(f"\n{line}" for line in lines), style="dim")
    return found


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_on_hyphens=False) or [""]
