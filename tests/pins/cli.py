"""Runs commands of the product on a pinned database with evaluators of the tests."""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pydantic import BaseModel

from ragtide.evaluators import registry
from ragtide.evaluators.spec import Evaluator
from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.cli import main
from tests.infra.fresh_database import reached
from tests.pins.recorded import number, since


def run_json(
    database: Database,
    evaluators: Mapping[str, Evaluator],
    folder: Path,
    settings: Mapping[str, BaseModel],
    *words: str,
) -> Any:
    """The JSON that a command prints, these settings in its configuration file."""
    config = settings_file(folder / "ragtide.toml", settings)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(registry, "load", lambda *_, **__: dict(evaluators))
        environment = {"RAGTIDE_CONFIG": str(config), **reached(database)}
        found = CliRunner().invoke(main, list(words), env=environment, catch_exceptions=False)
    assert found.exit_code == 0, found.output
    return json.loads(found.stdout)


def settings_file(path: Path, sections: Mapping[str, BaseModel]) -> Path:
    """A settings file with all that is set in these sections."""
    dumped = {name: one.model_dump(mode="json", exclude_unset=True) for name, one in sections.items()}
    path.write_text(
        "".join(
            f"[{name}]\n" + "".join(f"{key} = {_toml(value)}\n" for key, value in section.items())
            for name, section in dumped.items()
        )
    )
    return path


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        pairs = (f"{json.dumps(key)} = {_toml(part)}" for key, part in value.items() if part is not None)
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value)


def backtest(
    database: Database,
    evaluators: Mapping[str, Evaluator],
    folder: Path,
    running: Mapping[str, BaseModel],
    tried: Mapping[str, BaseModel],
    first: datetime,
    until: datetime,
) -> Iterator[str]:
    """What `rules test --json` says of these settings, without sentences; times from `first` on."""
    file = settings_file(folder / "tried.toml", tried)
    span = ("--from", first.isoformat(), "--to", until.isoformat())
    found = run_json(database, evaluators, folder, running, "rules", "test", str(file), *span, "--json")
    for one in found["problems"]:
        times = " ".join(_at(at, first) for at in (one["since"], *one["openings"]))
        over = _at(one["resolved_at"], first) if one["resolved_at"] else "-"
        where = ("app", "environment", "model", "aspect", "metric", "segment", "segment_value")
        place = " ".join(str(one[name]) or "-" for name in where)
        what = f"{one['problem_id']} {one['episode']} {one['state']} {one['rule']} {one['severity']} {one['windows']}"
        yield f"{what} | {place} | since, openings {times} resolved {over}"
    for name in ("new", "same"):
        yield f"{name}: {' '.join(sorted(found[name])) or '-'}"
    yield f"gone: {' '.join(sorted(one['problem_id'] for one in found['gone'])) or '-'}"
    yield f"untried: {', '.join(sorted(found['untried'])) or '-'}"


def _at(text: str, start: datetime) -> str:
    return since(datetime.fromisoformat(text), start)


def flat(value: Any, name: str = "") -> Iterator[str]:
    """A line for each list of numbers, and for each other leaf, of what a command printed."""
    match value:
        case dict():
            for key, part in value.items():
                yield from flat(part, f"{name}.{key}" if name else key)
        case list() if value and all(part is None or isinstance(part, int | float) for part in value):
            yield f"{name}: {' '.join(map(number, value))}"
        case list():
            for nth, part in enumerate(value):
                yield from flat(part, f"{name}[{nth}]")
        case int() | float() if not isinstance(value, bool):
            yield f"{name}: {number(value)}"
        case _:
            yield f"{name}: {value}"
