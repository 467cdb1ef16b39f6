"""What users usually ask, for people's eyes: the share of each group of questions, by hour of the day."""

import numpy as np

from drift.detectors.baseline import Warming
from drift.questions import memory as memories
from drift.questions.learning import TICK_QUESTIONS, TICK_S, counted
from drift.questions.lots import Asked, Questions
from drift.questions.memory import Memory
from drift.questions.moved import name_of
from drift.questions.telling import METRIC, place_of
from drift.rules.series import Series
from drift.watching import grid
from drift.watching.shown import Shown, drawn, rests_on
from evaluators.errors import ConfigError
from sinks.clickhouse.database import Database


def shown_questions(database: Database, questions: Questions, app: str, environment: str | None) -> list[Shown]:
    """Of each environment of an application; raises `ConfigError` where there is none."""
    known = memories.read(database)
    found = [asked for asked in known if asked.app == app and environment in (None, asked.environment)]
    if not found:
        raise ConfigError(
            f"no questions of {app!r} are watched as {METRIC}: the job `questions` of `ragwatch jobs` learns how they "
            "are asked once a day's vectors are stored (privacy.store_embeddings)"
        )
    return [_shown(questions, asked, known[asked]) for asked in found]


def _shown(questions: Questions, asked: Asked, memory: Memory) -> Shown:
    reference, place = memory.reference, place_of(asked)
    since = memory.until - grid.DAY_S
    last = questions.lot(asked, since, memory.until, TICK_S, TICK_QUESTIONS)
    groups = reference.groups
    of = groups.of(last.vectors) if len(last.at) else np.empty(0, np.int64)
    names = [f"share of {name_of(group, of, last.topics, groups)}" for group in range(groups.none + 1)]
    ticks = counted(last, groups, np.arange(since, memory.until, TICK_S))
    warming = Warming(int(reference.baseline.warming[0])).why
    return Shown(
        series=Series(*(getattr(place, name) for name in Series._fields)),
        rests_on=rests_on(reference.basis, is_used=True),
        learned_at=grid.time(reference.learned),
        warming=warming,
        warm_at=None,
        not_judged="" if warming else reference.baseline.not_judged()[0],
        records=float(reference.baseline.records[0].max()),
        in_alarm=memory.alarm or memory.unlike,
        channels=tuple(drawn(names, reference.baseline, ticks)),
    )
