"""What tried rules would have raised, on a terminal or as JSON."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from rich.table import Table

from drift.dry_run.compared import Compared
from drift.dry_run.would_be import WouldBe
from stream.cli.tables import plain_console, table_of
from stream.plain import plain

_WIDTH = 1000  # of the table where it goes to a file or a pipe: nothing is folded there


def show(found: Sequence[WouldBe], against: Compared, untried: Mapping[str, str]) -> None:
    """A line for each episode and for each problem that is gone, how many there are of each, and what was not tried."""
    console = plain_console()
    if found or against.gone:
        console.print(_table(found, against))
    problems = len(against.new) + len(against.same)
    console.print(
        f"{problems} {'problem' if problems == 1 else 'problems'}: {len(against.new)} new, {len(against.same)} same; "
        f"{len(against.gone)} gone"
    )
    for names, why in untried.items():
        console.print(f"not tried: {names}: {why}")


def as_object(
    found: Sequence[WouldBe], against: Compared, untried: Mapping[str, str], first: datetime, until: datetime
) -> str:
    """JSON of all that is known; times are UTC."""
    told = {
        "from": first.astimezone(UTC),
        "to": until.astimezone(UTC),
        "problems": [one._asdict() for one in found],
        "new": against.new,
        "same": against.same,
        "gone": [{"problem_id": one.problem_id, "description": one.description} for one in against.gone],
        "untried": untried,
    }
    return json.dumps(told, indent=2, ensure_ascii=False, default=datetime.isoformat)


def _table(found: Sequence[WouldBe], against: Compared) -> Table:
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
            plain(one.description),
        )
    for problem in against.gone:
        table.add_row(
            *(problem.problem_id[:8], "gone", ", ".join(problem.kinds), problem.severity),
            *("-", "-", "-", "-", plain(problem.description)),
        )
    return table


def _utc(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S}"
