"""Disks of ClickHouse; reading them needs one more right than everything else."""

from typing import NamedTuple

from ragtide.evaluators.errors import ConfigError
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.errors import NotGranted


class Disk(NamedTuple):
    """A disk with a size; `used` is a share of it."""

    name: str
    used: float
    free_bytes: int


def disks(database: Database) -> list[Disk]:
    """Disks by name; raises `ConfigError` with the missing grant."""
    try:
        rows = database.rows(
            "SELECT name, 1 - free_space / total_space AS used, free_space AS free_bytes FROM system.disks "
            "WHERE total_space > 0 ORDER BY name"
        )
    except NotGranted as error:
        raise ConfigError(
            "nobody is told that a disk of ClickHouse fills up until its user may read how full they are: "
            f"GRANT SELECT ON system.disks TO {database.settings.user} ({error})"
        ) from None
    return [Disk(**row) for row in rows]
