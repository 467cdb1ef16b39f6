"""Views of question references for operators: the share of each group by hour, and what a pin covers."""

from collections import Counter

import numpy as np

from ragtide.drift.anomalies import BaselinePin, BaselineView, PinCoverage, channel_views, describe_source, pinning
from ragtide.drift.detectors import WarmUp
from ragtide.drift.input_drift import reference as references
from ragtide.drift.input_drift.messages import QUESTION_METRIC, group_label, series_of
from ragtide.drift.input_drift.reference import TICK_QUESTIONS, TICK_S, InputDriftState, ReferenceLearner, count_groups
from ragtide.drift.input_drift.source import QuestionSource, QuestionStore
from ragtide.drift.stats import calendar
from ragtide.evaluators.errors import ConfigError
from ragtide.sinks.clickhouse.database import Database


def reference_views(
    database: Database, questions: QuestionStore, app: str, environment: str | None
) -> list[BaselineView]:
    """Return the view of each environment of an application. Raises `ConfigError` if there is none."""
    known = references.load_states(database)
    found = [source for source in known if source.app == app and environment in (None, source.environment)]
    if not found:
        raise ConfigError(
            f"no questions of {app!r} are monitored as {QUESTION_METRIC}: job `questions` learns their baseline once "
            "vectors of a day are stored (privacy.store_embeddings)"
        )
    return [_view(questions, source, known[source]) for source in found]


def _view(questions: QuestionStore, source: QuestionSource, state: InputDriftState) -> BaselineView:
    reference, since = state.reference, state.until - calendar.DAY_S
    last = questions.sample(source, since, state.until, TICK_S, TICK_QUESTIONS)
    groups = reference.groups
    of = groups.assign(last.vectors)
    names = [f"share of {group_label(group, of, last.topics, groups)}" for group in range(groups.outlier + 1)]
    ticks = count_groups(last, groups, np.arange(since, state.until, TICK_S))
    warming = reference.baseline.warm_up_reasons()[0]
    return BaselineView(
        series=series_of(source),
        rests_on=describe_source(reference.baseline_source, is_used=True),
        learned_at=calendar.utc(reference.learned_at),
        warming=warming,
        warm_at=None,
        not_judged="" if warming else reference.baseline.days_not_judged()[0],
        records=float(reference.baseline.records[0].max()),
        in_alarm=state.is_drifted,
        channels=tuple(channel_views(names, reference.baseline, ticks)),
    )


def pin_coverage(database: Database, questions: QuestionStore, pin: BaselinePin) -> PinCoverage:
    """Return of how many environments of the application the pin can be the reference; others keep their history.

    Raises `ConfigError` if the interval has no questions, or too few for every monitored environment.
    """
    rows = database.rows(
        "SELECT count() AS n FROM embeddings WHERE run_id = {run:String} AND app = {app:String} AND is_deleted = 0 "
        "AND time >= {since:DateTime64(3, 'UTC')} AND time < {until:DateTime64(3, 'UTC')}",
        {"run": pin.run_id, "app": pin.app, "since": pin.since, "until": pin.until},
    )
    if not rows[0]["n"]:
        raise ConfigError(
            f"{pinning.describe_pin(pin)} has no vectors of questions of {pin.app} (privacy.store_embeddings)"
        )
    learner, found = ReferenceLearner(questions, history_days=1), Counter[str]()
    for source, state in references.load_states(database).items():
        if source.app == pin.app:
            reference = learner.learn(source, state.until, pin, pin.baseline_source, np.empty(0, np.int64))
            warming = WarmUp.NO_RECORDS if reference is None else WarmUp(int(reference.baseline.warming[0]))
            found[pinning.SHORTFALLS.get(warming, "")] += 1
    coverage = PinCoverage.of(found)
    coverage.check(pin)
    return coverage
