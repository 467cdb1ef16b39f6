"""The scheduled checks in simulated time: each at its interval, as the jobs process runs them."""

from datetime import datetime, timedelta

from ragtide.drift.jobs import JobContext, every_check


class CheckSchedule:
    """Runs the checks that are due; each is due first at `since`."""

    def __init__(self, jobs: JobContext, since: datetime) -> None:
        self._jobs = jobs
        self._checks = [check() for check in every_check() if check.job]
        self._due = [since] * len(self._checks)

    def run(self, now: datetime) -> None:
        """Run the checks that are due now."""
        due = [nth for nth, at in enumerate(self._due) if at <= now]
        self._jobs.run_checks([self._checks[nth] for nth in due], now)
        for nth in due:
            self._due[nth] = now + timedelta(seconds=self._checks[nth].interval_s(self._jobs.settings))

    def run_all(self, now: datetime) -> None:
        """Run every check now: those of long intervals would find what happened since their last run only later."""
        self._jobs.run_checks(self._checks, now)
