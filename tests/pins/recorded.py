"""What the tables hold after a course, a line a row: behaviour without sentences, and sentences without the rest."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from ragtide.drift.problems.groups import EpisodeKey, parents
from ragtide.drift.problems.store import load_problems
from ragtide.sinks.clickhouse.database import Database

_WHERE = "app, environment, model, aspect, metric, segment, segment_value"
_WORD = re.compile(r"[\w.:@=/-]*")
_ROUNDING = 1e-15
_NUMBER = re.compile(r"\d[\d.,:]*")
_TEXTS = ("app", "environment", "model", "metric", "segment", "segment_value", "evaluator")


def events(database: Database, start: datetime) -> Iterator[str]:
    """Every event: when, what, of which problem by which rule, with its figures."""
    rows = database.rows("SELECT * FROM problem_events FINAL ORDER BY at, problem_id, event_id")
    for row in rows:
        said = json.loads(row["attributes"])
        yield " | ".join(
            [
                f"{since(row['at'], start)} {row['event']} {row['episode']} {row['kind']} {row['severity']}",
                f"{row['problem_id']} {row['event_id']} {row['rule_id']} {row['type']} {row['code'][:5]}",
                _place(row),
                f"{len(row['standards'])} standards, {len(row['actions'])} actions, {_ends(row['examples'])}",
                _figures({name: value for name, value in said.items() if name not in _TEXTS}, start),
            ]
        )


def problems(database: Database, start: datetime) -> Iterator[str]:
    """Every episode as it is folded, and its parent if it is a symptom."""
    known = load_problems(database, states=("pending", "open", "resolved"), every_episode=True)
    parent_of = parents(known, max((one.last_event_at for one in known), default=start))
    for one in sorted(known, key=lambda each: (each.problem_id, each.episode)):
        times = {
            "first": one.first_seen_at,
            "last": one.last_seen_at,
            "opened": one.opened_at,
            "quiet": one.all_clear_since,
            "resolved": one.resolved_at,
        }
        line = f"{one.problem_id} {one.episode} {one.state} {one.severity} kinds {_list(one.kinds)} "
        line += f"active {_list(one.active_kinds)} openings {one.openings} | {_figures(times, start)}"
        parent = parent_of.get(EpisodeKey.of(one))
        yield line + (f" | symptom of {parent.problem_id}" if parent else "")


def windows(database: Database, start: datetime) -> Iterator[str]:
    """Every stored window with its numbers."""
    for row in database.rows("SELECT * FROM windows FINAL ORDER BY ALL"):
        name = f"{row['app']} {row['environment']} {row['metric']} {row['fingerprint']} {row['model']}"
        name += f" {row['prompt_version']} {row['segment']}={row['segment_value']} {row['run_id']}"
        counts = " ".join(str(row[one]) for one in ("seen", "sampled", "applicable", "scored", "failed"))
        sums = " ".join(number(row[one]) for one in ("sum", "sum_squares", "min", "max"))
        maps = " ".join(_map(row[one]) for one in ("skipped", "failures", "bins", "category_counts", "parts"))
        state = f"late {row['late']} revision {row['revision']} {row['state']} incomplete {row['incomplete']}"
        yield f"{since(row['start'], start)} {row['size_s']} {name} | {counts} | {sums} | {maps} | {state}"


def verdicts(database: Database, start: datetime) -> Iterator[str]:
    """Every verdict of a rule."""
    columns = "start, end, rule_id, app, environment, metric, model, segment, segment_value, fingerprint"
    rows = database.rows(f"SELECT * FROM verdicts FINAL ORDER BY {columns}")
    for row in rows:
        where = f"{row['app']} {row['environment']} {row['metric']} {row['model']} {row['fingerprint']}"
        where += f" {row['segment']}={row['segment_value']}"
        numbers = f"{number(row['value'])} of {number(row['threshold'])}, {row['wrong']} of {row['samples']}"
        state = f"revision {row['revision']} incomplete {row['incomplete']}"
        breached = "bad" if row["breached"] else "good"
        times = f"{since(row['start'], start)} {since(row['end'], start)}"
        yield f"{times} {row['rule_id']} {where} | {breached} {numbers} | {state}"


def insights(database: Database, start: datetime) -> Iterator[str]:
    """Every insight with its figures."""
    for row in database.rows("SELECT * FROM insights FINAL ORDER BY type, app, environment, insight_id"):
        said = json.loads(row["attributes"])
        period = f"{since(row['period_start'], start)} to {since(row['period_end'], start)}"
        yield (
            f"{row['insight_id']} {row['type']} {row['app']} {row['environment']} withdrawn {row['withdrawn']} {period}"
            f" | {_ends(row['examples'])} | {_figures(said, start)}"
        )


def messages(database: Database, start: datetime) -> Iterator[str]:
    """Every message that waits to be sent, without its text."""
    rows = database.rows("SELECT * FROM outbox FINAL ORDER BY at, message_id")
    for row in rows:
        payload = {"at": row["at"].isoformat(), **json.loads(row["payload"])}
        times = _figures({name: payload[name] for name in ("at", "start", "end")}, start)
        what = f"{row['message_id']} {row['action']} {row['subject']} {row['state']}"
        yield f"{what} | {times} | {' '.join(payload['tags'])}"


def texts(database: Database) -> Iterator[str]:
    """What these messages say, a line each; their own lines are parted by a slash."""
    rows = database.rows("SELECT payload FROM outbox FINAL ORDER BY at, message_id")
    seen: set[str] = set()
    for row in rows:
        yield from _new(f"message: {' / '.join(json.loads(row['payload'])['text'].splitlines())}", seen)


def sentences(database: Database, start: datetime) -> Iterator[str]:
    """What people read of each problem: a line for each sentence that differs in more than numbers, and what to do."""
    seen: set[str] = set()
    rows = database.rows("SELECT * FROM problem_events FINAL WHERE description != '' ORDER BY at, problem_id, event_id")
    for row in rows:
        said = f"{row['kind'] or row['event']}: {row['description']}"
        do = f"  do: {' / '.join(row['actions'])} [{row['code']}; {', '.join(row['standards'])}]"
        yield from _new(said, seen)
        if row["actions"]:
            yield from _new(do, seen)
    for row in database.rows("SELECT * FROM insights FINAL ORDER BY type, app, environment, insight_id"):
        yield from _new(f"insight {row['type']}: {row['description']}", seen)
        yield from _new(f"  do: {' / '.join(row['actions'])}", seen)


def since(at: datetime, start: datetime) -> str:
    """Hours and minutes from the start, with seconds where there are some."""
    after = at.astimezone(UTC) - start
    sign, seconds = "-" if after < timedelta(0) else "+", abs(after.total_seconds())
    rest = f":{seconds % 60:06.3f}".removesuffix(".000").removesuffix(":00")
    return f"{sign}{int(seconds // 3600)}:{int(seconds // 60 % 60):02d}{rest}"


def number(value: float | None) -> str:
    """Six digits, and 0 for what rounding leaves: sums of floats differ in the last digits from machine to machine."""
    if value is None:
        return "-"
    return f"{value:.6g}" if abs(value) > _ROUNDING else "0"


def _new(line: str, seen: set[str]) -> Iterator[str]:
    form = _NUMBER.sub("N", line)
    if form not in seen:
        seen.add(form)
        yield line


def _place(row: Mapping[str, Any]) -> str:
    return " ".join(str(row[name]) or "-" for name in _WHERE.split(", "))


def _list(items: Iterable[str]) -> str:
    return ",".join(items) or "-"


def _ends(ids: Sequence[str]) -> str:
    """How many examples, the first and the last."""
    return f"{len(ids)} examples {_list([ids[0], ids[-1]] if ids else [])}"


def _map(of: Mapping[Any, Any]) -> str:
    parts = (f"{key}:{number(float(value)) if value is not None else '-'}" for key, value in sorted(of.items()))
    return f"{{{' '.join(parts)}}}"


def _figures(of: Mapping[str, Any], start: datetime) -> str:
    return " ".join(sorted(_leaves("", of, start)))


def _leaves(name: str, value: Any, start: datetime) -> Iterator[str]:
    """Numbers, times, truth values and identifiers, however deep; of another text only that it is there."""
    match value:
        case None:
            return
        case bool():
            yield f"{name}={str(value).lower()}"
        case int() | float():
            yield f"{name}={number(value)}"
        case datetime():
            yield f"{name}={since(value, start)}"
        case str():
            at = _time(value)
            yield f"{name}={since(at, start)}" if at else f"{name}={value if _WORD.fullmatch(value) else '…'}"
        case dict():
            for key, part in value.items():
                yield from _leaves(f"{name}.{key}" if name else key, part, start)
        case list():
            if value and all(isinstance(one, int | float) for one in value):
                yield f"{name}=[{' '.join(map(number, value))}]"
            else:
                for nth, part in enumerate(value):
                    yield from _leaves(f"{name}[{nth}]", part, start)


def _time(text: str) -> datetime | None:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo else None
