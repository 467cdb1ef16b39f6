"""Check how full the disks of ClickHouse are."""

from collections.abc import Iterator
from datetime import datetime
from functools import partial

from ragtide.drift.checks.engine import Check, CheckContext, Observation
from ragtide.drift.problems.report import Detection, ProblemKey, build_details, is_of_system, key_of_system
from ragtide.drift.settings import RuleSettings, Severity
from ragtide.drift.text import number, percent
from ragtide.sinks.clickhouse.disks import Disk, disks

_CLEAR_MARGIN = 0.03  # of the disk: so much less than the limit must be used before a problem clears
_CRITICAL_SHARE = 0.95  # of the disk used: critical


class Disks(Check):
    """A disk is fuller than `rules.disk_limit`."""

    kind = "threshold"
    job = "storage"
    has_history = False

    @classmethod
    def owns(cls, key: ProblemKey) -> bool:
        """Rules have the same kind."""
        return is_of_system(key, "storage", "disk")

    def observe(self, ctx: CheckContext, now: datetime) -> Iterator[Observation]:
        """Every disk; raises `ConfigError` where the user may not read how full they are."""
        for disk in disks(ctx.database):
            yield Observation.of(
                key_of_system("storage", "disk", disk.name),
                bad=disk.used > ctx.rules.disk_limit,
                cleared=disk.used <= ctx.rules.disk_limit - _CLEAR_MARGIN,
                detection=partial(_detection, disk, ctx.rules, now),
                read=1,
            )


def _detection(disk: Disk, rules: RuleSettings, now: datetime) -> Detection:
    key = key_of_system("storage", "disk", disk.name)
    left = f"{number(disk.free_bytes / 2**30)} GiB are free"
    message = f"Disk {disk.name} of ClickHouse is {percent(disk.used)} full: {left}."
    attributes = {"value": disk.used, "limit": rules.disk_limit, "free_bytes": disk.free_bytes}
    severity: Severity = "critical" if disk.used >= _CRITICAL_SHARE else "warning"
    return Detection(key, build_details(Disks.kind, key, None, message, attributes, rules, severity=severity), now, now)
