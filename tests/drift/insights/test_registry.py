"""An insight is one module: the room finds it, and its row is stored as all others are."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragtide.drift import insights
from ragtide.drift.insights.data import AppData, PeriodData
from ragtide.drift.insights.model import current_insights, finders
from ragtide.sinks.clickhouse.database import Database
from tests.drift.world import World

CONTRIBUTING = Path(__file__).parents[3] / "CONTRIBUTING.md"


def names(reads: type[AppData] | type[PeriodData]) -> list[str]:
    return [one.find.__name__ for one in finders(reads)]


@pytest.fixture
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The module of the sample in CONTRIBUTING.md, in a folder of its own."""
    _, _, section = CONTRIBUTING.read_text().partition("## Add an insight\n")
    sample = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert sample
    (tmp_path / "all_failing.py").write_text(sample[1])
    monkeypatch.setattr(insights, "__path__", [*insights.__path__, str(tmp_path)])
    yield "all_failing"
    sys.modules.pop(f"{insights.__name__}.all_failing", None)


def test_every_module_is_found_once() -> None:
    assert names(PeriodData) == [
        "best_and_worst",
        "constant_metrics",
        "human_agreement",
        "judge_forms",
        "judge_versions",
        "new_evaluator_versions",
        "recurring_changes",
        "redundant_metrics",
        "speed_and_cost",
    ]
    assert set(names(AppData)) == {
        "failure_clusters",
        "failures",
        "least_grounded",
        "unsound_artifacts",
        "weak_segments",
        "weak_topics",
        "weakest_questions",
    }
    assert len(names(AppData)) == 7


@pytest.mark.clickhouse
def test_a_module_that_is_added_has_its_row(database: Database, added: str) -> None:
    world = World(database)
    world.scores(0, [0.1] * 20, name="t")
    assert added in names(AppData)
    assert world.jobs.run_insights(world.at(100)).raised == 1
    (row,) = current_insights(database, world.at(0))
    assert row.description == "shop (prod): all 20 sampled answers failed."
    figures = json.loads(row.attributes)
    assert (figures["kind"], figures["app"], figures["failed_share"]) == ("all_failing", "shop", 1.0)
    assert figures["failed_share_interval"] == pytest.approx([0.8389, 1.0], abs=1e-3)
    assert len(row.examples) == 10
