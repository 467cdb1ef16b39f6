"""Local services without installation: an embedded broker, ClickHouse and their processes."""
