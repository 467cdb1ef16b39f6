"""Send the traffic through the workers' pipeline and run the jobs, in simulated time, on a real database.

Lane fast is the real one; scores of lane model are drawn.
"""

import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from benchmarks.first_day.applications import Application
from benchmarks.first_day.faults import Fault
from benchmarks.first_day.model_lane import model_lane_rows
from ragtide.drift.jobs import JobContext
from ragtide.drift.leadership import elect
from ragtide.drift.notify.annotations import AnnotationChannel
from ragtide.drift.notify.messages import enqueue
from ragtide.drift.problems.groups import Groups, group
from ragtide.drift.problems.model import Problem
from ragtide.drift.problems.store import load_problems
from ragtide.evaluators import registry
from ragtide.evaluators.plan import prepare
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.spec import Lane
from ragtide.evaluators.trace import Trace
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.sink import ClickHouseSink
from ragtide.stream.demo.traffic import encode
from ragtide.stream.ingest.records import StoredRecord
from ragtide.stream.pipeline import Pipeline
from ragtide.stream.settings.loader import load
from tests.drift.check_schedule import CheckSchedule
from tests.drift.world import Heartbeat

HEALTHY = "prod"
_TOPIC = "rag.traces"
_LANE: Lane = "fast"


@dataclass(frozen=True, slots=True)
class Plan:
    """Traces a minute of each environment, and minutes before the faults, of the faults and after them."""

    applications: Sequence[Application]
    faults: Sequence[Fault]
    rate: int = 60
    before_min: int = 20
    fault_min: int = 5
    after_min: int = 30
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Result:
    """What the jobs found: all problems, as groups; the faults began at `onset`.

    `announced` are the openings that were sent, by environment.
    """

    onset: datetime
    problems: Sequence[Problem]
    groups: Groups
    announced: Mapping[str, int]
    traces: int
    constant: Sequence[str]  # insights of metrics that never move

    def parents(self, environment: str) -> list[Problem]:
        """Return the problems that are listed and announced, the first first."""
        found = self.groups.fold([one for one in self.problems if one.environment == environment])
        return sorted(found, key=lambda one: one.opened_at or one.first_seen_at)

    def false_alarms(self, faults: Sequence[Fault]) -> list[Problem]:
        """Return problems of healthy environments, of the system, and those before the faults."""
        names = {fault.name for fault in faults}
        return [
            one
            for one in self.groups.fold(list(self.problems))
            if one.environment not in names or (one.opened_at or one.first_seen_at) < self.onset
        ]

    def detected_s(self, fault: Fault) -> float | None:
        """Return the seconds from the fault to its first problem of a type that fits; None if there is none."""
        fitting = [one for one in self.parents(fault.name) if one.type in fault.types]
        times = [one.opened_at for one in fitting if one.opened_at is not None and one.opened_at >= self.onset]
        return min(((at - self.onset).total_seconds() for at in times), default=None)


@dataclass(slots=True)
class _Traffic:
    """The traces of one environment."""

    application: Application
    environment: str
    fault: Fault | None
    rng: random.Random
    sent: int = 0

    def between(self, since: datetime, until: datetime, fault: tuple[datetime, datetime], rate: int) -> Iterator[Trace]:
        """Yield traces at even distances, a little off; the fault is on from its first time to its second."""
        step = 60 / rate
        for nth in range(round((until - since).total_seconds() / step)):
            at = since + timedelta(seconds=(nth + self.rng.random()) * step)
            self.sent += 1
            trace_id = f"{self.application.name}-{self.environment}-{self.sent}"
            trace = self.application.trace(self.environment, trace_id, at, self.rng)
            is_on = self.fault is not None and fault[0] <= at < fault[1]
            yield self.fault.breaks(trace, self.rng) if self.fault is not None and is_on else trace


def simulate(database: Database, plan: Plan) -> Result:
    """Run the plan with default settings; the jobs run at their intervals while a fault may be found."""
    settings = load(None, {}).settings
    evaluators = registry.load()
    prepared = prepare(evaluators, settings.evaluators, _LANE, None).prepared
    worker = Pipeline(prepared, Resources(None), settings, lane=_LANE)
    term = elect(database, "the only jobs")
    jobs = JobContext(database, evaluators, settings.windows, settings.rules, settings.jobs, term)
    sink = ClickHouseSink(database)
    lasts = timedelta(minutes=plan.before_min + plan.fault_min + plan.after_min)
    opened = (datetime.now(UTC) - lasts).replace(second=0, microsecond=0)
    # Faults do not begin with a window.
    onset = opened + timedelta(minutes=plan.before_min, seconds=20)
    end = onset + timedelta(minutes=plan.fault_min)
    traffic = [_Traffic(one, HEALTHY, None, random.Random(f"{plan.seed} {one.name}")) for one in plan.applications]
    traffic += [
        _Traffic(fault.application, fault.name, fault, random.Random(f"{plan.seed} {fault.name}"))
        for fault in plan.faults
    ]
    checks = CheckSchedule(jobs, opened)
    now, sent = opened, 0
    while now < opened + lasts:
        # Long before the faults, and long after them, nothing has to be found soon.
        is_on = onset - timedelta(minutes=1) <= now < end + timedelta(minutes=3)
        step_s = settings.jobs.every_s * (1 if is_on else 6)
        since, now = now, now + timedelta(seconds=step_s)
        traces = sorted(
            (trace for one in traffic for trace in one.between(since, now, (onset, end), plan.rate)),
            key=lambda one: one.time,
        )
        records = [
            StoredRecord(_TOPIC, 0, sent + nth, int(one.time.timestamp() * 1000), one.trace_id.encode(), encode(one))
            for nth, one in enumerate(traces)
        ]
        sent += len(records)
        done = worker.process(records)
        assert not done.dead, done.dead[0].detail
        done.block.extend(model_lane_rows(done.block, evaluators))
        sink.write(done.block)
        database.insert("progress", [Heartbeat(lane, _TOPIC, 0, lane, now, sent, 0, now) for lane in (_LANE, "model")])
        jobs.run_cycle(now)
        checks.run(now)
        enqueue(database, AnnotationChannel(), term.epoch, now, timedelta(seconds=settings.jobs.group_wait_s))
    jobs.run_insights(now)
    problems = load_problems(database)
    insights = database.rows(
        "SELECT description FROM insights FINAL WHERE JSONExtractString(attributes, 'kind') = 'constant' "
        "AND NOT withdrawn ORDER BY description"
    )
    constant = [row["description"] for row in insights]
    return Result(onset, problems, group(problems, now), _announced(database, onset), sent, constant)


def _announced(database: Database, onset: datetime) -> Counter[str]:
    """Count the openings since `onset` that were announced, by environment."""
    rows = database.rows(
        "SELECT payload FROM outbox FINAL WHERE action = 'open' AND at >= {onset:DateTime64(3, 'UTC')}",
        {"onset": onset},
    )
    tags = [json.loads(row["payload"])["tags"] for row in rows]
    return Counter(tag.partition(":")[2] for some in tags for tag in some if tag.startswith("environment:"))
