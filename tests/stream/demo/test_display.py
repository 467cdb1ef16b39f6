import io
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.console import Console

from ragtide.drift.attributes import Evidence
from ragtide.drift.problems.groups import EpisodeKey, Groups
from ragtide.drift.problems.model import Problem
from ragtide.drift.settings import RuleOverride, RuleSettings
from ragtide.evaluators import registry
from ragtide.stream.demo.console import View, change, clock, limit, number, render, sparkline
from ragtide.stream.demo.display import Lines, Screen, display
from ragtide.stream.demo.faults import FAULTS, WRONG_CHUNKS
from ragtide.stream.demo.observe import Point, Snapshot
from ragtide.stream.demo.schedule import Episode
from ragtide.stream.demo.shown_metrics import ShownMetric, shown_metrics

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
RELEVANCY = ShownMetric("context_relevancy_soft.recall_relevancy", "mean", 0.5, None, "")
PROBLEM = Problem(
    problem_id="00ff",
    episode=1,
    state="open",
    app="docs-assistant",
    environment="demo",
    model="extractor-1",
    aspect="level",
    metric=RELEVANCY.metric,
    segment="",
    segment_value="",
    kinds=("threshold",),
    active_kinds=("threshold",),
    type="retrieval",
    severity="critical",
    code="P0204",
    standards=(),
    title="docs-assistant: context_relevancy_soft.recall_relevancy 0.776 → 0.171",
    description="The chunks retrieved fit the questions less than they should.",
    attributes={"value": 0.171, "baseline": 0.776, "sample_size": 413},
    evidence=Evidence(value=0.171, baseline=0.776, sample_size=413),
    examples=("abc1", "abc2", "abc3"),
    actions=(),
    rule_id="r",
    first_seen_at=NOW,
    last_seen_at=NOW,
    last_event_at=NOW,
    by_kind={},
)


def points(*means: float | None) -> tuple[Point, ...]:
    return tuple(
        Point(NOW + timedelta(seconds=10 * i), mean, 0 if mean is None else 190, 200) for i, mean in enumerate(means)
    )


def view(elapsed_s: float | None = 65.0, **changes: Any) -> View:
    snapshot = Snapshot(1234, 19.6, 9999, {"fast": 0, "model": 12}, 3, {RELEVANCY.metric: points(0.8, 0.77, 0.17)}, {})
    shown = View("starting", elapsed_s, None, 1250, snapshot, (RELEVANCY,), ())
    return replace(shown, **changes)


def drawn(shown: View) -> str:
    console = Console(file=io.StringIO(), width=120, record=True)
    console.print(render(shown))
    return console.export_text()


def test_the_screen_names_the_address_of_the_dashboards() -> None:
    address = "http://127.0.0.1:8080/"
    for shown in (view(dashboards=address), view(elapsed_s=None, snapshot=None, dashboards=address)):
        assert f"dashboards: {address}" in drawn(shown)
    assert "dashboards" not in drawn(view())


def test_the_screen_shows_traffic_lag_means_with_coverage_and_problems() -> None:
    text = drawn(view(fault=Episode(WRONG_CHUNKS, 30, 75), problems=(PROBLEM,)))
    for part in (
        "01:05 since the first score",
        WRONG_CHUNKS.title,
        "19.6 traces/s",
        "1,250 sent, 1,234 stored",
        "fast 0, model 12",
        "dead letters: 3",
        "0.17",
        "≥ 0.5",
        "190 / 200",
        "open",
        "context_relevancy_soft.recall_relevancy 0.776 → 0.171 on 413 traces",
        "abc1, abc2",
    ):
        assert part in text, part


def test_before_anything_was_observed_the_screen_says_what_is_going_on() -> None:
    assert "starting" in drawn(view(None, snapshot=None))
    assert "problems: none" in drawn(view())
    assert "no fault is on" in drawn(view())


FIGURES = (1.234, 0.171, 0.000123, 12.34, 0.456, 0.789, 0.918, 0.617, 0.555)


def narrow_view(problems: int) -> View:
    """Every metric of the demo, with long names, units and counts, and problems of the same."""
    names = [metric for fault in FAULTS.values() for metric in fault.moves]
    names = list(dict.fromkeys(names))
    assert len(names) == len(FIGURES)
    shown = [ShownMetric(name, "mean", 0.0012, None, "USD") for name in names]
    series = {
        name: tuple(replace(one, scored=1903, seen=2047) for one in points(*[figure] * 20))
        for name, figure in zip(names, FIGURES, strict=True)
    }
    lag = {"fast": 12_345, "model": 67_890}
    snapshot = Snapshot(1_234_567, 199.6, 9999, lag, 321, series, {})
    found = [replace(PROBLEM, problem_id=str(n), metric=name) for n, name in enumerate(names[:problems])]
    fault = Episode(max(FAULTS.values(), key=lambda one: len(one.title)), 30, 75)
    return replace(view(fault=fault), sent=1_234_999, snapshot=snapshot, shown_metrics=shown, problems=found)


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (100, 30), (120, 40), (72, 24)])
@pytest.mark.parametrize("problems", [0, 1, 4, 7])
def test_no_number_is_cut_however_small_the_terminal(columns: int, rows: int, problems: int) -> None:
    shown = narrow_view(problems)
    console = Console(file=io.StringIO(), width=columns, height=rows, record=True)
    console.print(render(shown, columns, rows))
    text = console.export_text()
    assert len(text.rstrip("\n").split("\n")) <= rows
    assert max(map(len, text.split("\n"))) <= columns
    flat = " ".join(text.replace("│", " ").split())
    wanted = [f"{number(figure)} USD ≥ 0.0012 1903 / 2047" for figure in FIGURES]
    wanted += ["1,234,999 sent, 1,234,567 stored", "lag in records: fast 12345, model 67890", "dead letters: 321"]
    wanted += ["0.776 → 0.171 on 413 traces"] if problems else ["problems: none"]
    wanted += ["more: ragtide problems list"] if problems == 7 else []
    assert [part for part in wanted if part not in flat] == []


def test_jobs_that_are_behind_are_named_in_place_of_no_problems() -> None:
    behind = view(delay="jobs are 37 s behind")
    assert "problems: jobs are 37 s behind" in drawn(behind)
    assert "none" not in drawn(behind)
    assert "problems (jobs are 37 s behind)" in drawn(replace(behind, problems=(PROBLEM,)))
    out = io.StringIO()
    Lines(Console(file=out, width=80)).update(behind)
    assert out.getvalue().splitlines()[-1] == "01:05 jobs are 37 s behind"


def test_open_problems_come_first_and_what_does_not_fit_is_counted() -> None:
    resolved = [replace(PROBLEM, problem_id=str(i), state="resolved", metric=f"e.resolved_{i}") for i in range(5)]
    text = drawn(view(problems=(*resolved, PROBLEM)))
    assert text.index(PROBLEM.metric + " 0.776") < text.index("e.resolved_0")
    assert "e.resolved_3" not in text
    assert "and 2 more" in text


def test_bars_are_scaled_from_zero_and_red_beyond_the_limit() -> None:
    drawn_bars = sparkline(points(1.0, None, 0.5, 0.1, 0.0), RELEVANCY)
    assert drawn_bars.plain == "█·▅▂▁"
    assert [str(span.style) for span in drawn_bars.spans] == ["green", "dim", "green", "red", "red"]


def test_numbers_and_limits_in_words() -> None:
    assert (number(None), number(0.123456), number(0.00061), clock(125.9)) == ("-", "0.123", "0.00061", "02:05")
    assert limit(RELEVANCY) == "≥ 0.5"
    assert limit(ShownMetric("m", "mean", None, 1.0, "s")) == "≤ 1"
    assert limit(ShownMetric("m", "any", 1.0, None, "")) == "not one"
    assert change(replace(PROBLEM, evidence=Evidence())) == PROBLEM.metric
    assert change(replace(PROBLEM, evidence=Evidence(value=3))) == f"{PROBLEM.metric} 3"
    share = Evidence(value=1.0, baseline=0.138, sample_size=102, rule="share")
    assert change(replace(PROBLEM, evidence=share)) == f"{PROBLEM.metric} not passed by 13.8 % → 100 % on 102 traces"
    leaks = Evidence(value=42.0, baseline=0.0, sample_size=413, rule="any")
    assert change(replace(PROBLEM, evidence=leaks)) == f"{PROBLEM.metric} 0 → 42 on 413 traces"
    kind = replace(PROBLEM, metric="pii_leakage", segment="finding", segment_value="email", evidence=Evidence(value=3))
    assert change(kind) == "pii_leakage email 3"


def test_of_a_rule_that_allows_none_the_number_of_records_is_shown() -> None:
    leaks = Evidence(value=42, baseline=0, sample_size=1000, rule="any")
    assert change(replace(PROBLEM, evidence=leaks)) == f"{PROBLEM.metric} 0 → 42 on 1000 traces"


def test_plain_lines_tell_every_fault_and_every_change_once() -> None:
    out = io.StringIO()
    lines = Lines(Console(file=out, width=80))
    fault = Episode(WRONG_CHUNKS, 30, 75)
    with lines:
        for shown in (
            view(None, snapshot=None),
            view(None, snapshot=None),
            view(0.2),
            view(5.0),
            view(30.5, fault=fault),
            view(31.5, fault=fault),
            view(52.0, fault=fault, problems=(PROBLEM,)),
            view(53.0, fault=fault, problems=(PROBLEM,)),
            view(75.5, problems=(PROBLEM,)),
            view(76.0, problems=(replace(PROBLEM, state="resolved"),)),
        ):
            lines.update(shown)
    said = out.getvalue().splitlines()
    assert [line for line in said if "traces/s" not in line] == [
        "--:-- starting",
        f"00:30 fault on: wrong_chunks: {WRONG_CHUNKS.title}",
        f"00:52 problem open: {PROBLEM.metric}: {PROBLEM.description} Examples: abc1, abc2, abc3",
        '00:52 alert RagtideThreshold{app="docs-assistant", environment="demo", severity="critical", type="retrieval", '
        f'metric="{PROBLEM.metric}", evaluator="context_relevancy_soft", model="extractor-1", problem_id="00ff"}}: '
        f"docs-assistant: {PROBLEM.metric} 0.776 → 0.171",
        "01:15 fault off",
        f"01:16 problem resolved: {PROBLEM.metric}: {PROBLEM.description} Examples: abc1, abc2, abc3",
    ]
    assert [line[:5] for line in said if "traces/s" in line] == ["00:00", "00:30", "00:52", "01:15"]
    assert "context_relevancy_soft.recall_relevancy 0.17 (≥ 0.5; 190/200)" in said[1]


def test_a_terminal_gets_the_screen_and_a_pipe_the_lines() -> None:
    out = io.StringIO()
    screen = display(Console(file=out, force_terminal=True, width=100))
    assert isinstance(screen, Screen)
    with screen:
        screen.update(view())
    assert "19.6 traces/s" in out.getvalue()
    assert isinstance(display(Console(file=io.StringIO())), Lines)


def test_limits_come_from_the_rules_over_the_evaluators_own() -> None:
    rules = RuleSettings(
        overrides=(
            RuleOverride(metric="groundedness.groundedness", min=0.6),
            RuleOverride(metric="operations.latency_seconds", max=2.0),
            RuleOverride(metric="text_matching.passes", limit=0.25),
        )
    )
    names = (
        "operations.latency_seconds",
        "groundedness.groundedness",
        "rouge.rouge_l",
        "text_matching.passes",
        "pii_leakage.passes",
        "operations.cost_usd",
        "operations.error",
        "no.such",
    )
    found = {one.metric: (one.rule, one.low, one.high) for one in shown_metrics(registry.load().values(), rules, names)}
    assert found == {
        "operations.latency_seconds": ("mean", None, 2.0),
        "groundedness.groundedness": ("mean", 0.6, None),
        "rouge.rouge_l": ("mean", 0.75, None),
        "text_matching.passes": ("share", 0.75, None),
        "pii_leakage.passes": ("any", 1.0, None),
        "operations.error": ("mean", None, 0.05),
    }
    assert list(found) == [name for name in names if name in found]


@pytest.mark.parametrize(("mean", "good"), [(0.5, True), (0.499, False), (1.0, True)])
def test_equal_to_the_limit_is_good(mean: float, good: bool) -> None:
    assert RELEVANCY.good(mean) is good


def test_a_problem_shows_its_symptoms() -> None:
    symptom = replace(PROBLEM, problem_id="11ee", metric="rouge.rouge_l")
    groups = Groups({EpisodeKey.of(symptom): PROBLEM}, {EpisodeKey.of(PROBLEM): [symptom]})
    shown = view(problems=(PROBLEM,), groups=groups)
    out = io.StringIO()
    Console(file=out, width=100).print(render(shown))
    assert "with 1 symptom" in out.getvalue()
    lines = Lines(Console(file=(printed := io.StringIO()), width=100))
    lines.update(shown)
    assert f"problem open: {RELEVANCY.metric}, with 1 symptom:" in printed.getvalue()
