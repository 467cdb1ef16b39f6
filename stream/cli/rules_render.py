"""Result of a backtest, on a terminal or as JSON."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ragtide.drift.backtest import Diff, SimulatedProblem
from ragtide.stream.console import PlainTable, plain_console, table_of

_WIDTH = 1000  # of the table where it goes to a file or a pipe: nothing is folded there


def show(found: Sequence[SimulatedProblem], against: Diff, not_covered: Mapping[str, str]) -> None:
    """Print a line per simulated episode and per missing problem, their counts, and what was not simulated."""
    console = plain_console()
    if found or against.gone:
        console.print(_table(found, against))
    problems = len(against.new) + len(against.same)
    console.print(
        f"{problems} {'problem' if problems == 1 else 'problems'}: {len(against.new)} new, {len(against.same)} same; "
        f"{len(against.gone)} gone"
    )
    for names, why in not_covered.items():
        console.print(f"not tried: {names}: {why}")


def as_object(
    found: Sequence[SimulatedProblem], against: Diff, not_covered: Mapping[str, str], first: datetime, until: datetime
) -> dict[str, Any]:
    """The result as a JSON object; times are UTC."""
    return {
        "from": first.astimezone(UTC),
        "to": until.astimezone(UTC),
        "problems": [one._asdict() for one in found],
        "new": against.new,
        "same": against.same,
        "gone": [{"problem_id": one.problem_id, "description": one.description} for one in against.gone],
        "untried": not_covered,
    }


def _table(found: Sequence[SimulatedProblem], against: Diff) -> PlainTable:
    table = table_of("problem", "is", "by", "severity", "opened (UTC)", "again", "resolved (UTC)")
    table.add_column("windows", justify="right", no_wrap=True)
    table.add_column("what", overflow="fold")
    for one in found:
        opened, *again = one.openings
        table.add_row(
            one.problem_id[:8],
            "new" if one.problem_id in against.new else "same",
            one.rule,
            one.severity,
            _utc(opened),
            ", ".join(map(_utc, again)) or "-",
            "-" if one.resolved_at is None else _utc(one.resolved_at),
            f"{one.windows:,}",
            one.description,
        )
    for problem in against.gone:
        table.add_row(
            *(problem.problem_id[:8], "gone", ", ".join(problem.kinds), problem.severity),
            *("-", "-", "-", "-", problem.description),
        )
    return table


def _utc(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S}"
