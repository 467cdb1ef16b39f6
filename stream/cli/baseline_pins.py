"""`ragwatch baseline pin|unpin|pins`: what a person says a baseline is to rest on."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stream.cli.options import EventTime, by_option, config_option, split, user_name, why_option
from stream.cli.problems_found import reached
from stream.plain import plain

if TYPE_CHECKING:
    from drift.watching.pinning import Reach
    from drift.watching.reference import Pin

metric_option = click.option(
    "--metric", "metrics", multiple=True, metavar="NAME[,NAME]", help="Only these, as evaluator.metric; default: all."
)


@click.command("pin")
@click.argument("app")
@metric_option
@click.option("--run", "run_id", metavar="NAME", help="A replay whose scores are the reference.")
@click.option("--from", "since", type=EventTime(), help="Live windows from this event time on are the reference.")
@click.option("--to", "until", type=EventTime(), help="With --from: up to this event time.")
@why_option
@by_option
@config_option
def pin(
    app: str,
    metrics: tuple[str, ...],
    run_id: str | None,
    since: datetime | None,
    until: datetime | None,
    why: str,
    by: str | None,
    config: Path | None,
) -> None:
    """Judge APP by a fixed reference from the next look on, instead of by its last days.

    The reference counts for series of the same environment, model and fingerprint of which it has enough; others are
    judged by their last days as before. Once learned it stays, whatever becomes of its windows; a change that is
    accepted later takes its place for that series. A replay, and a range shorter than three days, has one level for
    all hours; where it has records of less than a day, it gives the level, and the last days the hours around it.

    \b
    Examples:
      ragwatch baseline pin docs-bot --run release-7 --why "what we shipped"
      ragwatch baseline pin docs-bot --metric rouge.rouge_l --from 2026-03-01 --to 2026-03-08 --why "a good week"
    """
    with reached(config) as (settings, database):
        if (run_id is None) == (since is None or until is None):
            raise click.UsageError("name the reference: either --run, or --from and --to")
        if since is not None and until is not None and since >= until:
            raise click.UsageError("--from must lie before --to")
        named = _named(metrics)
        from drift.jobs import server_time
        from drift.questions.lots import StoredQuestions
        from drift.questions.pinning import reach
        from drift.questions.telling import METRIC
        from drift.watching import pinning
        from drift.watching.kinds import watches
        from drift.watching.reference import Pin
        from evaluators import registry
        from evaluators.suited import suited
        from sinks.rows import LIVE

        if run_id is not None:
            since, until = pinning.span_of(database, run_id, app)
        assert since is not None
        assert until is not None
        now = server_time(database)
        new = [Pin(app, metric, run_id or LIVE, since, until, why, by or user_name(), 0, now) for metric in named]
        watched = watches(suited(registry.load(), settings.evaluators).values(), settings.drift.ignored_everywhere)
        of_questions = [one for one in new if one.metric == METRIC]
        others = [one for one in new if one.metric != METRIC]
        reaches = [reach(database, StoredQuestions(database), one) for one in of_questions]
        reaches += pinning.pin(database, watched, settings.windows.base_s, settings.drift.history_days, others)
        pinning.say(database, of_questions)
    for one, found in zip([*of_questions, *others], reaches, strict=True):
        click.echo(f"{app}: {_what(one)} judged by {_reference(one)}")
        click.echo(f"  {_reached(found)}")


@click.command("unpin")
@click.argument("app")
@metric_option
@why_option
@by_option
@config_option
def unpin(app: str, metrics: tuple[str, ...], why: str, by: str | None, config: Path | None) -> None:
    """Judge APP by its last days again; without --metric: what is pinned for all metrics together.

    \b
    Examples:
      ragwatch baseline unpin docs-bot --why "a new model since"
    """
    with reached(config) as (_, database):
        named = _named(metrics)
        from drift.jobs import server_time
        from drift.watching import pinning

        now = server_time(database)
        gone = pinning.unpin(database, app, named, by or user_name(), why, now)
    click.echo(f"{app}: {', '.join(_what(one) for one in gone)} no longer pinned")


@click.command("pins")
@click.argument("app", default="")
@click.option("--json", "as_json", is_flag=True, help="A list of objects, one per word.")
@config_option
def pins(app: str, as_json: bool, config: Path | None) -> None:
    """All that was pinned of APP, or of every one, and unpinned: when, by whom and why; the last word first.

    \b
    Examples:
      ragwatch baseline pins docs-bot
    """
    with reached(config) as (_, database):
        from drift.watching import pinning

        found = pinning.said(database, app)
    if as_json:
        click.echo(json.dumps([one._asdict() for one in found], indent=2, ensure_ascii=False, default=str))
        return
    for one in found:
        what = "unpinned from" if one.removed else "pinned to"
        said = f"{one.app}: {_what(one)} {what} {_reference(one)}"
        click.echo(plain(f"{one.at:%Y-%m-%d %H:%M} UTC {one.actor}: {said} ({one.why})"))


COMMANDS = (pin, unpin, pins)


def _named(metrics: tuple[str, ...]) -> tuple[str, ...]:
    """What --metric names; where it is not given: what is said of all metrics together."""
    named = split(metrics)
    if metrics and not named:
        raise click.BadParameter("it names no metric; leave it out for all", param_hint="--metric")
    return named or ("",)


def _what(pin: "Pin") -> str:
    return pin.metric or "all metrics"


def _reference(pin: "Pin") -> str:
    what = f"run {pin.run_id}" if pin.run_id != "live" else "live"
    last = pin.until - timedelta(seconds=1)
    return f"{what}, {pin.since:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC"


def _reached(reach: "Reach") -> str:
    if not reach.series:
        return "no series of it is watched yet"
    whole = f"{reach.judged} of {reach.series} series that are watched"
    return f"{whole}; the others by their last days, since it has {reach.why_not}" if reach.others else whole
