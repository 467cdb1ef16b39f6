"""Problems on a terminal: a table, one in text, or all fields as JSON."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from ragtide.dashboards.trace_links import trace_link
from ragtide.drift.attributes import evidence_of
from ragtide.drift.problems.chart import onset_of
from ragtide.drift.problems.inhibition import group_key, inhibited_by
from ragtide.drift.problems.model import EventRow, Problem
from ragtide.sinks.settings import GrafanaSettings
from ragtide.stream.console import plain_console, table_of

_WIDTH = 1000  # of the table where it goes to a file or a pipe: nothing is folded there


def show_table(problems: Sequence[Problem]) -> None:
    """Print a table of problems; one line each if the output is a file or a pipe."""
    console = plain_console()
    table = table_of("problem", "state", "severity", "type", "since (UTC)")
    table.add_column("what", overflow="fold")
    for problem in problems:
        since = _utc(onset_of(problem))
        state = ", ".join((problem.state, *_operator_flags(problem)))
        table.add_row(problem.problem_id[:8], state, problem.severity, problem.type, since, problem.description)
    console.print(table)


def as_objects(problems: Sequence[Problem], known: Sequence[Problem], grafana: GrafanaSettings) -> list[Any]:
    """Problems as JSON objects. `known` may inhibit them; `links` are those of the examples, in order."""
    explained = inhibited_by(known)
    return [
        {
            **msgspec.to_builtins(problem),
            "links": [trace_link(trace_id, problem.app, grafana) for trace_id in problem.examples],
            "group": group_key(problem),
            "inhibited_by": explained.get(problem.problem_id, ()),
        }
        for problem in problems
    ]


def describe_problem(problem: Problem, grafana: GrafanaSettings) -> list[str]:
    """Describe one episode, one fact per line."""
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
    over = [kind for kind in problem.kinds if kind not in problem.active_kinds] if problem.state == "open" else []
    lines += [f"  found by: {', '.join(problem.kinds)}" + (f"; no longer by: {', '.join(over)}" if over else "")]
    lines += [f"  {name}: {value}" for name, value in problem.attributes.items() if value not in (None, "", [], [""])]
    lines += [f"  standards: {', '.join(problem.standards)}"] if problem.standards else []
    lines += ["  example traces, the worst first:", *_examples(problem, grafana)]
    lines += ["  what to do:", *(f"    {action}" for action in problem.actions)]
    return lines


def _examples(problem: Problem, grafana: GrafanaSettings) -> list[str]:
    return [f"    {trace_id}  {trace_link(trace_id, problem.app, grafana)}".rstrip() for trace_id in problem.examples]


def describe_actions(actions: Sequence[EventRow]) -> list[str]:
    """Describe operator actions, one per line; empty if there are none."""
    lines = []
    for event in actions:
        given = evidence_of(event.attributes)
        until = f" until {_utc(given.until)} UTC" if given.until else ""
        why = f": {given.why}" if given.why else ""
        lines.append(f"  {_utc(event.at)} UTC {event.event}{until} by {event.actor or 'unknown'}{why}")
    return ["  what people said:", *lines] if lines else []


def _operator_flags(problem: Problem) -> list[str]:
    actions = {"acked": problem.acked_by, "muted": problem.is_muted(datetime.now(UTC)), "accepted": problem.accepted_by}
    return [mark for mark, is_so in actions.items() if is_so]


def _utc(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S}"
