"""Settings of change detection that may differ by application, and known events. Read by `ragtide.drift.settings`."""

from datetime import UTC, date, datetime, time
from typing import Annotated, Literal, Self, get_args
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BaseModel, Field, model_validator

Factor = Annotated[float, Field(ge=1, le=100)]
Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
WEEKDAYS: tuple[Weekday, ...] = get_args(Weekday)


def _known_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(f"there is no time zone {name!r}; write a name such as Europe/Berlin or UTC") from error
    return name


def _known_country(name: str) -> str:
    try:
        import holidays
    except ImportError as error:
        raise ValueError(
            "holidays of countries need the package holidays: install ragtide with the extra calendar"
        ) from error
    country, _, region = name.partition("-")
    try:
        holidays.country_holidays(country, subdiv=region or None)
    except NotImplementedError as error:
        raise ValueError(f"no holidays are known of {name!r}; write ISO 3166 codes such as DE, US or DE-BY") from error
    return name


Zone = Annotated[str, AfterValidator(_known_zone)]
Country = Annotated[str, AfterValidator(_known_country)]


class AppCalendarSettings(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """When the days of an application begin, and which days are no usual ones."""

    time_zone: Zone = Field(
        default="UTC",
        description="Time zone of users, such as Europe/Berlin. Baselines follow its daylight saving time; holidays "
        "and known events are in it.",
    )
    holidays: tuple[Country, ...] = Field(
        default=(),
        description="Countries, or regions such as DE-BY, whose public holidays are left out of change detection. "
        "Needs the extra calendar.",
    )
    dates: tuple[date, ...] = Field(
        default=(), description="Other days that are left out of change detection, such as 2026-12-24."
    )


class AppDrift(AppCalendarSettings, extra="forbid", frozen=True, allow_inf_nan=False):
    """Which series are tested for changes, and how large a change must be. For one app, only what is set overrides."""

    enabled: bool = Field(default=True, description="Test series for changes from their baselines.")
    ignore: tuple[str, ...] = Field(
        default=(), description="Metrics to leave out of change detection, e.g. operations.cost_usd."
    )
    margin: Factor = Field(
        default=1.0,
        description="Smallest change worth reporting, as a multiple of the default tolerance. Higher means fewer, "
        "larger findings. The tolerance is 1 % of a score's range, 10 % of its variance and 10 % of a day's records. "
        "It is a factor of 1.2 of a category's odds and 2 points of AUC for questions.",
    )


class KnownEvent(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """A time that is left out of change detection: one that recurs, such as a nightly load, or a planned one.

    Times are in the application's time zone.
    """

    name: str = Field(min_length=1, max_length=200, description="What happens, e.g. nightly load.")
    app: str = Field(default="*", description="Pattern of the application's name.")
    days: tuple[Weekday, ...] = Field(default=(), description="Weekdays on which it recurs, e.g. monday; none: all.")
    start: time | None = Field(default=None, description="Time of day at which it begins, e.g. 03:00.")
    end: time | None = Field(
        default=None, description="Time of day at which it ends, e.g. 04:00; not later than start: on the next day."
    )
    since: datetime | None = Field(
        default=None, description="When it begins, e.g. 2026-12-01T20:00; with start and end: when it first recurs."
    )
    until: datetime | None = Field(default=None, description="When it ends; with start and end: until when it recurs.")

    @model_validator(mode="after")
    def _is_a_time(self) -> Self:
        if (self.start is None) != (self.end is None):
            raise ValueError(f"calendar event {self.name!r} has only one of start and end; set both")
        if self.start is None and (self.since is None or self.until is None or self.days):
            raise ValueError(f"calendar event {self.name!r} needs start and end (it recurs), or since and until (once)")
        if any(at is not None and at.tzinfo is not None for at in (self.start, self.end)):
            raise ValueError(f"calendar event {self.name!r}: start and end have no time zone; set drift.time_zone")
        first, last = (at and at.replace(tzinfo=at.tzinfo or UTC) for at in (self.since, self.until))
        if first and last and last <= first:
            raise ValueError(f"calendar event {self.name!r} ends before it begins: until must be later than since")
        return self
