"""Problems on a terminal: a table of many, one in words, or all that is known of them as JSON."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from dashboards.trace_links import trace_link
from drift.problems.onset import onset_of
from drift.problems.problem import EventRow, Problem
from drift.problems.routing import group_of, inhibited
from sinks.settings import GrafanaSettings
from stream.cli.tables import plain_console, table_of
from stream.plain import plain

_WIDTH = 1000  # of the table where it goes to a file or a pipe: nothing is folded there


def show_table(problems: Sequence[Problem]) -> None:
    """One line each where it goes to a file or a pipe; the description names app and metric."""
    console = plain_console()
    table = table_of("problem", "state", "severity", "type", "since (UTC)")
    table.add_column("what", overflow="fold")
    for problem in problems:
        since = _utc(onset_of(problem))
        state = ", ".join((problem.state, *_marks(problem)))
        table.add_row(problem.problem_id[:8], state, problem.severity, problem.type, since, plain(problem.description))
    console.print(table)


def as_objects(problems: Sequence[Problem], known: Sequence[Problem], grafana: GrafanaSettings) -> str:
    """JSON of these problems; those of `known` may explain them. `links` are of the examples, in their order."""
    explained = inhibited(known)
    objects = [
        {
            **msgspec.to_builtins(problem),
            "links": [trace_link(trace_id, problem.app, grafana) for trace_id in problem.examples],
            "group": group_of(problem),
            "inhibited_by": explained.get(problem.problem_id, ()),
        }
        for problem in problems
    ]
    return json.dumps(objects, indent=2, ensure_ascii=False)


def told(problem: Problem, grafana: GrafanaSettings) -> str:
    """One episode in words."""
    where = f"{problem.app} {problem.environment}".strip()
    segment = f", {problem.segment} = {problem.segment_value}" if problem.segment else ""
    lines = [
        f"{problem.problem_id} episode {problem.episode}: {problem.state}, severity {problem.severity}",
        f"  {problem.description}",
        *([f"  {problem.explanation}"] if problem.explanation else []),
        f"  in {where}{f', model {problem.model}' if problem.model else ''}{segment}: {problem.metric}",
        f"  {problem.type} {problem.code}".rstrip(),
    ]
    times = {
        "first seen": problem.first_seen_at,
        "last seen": problem.last_seen_at,
        "opened": problem.opened_at,
        "resolved": problem.resolved_at,
    }
    lines += [f"  {what} {_utc(at)} UTC" for what, at in times.items() if at is not None]
    over = [kind for kind in problem.kinds if kind not in problem.holding] if problem.state == "open" else []
    lines += [f"  found by: {', '.join(problem.kinds)}" + (f"; no longer by: {', '.join(over)}" if over else "")]
    lines += [f"  {name}: {value}" for name, value in problem.attributes.items() if value not in (None, "", [], [""])]
    lines += [f"  standards: {', '.join(problem.standards)}"] if problem.standards else []
    lines += ["  example traces, the worst first:", *_examples(problem, grafana)]
    lines += ["  what to do:", *(f"    {action}" for action in problem.actions)]
    return "\n".join(map(plain, lines))


def _examples(problem: Problem, grafana: GrafanaSettings) -> list[str]:
    return [f"    {trace_id}  {trace_link(trace_id, problem.app, grafana)}".rstrip() for trace_id in problem.examples]


def words_of_people(said: Sequence[EventRow]) -> str:
    """Who did what when and why, a line each; empty where nobody did."""
    lines = []
    for event in said:
        attributes = json.loads(event.attributes or "{}")
        until = f" until {_utc(datetime.fromisoformat(attributes['until']))} UTC" if "until" in attributes else ""
        why = f": {attributes['why']}" if attributes.get("why") else ""
        lines.append(f"  {_utc(event.at)} UTC {event.event}{until} by {event.actor or 'unknown'}{why}")
    return "\n".join(["  what people said:", *map(plain, lines)]) if lines else ""


def _marks(problem: Problem) -> list[str]:
    said = {"acked": problem.acked_by, "muted": problem.is_muted(datetime.now(UTC)), "accepted": problem.accepted_by}
    return [mark for mark, is_so in said.items() if is_so]


def _utc(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S}"
