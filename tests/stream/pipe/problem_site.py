"""A database with problems, and `ragtide problems` upon it."""

from datetime import UTC, datetime
from typing import Any

from click.testing import CliRunner, Result

from ragtide.drift.problems.kinds import Kind
from ragtide.drift.problems.model import Problem
from ragtide.drift.problems.report import Detection, ProblemKey, build_details, report_detections
from ragtide.drift.problems.store import load_problems
from ragtide.drift.settings import RuleSettings
from ragtide.drift.windows.metrics import metrics_by_name
from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.cli import main
from tests.drift.world import EVALUATORS, World
from tests.infra.fresh_database import reached

PLACE = ProblemKey("shop", "prod", "m1", "level", "quality.good")


class Site:
    """A database with problems, and commands upon it."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.world = World(database, rules=RuleSettings(min_sample=10, k=1, m=1, resolve_after=1))
        database.command("INSERT INTO job_runs (job, epoch) VALUES ('watch', 1)")  # the jobs run

    def sees(self, kind: Kind, second: float = 60, place: ProblemKey = PLACE) -> list[str]:
        metric = metrics_by_name(EVALUATORS)["quality.good"]
        said = build_details(
            kind, place, metric, f"{kind} sees it at {place.app}", {"threshold": 0.75}, self.world.rules
        )
        trouble = Detection(place, said, self.world.at(0), self.world.at(second))
        told = report_detections(self.database, [trouble], self.world.rules, self.world.term, datetime.now(UTC))
        return [event.event for event in told]

    def run(self, *args: str, exit_code: int = 0) -> Result:
        variables = {"RAGTIDE_CONFIG": None, "COLUMNS": "100", **reached(self.database)}
        found = CliRunner().invoke(main, ["problems", *args], env=variables)
        assert found.exit_code == exit_code, found.output
        return found

    def on(self, what: str, *args: str, exit_code: int = 0) -> str:
        return self.run(what, self.problem.problem_id[:6], *args, exit_code=exit_code).output

    def events(self) -> list[dict[str, Any]]:
        return self.database.rows("SELECT event, actor, attributes FROM problem_events FINAL ORDER BY at")

    @property
    def problem(self) -> Problem:
        (found,) = load_problems(self.database)
        return found
