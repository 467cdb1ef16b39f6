"""Every query of every dashboard: it gives something over the sample, and bears any choice."""

import pytest

from ragtide.dashboards.build import build
from ragtide.evaluators.registry import load
from tests.dashboards.lint import faults
from tests.dashboards.macros import Choice
from tests.dashboards.shown_application import Shown

BOARDS = sorted(build(load()))
# These have rows, and such a test, of their own.
WITH_OWN_ROWS = {"classification", "objects", "pipeline", "problems", "trace"}
# Of sections of evaluators of whole windows, whose numbers the sample lacks.
EMPTY = {"models": {"table Leaderboard of vision A"}}
SEVERAL: dict[str, Choice] = {"environment": ["prod", "staging"], "model": ["m1"], "resolution": "3600"}
NASTY: dict[str, Choice] = {
    "app": "O'Hara \\ co",
    "environment": ["it's"],
    "model": ["$(x)", "a\\'b"],
    "run": "replay'1",
    "metric": "it's.\\",
    "segment": "a'b",
}
# What a query says of nothing: figures of the whole system, or none.
NOTHING = (0, None, "", "no owner", "no data", "newest", "newest first")
OF_THE_SYSTEM = {"fleet", "pipeline", "problems"}


@pytest.mark.parametrize("board", BOARDS)
def test_the_linter_has_nothing_to_say(board: str) -> None:
    assert list(faults(build(load())[board])) == []


@pytest.mark.clickhouse
@pytest.mark.parametrize("board", [board for board in BOARDS if board not in WITH_OWN_ROWS])
def test_every_query_gives_something(shown: Shown, board: str) -> None:
    without = [where for where in shown.boards[board] if not shown.rows(where, board=board)]
    assert set(without) == EMPTY.get(board, set())


@pytest.mark.clickhouse
@pytest.mark.parametrize("board", BOARDS)
def test_every_query_bears_any_choice(shown: Shown, board: str) -> None:
    for where in shown.boards[board]:
        shown.rows(where, SEVERAL, board=board)
        found = shown.rows(where, NASTY, board=board)
        if not where.startswith("variable run") and board not in OF_THE_SYSTEM:
            values = [value for row in found for value in row.values() if value not in NOTHING]
            assert values == [], where
