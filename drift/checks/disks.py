"""Check how full the disks of ClickHouse are."""

from collections.abc import Iterator
from datetime import datetime
from functools import partial

from ragtide.drift.checks.engine import Check, CheckContext, Observation
from ragtide.drift.problems import Detection, ProblemKey, build_details
from ragtide.drift.settings import RuleSettings, Severity
from ragtide.drift.text import number, percent
from ragtide.sinks.clickhouse.disks import Disk, disks

_CLEAR_MARGIN = 0.03  # of the disk: a problem clears this far below the limit
_CRITICAL_SHARE = 0.95  # of the disk used: critical


class Disks(Check):
    """A disk is fuller than `rules.disk_limit`."""

    kind = "threshold"
    job = "storage"
    has_history = False

    @classmethod
    def owns(cls, key: ProblemKey) -> bool:
        """Exclude rules, which have the same kind."""
        return key.is_of_system("storage", "disk")

    def observe(self, ctx: CheckContext, now: datetime) -> Iterator[Observation]:
        """Observe every disk. Raises `ConfigError` if the user may not read `system.disks`."""
        for disk in disks(ctx.database):
            yield Observation.of(
                ProblemKey.of_system("storage", "disk", disk.name),
                bad=disk.used > ctx.rules.disk_limit,
                cleared=disk.used <= ctx.rules.disk_limit - _CLEAR_MARGIN,
                detection=partial(_detection, disk, ctx.rules, now),
                read=1,
            )


def _detection(disk: Disk, rules: RuleSettings, now: datetime) -> Detection:
    key = ProblemKey.of_system("storage", "disk", disk.name)
    left = f"{number(disk.free_bytes / 2**30)} GiB are free"
    message = f"Disk {disk.name} of ClickHouse is {percent(disk.used)} full; {left}."
    attributes = {"value": disk.used, "limit": rules.disk_limit, "free_bytes": disk.free_bytes}
    severity: Severity = "critical" if disk.used >= _CRITICAL_SHARE else "warning"
    return Detection(key, build_details(Disks.kind, key, None, message, attributes, rules, severity=severity), now, now)
