"""docs/demo.md has the faults, the metrics that they move and the limits that the demo runs with."""

from pathlib import Path

from ragtide.evaluators import registry
from ragtide.evaluators.encoder_thresholds import with_encoder_thresholds
from ragtide.stream.demo import corpus
from ragtide.stream.demo.console import limit
from ragtide.stream.demo.faults import FAULTS
from ragtide.stream.demo.shown_metrics import shown_metrics
from ragtide.stream.settings.loader import load

SETTINGS = load(Path(corpus.__file__).with_name("demo.toml"), {}).settings
PAGE = (Path(__file__).parents[3] / "docs" / "demo.md").read_text()


def cells(first: str) -> list[str]:
    (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{first}` |")]
    return [cell.strip() for cell in row.strip("|").split("|")]


def test_every_fault_stands_there_with_the_metrics_it_moves() -> None:
    assert [cells(name)[2] for name in FAULTS] == [
        ", ".join(f"`{metric}`" for metric in fault.moves) for fault in FAULTS.values()
    ]


def test_every_watched_metric_stands_there_with_its_limit() -> None:
    names = sorted({metric for fault in FAULTS.values() for metric in fault.moves})
    shown = shown_metrics(with_encoder_thresholds(registry.load(), SETTINGS.evaluators).values(), SETTINGS.rules, names)
    assert [one.metric for one in shown] == names
    assert {one.metric: cells(one.metric)[1] for one in shown} == {one.metric: limit(one) for one in shown}


def test_the_figures_that_make_it_quick_stand_there() -> None:
    windows, rules, every_s = SETTINGS.windows, SETTINGS.rules, SETTINGS.jobs.every_s
    assert (windows.base_s, windows.out_of_orderness_s, every_s) == (10, 2, 2)
    assert (rules.k, rules.m, rules.resolve_after) == (2, 3, 2)
    said = " ".join(PAGE.split())
    assert (
        f"windows of {windows.base_s} s, out-of-orderness {windows.out_of_orderness_s:g} s, jobs every {every_s:g} s"
        in said
    )
    opens = f"a problem opens where {rules.k} of the last {rules.m} windows are bad"
    assert f"{opens} and is resolved after {rules.resolve_after} good ones" in said
