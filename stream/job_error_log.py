"""The log says what a job fails of once, again after an hour, and at once where it is something else.

Every run that failed is in `job_history` and in the metrics; a line for each would bury what else is wrong.
"""

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass, field

log = logging.getLogger(__name__)

_REPEAT_S = 3600.0
_NUMBERS = re.compile(r"\d+")  # how long it waits still, say: they make no other reason


@dataclass(slots=True)
class _FailingJob:
    """Runs in a row that failed, and when each reason was last said."""

    runs: int = 0
    logged_at: dict[str, float] = field(default_factory=dict)


class JobErrorLog:
    """Of jobs by name, each of which runs in one thread at a time; `clock` is monotonic, in seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failing: dict[str, _FailingJob] = {}

    def record_failure(self, job: str, why: str) -> None:
        """A run failed of what its message explains."""
        found, now = self._failing.setdefault(job, _FailingJob()), self._clock()
        found.runs += 1
        found.logged_at = {reason: at for reason, at in found.logged_at.items() if now - at < _REPEAT_S}
        reason = _NUMBERS.sub("", why)
        if reason in found.logged_at:
            return
        found.logged_at[reason] = now
        in_a_row = f" ({found.runs} runs in a row failed)" if found.runs > 1 else ""
        log.error("job %s: %s%s", job, why, in_a_row)

    def record_success(self, job: str) -> None:
        """A run went well."""
        found = self._failing.pop(job, None)
        if found is not None:
            log.info("job %s works again, after %d runs that failed", job, found.runs)
