"""`ragtide baseline pin|unpin|pins`: what a person says a baseline is to rest on."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragtide.stream.cli import completion
from ragtide.stream.cli.names import check_names
from ragtide.stream.cli.options import EventTime, by_option, config_option, split, user_name, why_option
from ragtide.stream.cli.problems_lookup import open_database
from ragtide.stream.known_names import known_apps
from ragtide.stream.terminal import say, say_json

if TYPE_CHECKING:
    from ragtide.drift.anomalies import BaselinePin, PinCoverage

metric_option = click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME[,NAME]",
    help="Only these metrics, as evaluator.metric. Default: all.",
    shell_complete=completion.metrics,
)
app_argument = click.argument("app", shell_complete=completion.apps)


@click.command("pin")
@app_argument
@metric_option
@click.option("--run", "run_id", metavar="NAME", help="Replay to use as the reference.", shell_complete=completion.runs)
@click.option("--from", "since", type=EventTime(), help="Use live windows from this event time on as the reference.")
@click.option("--to", "until", type=EventTime(), help="With --from: end of the reference in event time.")
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
    """Pin the baseline of APP to a fixed reference, in place of its recent history, from the next scan on.

    The reference applies to series of the same environment, model and evaluator version, if it has enough data for
    them. Other series keep their learned baseline. A learned reference stays even if its windows are deleted. A change
    accepted later replaces it for that series. A replay, or a range below three days, gives one level for all hours.
    With less than a day of records it gives the level only; hours come from history.

    \b
    Examples:
      ragtide baseline pin docs-bot --run release-7 --why "what we shipped"
      ragtide baseline pin docs-bot --metric rouge.rouge_l --from 2026-03-01 --to 2026-03-08 --why "a good week"
    """
    with open_database(config) as (settings, database):
        if (run_id is None) == (since is None or until is None):
            raise click.UsageError("name the reference: either --run, or --from and --to")
        if since is not None and until is not None and since >= until:
            raise click.UsageError("--from must lie before --to")
        named = _metrics_named(metrics)
        from ragtide.drift.anomalies import BaselinePin, monitored_metrics, pinning
        from ragtide.drift.input_drift import QUESTION_METRIC, ClickHouseQuestionStore, pin_coverage
        from ragtide.drift.jobs import server_time
        from ragtide.evaluators import registry
        from ragtide.evaluators.encoder_thresholds import with_encoder_thresholds
        from ragtide.sinks.rows import LIVE

        if run_id is not None:
            since, until = pinning.replay_interval(database, run_id, app)
        assert since is not None
        assert until is not None
        now = server_time(database)
        new = [
            BaselinePin(app, metric, run_id or LIVE, since, until, why, by or user_name(), 0, now) for metric in named
        ]
        watched = monitored_metrics(
            with_encoder_thresholds(registry.load(settings.evaluators), settings.evaluators).values(),
            settings.drift.ignored_everywhere,
        )
        of_questions = [one for one in new if one.metric == QUESTION_METRIC]
        others = [one for one in new if one.metric != QUESTION_METRIC]
        coverage = [pin_coverage(database, ClickHouseQuestionStore(database), one) for one in of_questions]
        coverage += pinning.pin(database, watched, settings.windows, settings.drift, others)
        pinning.save_pins(database, of_questions)
    for one, found in zip([*of_questions, *others], coverage, strict=True):
        say(f"{app}: {_what(one)} judged by {_reference(one)}")
        say(f"  {_describe_coverage(found)}")


@click.command("unpin")
@app_argument
@metric_option
@why_option
@by_option
@config_option
def unpin(app: str, metrics: tuple[str, ...], why: str, by: str | None, config: Path | None) -> None:
    """Return APP to its learned baseline. Without --metric, removes the pin for all metrics together.

    \b
    Examples:
      ragtide baseline unpin docs-bot --why "a new model since"
    """
    with open_database(config) as (_, database):
        named = _metrics_named(metrics)
        from ragtide.drift.anomalies import pinning
        from ragtide.drift.jobs import server_time

        now = server_time(database)
        gone = pinning.unpin(database, app, named, by or user_name(), why, now)
    say(f"{app}: {', '.join(_what(one) for one in gone)} no longer pinned")


@click.command("pins")
@click.argument("app", default="", shell_complete=completion.apps)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of objects, one per pin or unpin.")
@config_option
def pins(app: str, as_json: bool, config: Path | None) -> None:
    """List every pin and unpin of APP, or of all apps, newest first: when, who and why.

    \b
    Examples:
      ragtide baseline pins docs-bot
    """
    with open_database(config) as (_, database):
        from ragtide.drift.anomalies import pinning

        found = pinning.pin_history(database, app)
        if app and not found:
            check_names("APP", [app], (), lambda: known_apps(database))
    if as_json:
        say_json([one._asdict() for one in found], default=str)
        return
    for one in found:
        what = "unpinned from" if one.removed else "pinned to"
        line = f"{one.app}: {_what(one)} {what} {_reference(one)}"
        say(f"{one.at:%Y-%m-%d %H:%M} UTC {one.actor}: {line} ({one.why})")


COMMANDS = (pin, unpin, pins)


def _metrics_named(metrics: tuple[str, ...]) -> tuple[str, ...]:
    """What --metric names; where it is not given: what is said of all metrics together."""
    named = split(metrics)
    if metrics and not named:
        raise click.BadParameter("an empty name; leave --metric out for all metrics", param_hint="--metric")
    return named or ("",)


def _what(pin: "BaselinePin") -> str:
    return pin.metric or "all metrics"


def _reference(pin: "BaselinePin") -> str:
    what = f"run {pin.run_id}" if pin.run_id != "live" else "live"
    last = pin.until - timedelta(seconds=1)
    return f"{what}, {pin.since:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC"


def _describe_coverage(reach: "PinCoverage") -> str:
    if not reach.series:
        return "no series of it is monitored yet"
    whole = f"{reach.used_by} of {reach.series} monitored series"
    return f"{whole}; the others keep their history: {reach.shortfall}" if reach.others else whole
