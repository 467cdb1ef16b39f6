"""Settings of the dashboards and of the built-in viewer. Only `ragtide.stream.settings.loader` reads them."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field, SecretStr, field_validator

from ragtide.dashboards.data_source import DATA_SOURCE_UID

Name = Literal[
    "fleet",
    "application",
    "metric",
    "trace",
    "problems",
    "pipeline",
    "models",
    "classification",
    "objects",
    "runbooks",
]
Selector = Literal["run", "app", "environment", "model"]
Uid = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,40}$")]
DEFAULT_PREFIX = "ragtide-"
_SHORTEST_TOKEN = 16


class DashboardSettings(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """Names, time range and selectors of the dashboards, in Grafana and in `ragtide view`."""

    uid_prefix: str = Field(
        default=DEFAULT_PREFIX,
        pattern=r"^[A-Za-z0-9_-]{0,24}$",
        description="Start of each dashboard's uid and file name. Change it to keep two deployments in one Grafana.",
    )
    title_prefix: str = Field(default="", max_length=60, description="Start of each dashboard's title.")
    tags: tuple[Annotated[str, Field(min_length=1, max_length=50)], ...] = Field(
        default=("ragtide",),
        min_length=1,
        description="Tags of each dashboard. The menu of dashboards lists those with the first one.",
    )
    folder_uid: Uid = Field(default="ragtide", description="UID of the folder of the dashboards.")
    folder_title: str = Field(default="ragtide", min_length=1, description="Title of that folder, if it is created.")
    data_source_uid: Uid = Field(default=DATA_SOURCE_UID, description="UID of the ClickHouse data source.")
    data_source_name: str = Field(default="ragtide", min_length=1, description="Name of the ClickHouse data source.")
    refresh: str = Field(
        default="",
        pattern=r"^([1-9][0-9]*[smh])?$",
        description="Time between refreshes, e.g. 30s. If empty, each dashboard has its own.",
    )
    time_range: str = Field(
        default="",
        pattern=r"^([1-9][0-9]*[smhdwM])?$",
        description="Time range at first sight, up to now, e.g. 6h. If empty, each dashboard has its own.",
    )
    time_zone: str = Field(
        default="browser", min_length=1, description="Time zone: browser, utc, or a name such as Europe/Berlin."
    )
    leave_out: tuple[Name, ...] = Field(
        default=(), description="Dashboards that are not built. Links to them lead nowhere."
    )
    selected: dict[Selector, str] = Field(
        default={}, description="Choices at first sight, by variable: run, app, environment or model."
    )
    fixed: dict[Selector, str] = Field(
        default={},
        description="Variables with one value that nobody can choose; they are hidden. It narrows what a dashboard "
        "shows, not what its data source may read.",
    )

    @field_validator("selected", "fixed")
    @classmethod
    def _check_values(cls, chosen: dict[Selector, str]) -> dict[Selector, str]:
        if empty := [name for name, value in chosen.items() if not value]:
            raise ValueError(f"{', '.join(empty)}: give a value")
        return chosen

    def uid(self, name: str) -> str:
        """Return the uid of the dashboard of that name."""
        return f"{self.uid_prefix}{name}"


class ViewSettings(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """Where `ragtide view` listens, who may look, and how much one query may cost."""

    listen: str = Field(
        default="127.0.0.1:8080",
        description="Address and port of the viewer, as host:port. Port 0 picks any free one. Other addresses than "
        "loopback need a token.",
    )
    token: SecretStr = Field(
        default=SecretStr(""),
        description="Token that the viewer asks for: 16 characters or more. If empty, the viewer asks on loopback for "
        "none, and on other addresses generates one and prints it.",
    )
    query_timeout_s: float = Field(default=20.0, gt=0, description="Longest time of one query, in seconds.")
    max_rows: int = Field(
        default=10_000, ge=100, le=1_000_000, description="Most rows of a panel. It says so if rows are left out."
    )
    max_bytes_to_read: int = Field(
        default=20 << 30, ge=1 << 20, description="Most bytes that one query may read from ClickHouse, uncompressed."
    )
    concurrent_queries: int = Field(default=6, ge=1, le=8, description="Most queries that run at a time.")

    @field_validator("listen")
    @classmethod
    def _check_listen(cls, listen: str) -> str:
        split_address(listen)
        return listen

    @field_validator("token")
    @classmethod
    def _check_token(cls, token: SecretStr) -> SecretStr:
        if 0 < len(token.get_secret_value()) < _SHORTEST_TOKEN:
            raise ValueError(f"has fewer than {_SHORTEST_TOKEN} characters: `openssl rand -hex 16` makes one")
        return token


def split_address(listen: str) -> tuple[str, int]:
    """Split host:port, or [IPv6]:port; raise ValueError if it is neither."""
    host, _, port = listen.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if host.startswith("[") and host.endswith("]") else host
    if not host or (":" in host and not listen.startswith("[")) or not port.isascii() or not port.isdigit():
        raise ValueError("give host:port, such as 127.0.0.1:8080 or [::1]:8080")
    if int(port) > 65535:
        raise ValueError(f"there is no port {port}")
    return host, int(port)
