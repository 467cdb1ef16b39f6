"""Problems on a terminal: a table, one in text, or all fields as JSON."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from shlex import quote
from typing import Any

import msgspec

from ragtide.drift.attributes import evidence_of
from ragtide.drift.problems import EventRow, Groups, Problem, ProblemSilence, group_key
from ragtide.stream.console import plain_console, table_of

TraceLink = Callable[[str, str], str]  # from trace id and application; empty: there is no page
Silences = Mapping[str, Sequence[ProblemSilence]]  # by problem id
NO_SILENCES: Silences = {}
_WIDTH = 1000  # of the table where it goes to a file or a pipe: nothing is folded there


def show_table(problems: Sequence[Problem], groups: Groups, silences: Silences = NO_SILENCES) -> None:
    """Print a table of problems; one line each if the output is a file or a pipe."""
    console = plain_console()
    table = table_of("problem", "state", "severity", "type", "since (UTC)", "symptoms")
    table.add_column("what", overflow="fold")
    for problem in problems:
        since = _utc(problem.onset)
        silenced = ("silenced",) if problem.problem_id in silences else ()
        state = ", ".join((problem.state, *_operator_flags(problem), *silenced))
        number = len(groups.symptoms_of(problem))
        parent = groups.parent(problem)
        symptoms = f"of {parent.problem_id[:8]}" if parent else str(number or "")
        severity = groups.severity(problem)
        table.add_row(problem.problem_id[:8], state, severity, problem.type, since, symptoms, problem.description)
    console.print(table)


def as_objects(
    problems: Sequence[Problem], groups: Groups, link: TraceLink, silences: Silences = NO_SILENCES
) -> list[Any]:
    """Problems as JSON objects. `parent` explains a symptom; `links` are those of the examples, in order.

    `silences` are those of Alertmanager that hold now.
    """
    return [
        {
            **msgspec.to_builtins(problem),
            "links": [link(trace_id, problem.app) for trace_id in problem.examples],
            "group": group_key(problem),
            "parent": parent.problem_id if (parent := groups.parent(problem)) else None,
            "symptoms": [one.problem_id for one in groups.symptoms_of(problem)],
            "silences": msgspec.to_builtins(silences.get(problem.problem_id, ())),
        }
        for problem in problems
    ]


def describe_head(problem: Problem, groups: Groups, silences: Silences = NO_SILENCES) -> list[str]:
    """State, severity and what happened."""
    return [
        f"{problem.problem_id} episode {problem.episode}: {problem.state}, severity {problem.severity}",
        f"  {problem.description}",
        *([f"  {problem.explanation}"] if problem.explanation else []),
        *(_silence_line(one) for one in silences.get(problem.problem_id, ())),
        *_group_lines(problem, groups),
    ]


def describe_next_steps(problem: Problem) -> list[str]:
    """What to do, the first thing first; empty if the kind says nothing."""
    steps = [f"    {number}. {action}" for number, action in enumerate(problem.actions, 1)]
    return ["  what to do:", *steps] if steps else []


def describe_examples(problem: Problem, link: TraceLink) -> list[str]:
    """A command for each example trace, and its link if the settings have one; empty without examples."""
    lines = []
    for trace_id in problem.examples:
        lines.append(f"    ragtide trace {quote(trace_id)} --app {quote(problem.app)}")
        lines += [f"      {url}"] if (url := link(trace_id, problem.app)) else []
    return ["  example traces, the worst first:", *lines] if lines else []


def describe_details(problem: Problem, *, verbose: bool) -> list[str]:
    """Place, figures, kinds, standards and times, one fact per line; attributes as stored if `verbose`."""
    where = f"{problem.app} {problem.environment}".strip() or "the whole system"
    segment = f", {problem.segment} = {problem.segment_value}" if problem.segment else ""
    over = [kind for kind in problem.kinds if kind not in problem.active_kinds] if problem.state == "open" else []
    facts = {
        "where": f"{where}{f', model {problem.model}' if problem.model else ''}{segment}",
        "metric": problem.metric,
        "type": f"{problem.type} {problem.code}".rstrip(),
        "figures": _figures(problem),
        "found by": ", ".join(problem.kinds) + (f"; no longer by: {', '.join(over)}" if over else ""),
        "standards": ", ".join(problem.standards),
        "traces (event time)": _times({"since": problem.evidence.since, "until": problem.evidence.until}),
        "jobs (processing time)": _times(
            {
                "first seen": problem.first_seen_at,
                "opened": problem.opened_at,
                "last seen": problem.last_seen_at,
                "resolved": problem.resolved_at,
            }
        ),
    }
    lines = ["  details:", *(f"    {name}: {value}" for name, value in facts.items() if value)]
    if verbose:
        given = {name: value for name, value in problem.attributes.items() if value not in (None, "", [], [""])}
        lines += ["  attributes:", *(f"    {name}: {value}" for name, value in given.items())] if given else []
    return lines


def _figures(problem: Problem) -> str:
    found = problem.evidence
    figures = {"value": found.value, "baseline": found.baseline, "threshold": found.threshold, "limit": found.limit}
    said = [f"{name} {value:.4g}" for name, value in figures.items() if value is not None]
    return ", ".join([*said, *([] if found.sample_size is None else [f"sample size {found.sample_size:,}"])])


def _times(times: Mapping[str, datetime | None]) -> str:
    said = ", ".join(f"{what} {_utc(at)}" for what, at in times.items() if at is not None)
    return f"{said} UTC" if said else ""


def _silence_line(silence: ProblemSilence) -> str:
    why = f": {silence.comment}" if silence.comment else ""
    return f"  silenced in Alertmanager by {silence.created_by or 'unknown'} until {_utc(silence.ends_at)} UTC{why}"


def _group_lines(problem: Problem, groups: Groups) -> list[str]:
    parent, symptoms = groups.parent(problem), groups.symptoms_of(problem)
    lines = [f"  symptom of {parent.problem_id}: {parent.description}"] if parent else []
    lines += ["  its symptoms:"] if symptoms else []
    return [*lines, *(f"    {one.problem_id} {one.state} {one.severity}: {one.description}" for one in symptoms)]


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
