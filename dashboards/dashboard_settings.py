"""Settings of dashboards: every name and selector that a deployment may want to change, in one section."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field, field_validator

from ragtide.dashboards.data_source import DATA_SOURCE_UID

Name = Literal["fleet", "application", "metric", "trace", "problems", "pipeline", "models", "classification", "objects"]
Selector = Literal["run", "app", "environment", "model"]
Uid = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,40}$")]
DEFAULT_PREFIX = "ragtide-"


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
