"""ClickHouse without installation: chDB in its own process, behind ClickHouse's HTTP protocol.

Loopback only. Every request needs the key that lies in the data directory.
"""

from ragtide.sinks.clickhouse.embedded.process import EmbeddedClickHouse

__all__ = ["EmbeddedClickHouse"]
