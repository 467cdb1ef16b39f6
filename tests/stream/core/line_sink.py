"""A sink whose rows outlive the process that wrote them: one JSON line a row, and switches that a test can flip."""

import json
from pathlib import Path

from ragtide.evaluators.errors import Refused, Transient
from ragtide.sinks.rows import Block


class LineSink:
    """Appends (kind, key, offset) lines to `directory`/rows; `directory`/away makes it Transient.

    Trace ids that begin with "refuse" are Refused.
    """

    def __init__(self, directory: Path) -> None:
        self._rows = directory / "rows"
        self._away = directory / "away"

    def write(self, block: Block) -> None:
        if self._away.exists():
            raise Transient("switched off by the test")
        if any(row.trace_id.startswith("refuse") for row in block.traces):
            raise Refused("a trace that this sink never takes")
        lines: list[tuple[str, str, int]] = [("trace", t.trace_id, t.offset) for t in block.traces]
        lines += [("score", s.trace_id, 0) for s in block.scores]
        lines += [("dead", d.reason, d.offset) for d in block.dead_letters]
        lines += [("progress", f"{p.partition} {p.newest.isoformat()} {p.lag}", p.offset) for p in block.progress]
        with self._rows.open("a") as file:
            file.write("".join(json.dumps(line) + "\n" for line in lines))

    def check(self) -> str:
        if self._away.exists():
            raise Transient("switched off by the test")
        return "lines of a file"

    def close(self) -> None:
        pass


def rows_in(directory: Path) -> list[tuple[str, str, int]]:
    """What was stored; a line cut short by a kill was not."""
    file = directory / "rows"
    if not file.exists():
        return []
    lines = file.read_text().split("\n")[:-1]
    return [tuple(json.loads(line)) for line in lines if line.endswith("]")]
