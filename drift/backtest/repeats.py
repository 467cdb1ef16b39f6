"""Tries the limits of inconsistency on past answers: as often as the job looks, by those of `asked_within_s` before."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime

from ragtide.drift.anomalies.scanner import Progress
from ragtide.drift.backtest.simulate import ProblemSimulation, SimulatedProblem
from ragtide.drift.problems.report import Detection, ProblemKey
from ragtide.drift.robustness import answer_agreement, score_consistency
from ragtide.drift.robustness.repeated_questions import KIND, ConsistencyObservation, apps_with_repeats, lookback_start
from ragtide.drift.settings import RuleSettings
from ragtide.drift.windows.metrics import MetricRef
from ragtide.sinks.clickhouse.database import Database


def simulate_repeated_questions(
    database: Database, metrics: Mapping[str, MetricRef], rules: RuleSettings, moments: range, progress: Progress
) -> Iterator[SimulatedProblem]:
    """What would have been raised at these moments, seconds since 1970; answers of the time before count too.

    Each is a look of the job: nothing is read of applications that repeat no question often enough.
    """
    if not moments:
        return
    min_repeats = min(rules.of(app).inconsistency_askings for app in (*rules.apps, ""))
    first, last = (datetime.fromtimestamp(at, UTC) for at in (moments[0], moments[-1]))
    if not apps_with_repeats(database, lookback_start(rules, first), last, min_repeats):
        return
    simulations: dict[ProblemKey, ProblemSimulation[Detection]] = {}
    for done, at in enumerate(moments, start=1):
        now = datetime.fromtimestamp(at, UTC)
        since = lookback_start(rules, now)
        apps = apps_with_repeats(database, since, now, min_repeats)
        scores = score_consistency.observe(database, metrics, rules, apps, since, now)
        _observe(simulations, at, (*scores, *answer_agreement.observe(database, rules, apps, since, now)), rules)
        progress(done, len(moments))
    for one in simulations.values():
        yield from one.simulated_problems(lambda detection: detection)


def _observe(
    simulations: dict[ProblemKey, ProblemSimulation[Detection]],
    at: int,
    seen: Iterable[ConsistencyObservation],
    rules: RuleSettings,
) -> None:
    quiet = set(simulations)
    for one in seen:
        quiet.discard(one.key)
        if one.detection is not None:
            simulations.setdefault(one.key, ProblemSimulation(one.key, KIND, rules.of(one.key.app))).detect(
                at, one.detection
            )
        elif one.key in simulations and one.state == "unclear":
            simulations[one.key].tick(at)
        elif one.key in simulations:
            simulations[one.key].clear(at)
    for key in quiet:
        simulations[key].clear(at)
