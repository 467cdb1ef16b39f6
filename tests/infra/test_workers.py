"""How tests are dealt out: each file is in one unit, and the rows name files that exist."""

from pathlib import Path

from tests.infra.workers import AT_THE_END, IN_A_ROW, turn_of, unit_of

ROOT = Path(__file__).parents[2]
FILES = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("tests/**/test_*.py")}


def test_a_file_is_its_own_unit_unless_it_is_in_a_row() -> None:
    assert unit_of("tests/drift/test_histogram.py::test_one[a::b/c]") == "tests/drift/test_histogram.py"
    assert unit_of("tests/chaos/test_kill_worker.py::test_one") == "outages"
    assert unit_of("tests/stream/core/test_worker.py::Test::test_one") == "lanes"


def test_every_beginning_in_a_row_is_that_of_a_file_and_of_one_row_only() -> None:
    beginnings = [beginning for row in IN_A_ROW.values() for beginning in row]
    for beginning in beginnings:
        assert any(name.startswith(beginning) for name in FILES), beginning
        assert [other for other in beginnings if beginning.startswith(other)] == [beginning]


def test_rows_begin_first_and_the_demo_last() -> None:
    assert AT_THE_END in FILES
    dealt = sorted(FILES, key=turn_of)
    rows = [name for name in dealt if unit_of(name) in IN_A_ROW]
    assert dealt[: len(rows)] == rows
    assert dealt[-1] == AT_THE_END
