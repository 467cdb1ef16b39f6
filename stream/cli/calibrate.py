"""`ragtide calibrate`."""

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ragtide.stream.cli import completion
from ragtide.stream.cli.agreement_render import (
    agreement_object,
    describe_agreement,
    describe_kappa,
    describe_people,
    estimate_object,
    people_object,
)
from ragtide.stream.cli.names import check_names, given
from ragtide.stream.cli.options import FiniteRange, config_option
from ragtide.stream.cli.problems_lookup import open_database
from ragtide.stream.known_names import known_apps, known_runs
from ragtide.stream.terminal import say, say_json
from ragtide.stream.terminal_text import plain_toml

if TYPE_CHECKING:
    from ragtide.drift.calibration import AtThreshold, Calibration
    from ragtide.drift.label_sample import JudgedTraces
    from ragtide.drift.windows import MetricRef
    from ragtide.evaluators.label_estimates import PeopleEstimate
    from ragtide.stream.settings.loader import Settings


@click.command()
@click.argument("metric")
@click.option("--app", help="Only this application.", shell_complete=completion.apps)
@click.option("--run", "run_id", default="live", show_default=True, help="Scores of this run.")
@click.option(
    "--days", type=FiniteRange(0, 3650, min_open=True), default=30.0, show_default=True, help="Days to look back."
)
@click.option(
    "--good-from",
    type=FiniteRange(),
    help="Compare with people's scores, which are good from here on, not with thumbs.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@config_option
def command(
    metric: str,
    app: str | None,
    run_id: str,
    days: float,
    good_from: float | None,
    as_json: bool,
    config: Path | None,
) -> None:
    """Compare METRIC (evaluator.metric) with people's labels of the same answers, and propose its threshold.

    Kappa is the agreement beyond chance: 0 none, 1 full. Precision is the share of people's bad answers among those
    that the metric calls bad; recall the share of people's bad answers that it finds. The proposed threshold has the
    highest kappa. "On other answers" is the kappa of thresholds on answers that did not choose them: expect that one.

    If some labels are of a sample (ragtide labels sample), it also estimates the share of all answers that people would
    call good, with its 95 % interval, between the first and the last answer with such a label.

    \b
    Examples:
      ragtide calibrate faithfulness.faithfulness
      ragtide calibrate answer_relevancy.answer_relevancy --app shop --good-from 4 --json
    """
    from ragtide.drift.calibration import calibrate, load_labelled_scores
    from ragtide.drift.jobs import server_time
    from ragtide.drift.label_sample import JudgedTraces, estimate_people, labelled_interval
    from ragtide.drift.windows import metrics_by_name
    from ragtide.evaluators import registry

    with open_database(config) as (settings, database):
        metrics = {
            name: one
            for name, one in metrics_by_name(registry.load(settings.evaluators)).items()
            if one.evaluator.combine is None
        }
        check_names("METRIC", [metric], metrics)
        found = metrics[metric]
        since = server_time(database) - timedelta(days=days)
        scores = load_labelled_scores(database, found, run_id, app, since, good_from)
        judged = labelled_interval(database, JudgedTraces(found, run_id, app, since), good_from)
        people = estimate_people(database, judged, good_from)
        if not scores:
            check_names("--app", given(app), (), lambda: known_apps(database))
            check_names("--run", [run_id], ("live",), lambda: known_runs(database))
    made = calibrate(found, scores, _threshold_now(found, app, settings))
    if as_json:
        say_json(_as_object(made, judged, people))
    else:
        say(*_lines(app, made, judged, people))


def _threshold_now(metric: "MetricRef", app: str | None, settings: "Settings") -> float | None:
    from ragtide.drift.rules import Series, rule_for

    rule = rule_for(Series(app or "", "", metric.name, "", "", ""), metric, settings.rules)
    if rule is None:
        return metric.metric.threshold
    return rule.min if metric.metric.better == "higher" else rule.max


def _lines(app: str | None, made: "Calibration", judged: "JudgedTraces", people: "PeopleEstimate | None") -> list[str]:
    from ragtide.drift.calibration import FEWEST

    metric = judged.metric
    if not made.answers:
        return [f"no answers with a score of {metric.name} and a label; docs/labels.md says how to send labels"]
    lines = [f"{metric.name}: {made.answers:,} labelled answers, of which people call {made.bad:,} bad"]
    lines += describe_people(judged, people)
    lines += [_line("now", made.now)] if made.now else ["it has no threshold"]
    if made.proposed is None:
        return [*lines, f"no proposal: it takes {FEWEST} good and {FEWEST} bad answers, and scores that differ"]
    lines += [_line("proposed", made.proposed), f"  on other answers: {describe_kappa(made.kappa_elsewhere)}"]
    side = "min" if metric.metric.better == "higher" else "max"
    lines += ["", "[[rules.overrides]]", f'metric = "{metric.name}"', *([f"app = {plain_toml(app)}"] if app else [])]
    return [*lines, f"{side} = {made.proposed.threshold:.10g}"]


def _line(name: str, at: "AtThreshold") -> str:
    return f"  {name}: threshold {at.threshold:.4g}, {describe_agreement(at)}"


def _as_object(made: "Calibration", judged: "JudgedTraces", people: "PeopleEstimate | None") -> dict[str, Any]:
    return {
        "metric": judged.metric.name,
        "answers": made.answers,
        "bad": made.bad,
        "now": made.now and _at_threshold(made.now),
        "proposed": made.proposed and _at_threshold(made.proposed),
        "kappa_on_other_answers": estimate_object(made.kappa_elsewhere),
        "people": people and people_object(judged, people),
    }


def _at_threshold(at: "AtThreshold") -> dict[str, Any]:
    return {"threshold": at.threshold, **agreement_object(at)}
