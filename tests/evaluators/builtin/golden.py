"""Golden files: what each built-in evaluator says of fixed traces, kept with its version.

`python -m tests.evaluators.builtin.golden` writes them. It refuses where a score has moved and the version has not: a
stored score of one version must mean the same for ever.
"""

import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from ragtide.evaluators.registry import load
from ragtide.evaluators.spec import Evaluator
from ragtide.evaluators.trace import Trace
from tests.evaluators.builtin.scoring import NOON, outcomes

FOLDER = Path(__file__).parents[1] / "golden"
TRACES = FOLDER / "traces.json"
TOLERANCES = {"compression_ratio": 0.05}  # builds of zlib differ by some bytes
TOLERANCE = 1e-6


def builtin() -> dict[str, Evaluator]:
    """The built-in evaluators: not those of plug-ins that happen to be installed."""
    return {id: each for id, each in load().items() if each.score.__module__.startswith("ragtide.evaluators.builtin.")}


def traces() -> dict[str, Trace]:
    """The fixed traces by name."""
    named = json.loads(TRACES.read_text())
    return {
        name: msgspec.convert({"trace_id": name, "time": NOON, "app": "golden", **fields}, Trace)
        for name, fields in named.items()
    }


def current(evaluator: Evaluator) -> dict[str, Any]:
    """What the evaluator says now, with a deterministic encoder where it embeds."""
    named = traces()
    given = outcomes(evaluator.id, list(named.values()))
    said = {
        name: {"outcome": type(outcome).__name__, **msgspec.to_builtins(outcome)}
        for name, outcome in zip(named, given, strict=True)
    }
    for outcome in said.values():
        if not outcome.get("explanation", True):
            del outcome["explanation"]  # most have none
    written: dict[str, Any] = json.loads(
        json.dumps({"id": evaluator.id, "version": evaluator.version, "outcomes": said})
    )
    return written


def stored(id: str) -> dict[str, Any] | None:
    """What it said when the file was written; None where there is no file."""
    path = FOLDER / f"{id}.json"
    if not path.exists():
        return None
    read: dict[str, Any] = json.loads(path.read_text())
    return read


def differences(one: Any, other: Any, at: str = "") -> list[str]:
    """Where two outcomes differ, numbers compared with a tolerance."""
    if isinstance(one, float | int) and isinstance(other, float | int):
        return (
            [] if abs(one - other) <= TOLERANCES.get(at.rpartition(".")[2], TOLERANCE) else [f"{at}: {one} != {other}"]
        )
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return [text for key in one for text in differences(one[key], other[key], f"{at}.{key}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [
            text
            for index, (left, right) in enumerate(zip(one, other, strict=True))
            for text in differences(left, right, f"{at}[{index}]")
        ]
    return [] if one == other else [f"{at}: {one!r} != {other!r}"]


def main() -> int:
    """Write every golden file; 1 where a score moved under an unchanged version."""
    refused = 0
    for id, evaluator in builtin().items():
        now, before = current(evaluator), stored(id)
        if before and before["version"] == now["version"] and before["outcomes"].keys() <= now["outcomes"].keys():
            moved = [
                text
                for name, said in before["outcomes"].items()
                for text in differences(said, now["outcomes"][name], name)
            ]
            if moved:
                sys.stderr.write(f"{id}: output moved; raise its version first: {moved[:3]}\n")
                refused = 1
                continue
        (FOLDER / f"{id}.json").write_text(json.dumps(now, indent=1, ensure_ascii=True) + "\n")
    return refused


if __name__ == "__main__":
    sys.exit(main())
