"""ClickHouse with nothing to install: chDB in a process of its own, behind ClickHouse's HTTP protocol.

Loopback only. Every request needs the key that lies in the data directory.
"""

from ragtide.sinks.clickhouse.embedded.process import EmbeddedClickHouse

__all__ = ["EmbeddedClickHouse"]
