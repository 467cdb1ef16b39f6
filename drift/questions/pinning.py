"""A fixed reference for what users ask: pinned as any metric's, and looked at before it holds."""

from collections import Counter

import numpy as np

from drift.detectors.baseline import Warming
from drift.questions import memory as memories
from drift.questions.learning import Learner
from drift.questions.lots import Questions
from drift.watching.pinning import TOLD, Reach, words
from drift.watching.reference import Pin
from evaluators.errors import ConfigError
from sinks.clickhouse.database import Database


def reach(database: Database, questions: Questions, pin: Pin) -> Reach:
    """Of how many environments of the application it is the reference; others are judged by their last days.

    Raises `ConfigError` where nothing was asked in that time, or too little for every one that is watched.
    """
    rows = database.rows(
        "SELECT count() AS n FROM embeddings WHERE run_id = {run:String} AND app = {app:String} AND is_deleted = 0 "
        "AND time >= {since:DateTime64(3, 'UTC')} AND time < {until:DateTime64(3, 'UTC')}",
        {"run": pin.run_id, "app": pin.app, "since": pin.since, "until": pin.until},
    )
    if not rows[0]["n"]:
        raise ConfigError(f"{words(pin)} has no vectors of questions of {pin.app} (privacy.store_embeddings)")
    learner, found = Learner(questions, history_days=1), Counter[str]()
    for asked, memory in memories.read(database).items():
        if asked.app == pin.app:
            learned = learner.learned(asked, memory.until, pin, pin.basis, np.empty(0, np.int64))
            warming = Warming.NO_RECORDS if learned is None else Warming(int(learned.baseline.warming[0]))
            found[TOLD.get(warming, "")] += 1
    told = Reach(found.pop("", 0), dict(found.most_common()))
    if told.series and not told.judged:
        raise ConfigError(f"{words(pin)} is enough for nothing that is watched of {pin.app}: {told.why_not}")
    return told
