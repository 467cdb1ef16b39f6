"""The log says what a job fails of once, again after an hour, and at once where it is something else.

Every run that failed is in `job_history` and in the metrics; a line for each would bury what else is wrong.
"""

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass, field

log = logging.getLogger(__name__)

_AGAIN_S = 3600.0
_FIGURES = re.compile(r"\d+")  # how long it waits still, say: they make no other reason


@dataclass(slots=True)
class _Failing:
    """Runs in a row that failed, and when each reason was last said."""

    runs: int = 0
    said_at: dict[str, float] = field(default_factory=dict)


class JobErrors:
    """Of jobs by name, each of which runs in one thread at a time; `clock` is monotonic, in seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failing: dict[str, _Failing] = {}

    def failed(self, job: str, why: str) -> None:
        """A run failed of what its message explains."""
        found, now = self._failing.setdefault(job, _Failing()), self._clock()
        found.runs += 1
        found.said_at = {reason: at for reason, at in found.said_at.items() if now - at < _AGAIN_S}
        reason = _FIGURES.sub("", why)
        if reason in found.said_at:
            return
        found.said_at[reason] = now
        in_a_row = f" ({found.runs} runs in a row failed)" if found.runs > 1 else ""
        log.error("job %s: %s%s", job, why, in_a_row)

    def done(self, job: str) -> None:
        """A run went well."""
        found = self._failing.pop(job, None)
        if found is not None:
            log.info("job %s works again, after %d runs that failed", job, found.runs)
