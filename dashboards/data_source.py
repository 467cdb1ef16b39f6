"""The ClickHouse data source for Grafana's plugin; the same in provisioning files and over the API."""

from typing import Any
from urllib.parse import urlsplit

from ragtide.evaluators.errors import ConfigError

DATA_SOURCE_UID = "ragtide-clickhouse"
PLUGIN = "grafana-clickhouse-datasource"


def data_source(
    url: str, user: str, password: str, database: str, *, uid: str = DATA_SOURCE_UID, name: str = "ragtide"
) -> dict[str, Any]:
    """Describe the data source. `url` is ClickHouse's HTTP interface as Grafana reaches it."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"the data source's url must look like http://host:8123, not {url!r}")
    secure = parts.scheme == "https"
    return {
        "uid": uid,
        "name": name,
        "type": PLUGIN,
        "access": "proxy",
        "jsonData": {
            "host": parts.hostname,
            "port": parts.port or (8443 if secure else 8123),
            "protocol": "http",
            "secure": secure,
            "path": parts.path.strip("/"),
            "username": user,
            "defaultDatabase": database,
        },
        "secureJsonData": {"password": password},
    }
