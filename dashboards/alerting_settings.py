"""Settings of alerting in Grafana: which rules there are, and who gets their alerts. Read by the loader only."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal, Self, get_args
from urllib.parse import urlsplit
from zoneinfo import available_timezones

from pydantic import BaseModel, Field, SecretStr, field_validator, model_validator

from ragtide.drift.settings import SEVERITIES, Severity

HealthRule = Literal[
    "jobs-stopped",
    "outbox-waits",
    "lane-behind",
    "workers-silent",
    "dead-letters",
    "evaluator-failures",
    "rows-late",
    "disk-full",
]
# Grafana resolves these when it reads provisioning files. It resolves `$NAME` too, but so may a password begin.
_REFERENCE = re.compile(r"\$(?:\{[A-Za-z_][A-Za-z0-9_]*\}|__env\{[^{}]+\}|__file\{[^{}]+\})")
_TIMES = re.compile(r"((?:[01][0-9]|2[0-3]):[0-5][0-9])-((?:[01][0-9]|2[0-3]):[0-5][0-9]|24:00)")
_SHORTEST_MONTH = 28
_WEEKDAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
# Single `_` only, between others: `__` separates the names of settings in variables of the environment.
Name = Annotated[str, Field(pattern=r"^[a-z0-9]+(_[a-z0-9]+)*$", max_length=40)]
Seconds = Annotated[int, Field(ge=1)]
Text = Annotated[str, Field(min_length=1)]


class _Common(BaseModel, extra="forbid", frozen=True):
    """Settings of every contact point."""

    resolved: bool = Field(default=True, description="Also notify when alerts resolve.")


class WebhookContact(_Common, frozen=True):
    """An address that Grafana posts its JSON to."""

    type: Literal["webhook"]
    url: SecretStr = Field(description="http:// or https:// URL, or a reference such as $__file{/run/secrets/hook}.")
    user: str = Field(default="", description="User name for basic authentication.")
    password: SecretStr = Field(default=SecretStr(""), description="Password of that user.")
    bearer_token: SecretStr = Field(default=SecretStr(""), description="Bearer token, instead of user and password.")

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: SecretStr) -> SecretStr:
        return _checked_url(url)

    @model_validator(mode="after")
    def _check_credentials(self) -> Self:
        if self.user and self.bearer_token.get_secret_value():
            raise ValueError("set user and password, or bearer_token, not both")
        return self


class SlackContact(_Common, frozen=True):
    """A Slack channel, by an incoming webhook or by a bot's token."""

    type: Literal["slack"]
    url: SecretStr = Field(default=SecretStr(""), description="URL of an incoming webhook.")
    token: SecretStr = Field(default=SecretStr(""), description="Token of a bot, instead of url.")
    channel: str = Field(default="", description="Channel, e.g. #search. Required with token.")

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: SecretStr) -> SecretStr:
        return _checked_url(url) if url.get_secret_value() else url

    @model_validator(mode="after")
    def _check_one(self) -> Self:
        if bool(self.url.get_secret_value()) == bool(self.token.get_secret_value()):
            raise ValueError("set url or token")
        if self.token.get_secret_value() and not self.channel:
            raise ValueError("token needs channel")
        return self


class PagerDutyContact(_Common, frozen=True):
    """A PagerDuty service, by Events API v2."""

    type: Literal["pagerduty"]
    integration_key: SecretStr = Field(min_length=1, description="Integration key of the service, for Events API v2.")


class EmailContact(_Common, frozen=True):
    """People who get mails from Grafana's SMTP server."""

    type: Literal["email"]
    addresses: tuple[Text, ...] = Field(min_length=1, description="Addresses; each mail goes to all of them.")

    @field_validator("addresses")
    @classmethod
    def _check_addresses(cls, addresses: tuple[str, ...]) -> tuple[str, ...]:
        if wrong := [one for one in addresses if not re.fullmatch(r"[^\s;,@$]+@[^\s;,@$]+", one)]:
            raise ValueError(f"{', '.join(wrong)}: give addresses such as kim@example.org, one an item")
        return addresses


class TeamsContact(_Common, frozen=True):
    """A Microsoft Teams channel."""

    type: Literal["teams"]
    url: SecretStr = Field(description="URL of the channel's webhook.")

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: SecretStr) -> SecretStr:
        return _checked_url(url)


Contact = Annotated[
    WebhookContact | SlackContact | PagerDutyContact | EmailContact | TeamsContact, Field(discriminator="type")
]


class AlertRoute(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """Which alerts a contact point gets."""

    owner: str = Field(default="*", description="Pattern of the label owner. Empty: alerts without an owner.")
    severities: tuple[Severity, ...] = Field(default=SEVERITIES, min_length=1, description="Severities of the alerts.")
    contact_point: Name = Field(description="Contact point that gets them.")
    mute_timings: tuple[Name, ...] = Field(
        default=(), description="Mute timings during which this route sends nothing."
    )
    continues: bool = Field(default=False, description="Try the routes after this one too.")
    group_wait_s: Seconds | None = Field(
        default=None,
        description="Seconds from the first alert of a group to its message. If unset, grafana_alerting.group_wait_s.",
    )
    group_interval_s: Seconds | None = Field(
        default=None,
        description="Seconds between two messages of a group that changed. If unset, "
        "grafana_alerting.group_interval_s.",
    )
    repeat_interval_s: Seconds | None = Field(
        default=None,
        description="Seconds until alerts that go on are sent again. If unset, grafana_alerting.repeat_interval_s.",
    )


class MuteInterval(BaseModel, extra="forbid", frozen=True):
    """A recurring time. Fields that are empty do not restrict it.

    Values become those that Grafana stores: lower-case weekdays, numbers of months, no range of one.
    """

    times: tuple[str, ...] = Field(
        default=(), description="Times of day, e.g. 00:00-07:00. An end may be 24:00. A night needs two ranges."
    )
    weekdays: tuple[Text, ...] = Field(default=(), description="Days, e.g. saturday or monday:friday.")
    days_of_month: tuple[Text, ...] = Field(default=(), description="Days of the month, e.g. 1 or -3:-1.")
    months: tuple[Text, ...] = Field(default=(), description="Months, e.g. december or 7:8.")
    years: tuple[Text, ...] = Field(default=(), description="Years, e.g. 2026 or 2026:2027.")
    location: str = Field(default="UTC", min_length=1, description="Time zone, e.g. Europe/Berlin.")

    @field_validator("location")
    @classmethod
    def _check_location(cls, location: str) -> str:
        known = available_timezones()
        if known and location not in known:  # without a database of time zones, Grafana checks it
            raise ValueError(f"{location}: no such time zone; give one such as Europe/Berlin or UTC")
        return location

    @field_validator("times")
    @classmethod
    def _check_times(cls, times: tuple[str, ...]) -> tuple[str, ...]:
        for one in times:
            found = _TIMES.fullmatch(one)
            if found is None or found[1] >= found[2]:
                raise ValueError(f"{one}: give start-end within a day, e.g. 18:00-24:00; for a night give two")
        return times

    @field_validator("weekdays")
    @classmethod
    def _normalise_weekdays(cls, weekdays: tuple[str, ...]) -> tuple[str, ...]:
        numbers = {name: number for number, name in enumerate(_WEEKDAYS)}
        return tuple(
            ":".join(_WEEKDAYS[end] for end in _ends(one, numbers, "give days such as saturday or monday:friday"))
            for one in weekdays
        )

    @field_validator("days_of_month")
    @classmethod
    def _normalise_days(cls, days: tuple[str, ...]) -> tuple[str, ...]:
        numbers = {str(number): number for number in range(-31, 32) if number}
        return tuple(_range(one, numbers, "give days such as 1, 10:15 or -3:-1") for one in days)

    @field_validator("months")
    @classmethod
    def _normalise_months(cls, months: tuple[str, ...]) -> tuple[str, ...]:
        numbers = {name: number for number, name in enumerate(_MONTHS, 1)}
        numbers |= {str(number): number for number in range(1, 13)}
        return tuple(_range(one, numbers, "give months such as december or 7:8") for one in months)

    @field_validator("years")
    @classmethod
    def _normalise_years(cls, years: tuple[str, ...]) -> tuple[str, ...]:
        numbers = {str(year): year for year in range(1000, 10_000)}
        return tuple(_range(one, numbers, "give years such as 2026 or 2026:2027") for one in years)


class GrafanaAlertingSettings(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """Alerts that Grafana evaluates and routes: for teams whose alerts go through Grafana."""

    problems: bool | None = Field(
        default=None,
        description="Raise open problems and burning error budgets as alerts in Grafana. If unset, only if "
        "alertmanager.urls is empty: otherwise people would hear of everything twice.",
    )
    burn_rates: bool = Field(
        default=True,
        description="Compute burn rates of rules.objectives in Grafana, also while `ragtide jobs` is down. If false, "
        "problems of kind slo_burn become alerts instead.",
    )
    leave_out: tuple[HealthRule, ...] = Field(
        default=(), description=f"Rules about ragtide itself to leave out, of {', '.join(get_args(HealthRule))}."
    )
    folder_title: str = Field(
        default="",
        max_length=100,
        description="Title of the folder of the rules. If empty: title of the dashboards' folder, followed by "
        "' alerts'. With another dashboards.uid_prefix than the default, the prefix follows in parentheses.",
    )
    every_s: int = Field(
        default=60, ge=10, multiple_of=10, description="Seconds between evaluations of a rule, a multiple of 10."
    )
    outbox_s: float = Field(
        default=900.0, gt=0, description="Longest acceptable wait of a message in the outbox, in seconds."
    )
    behind_s: float = Field(
        default=600.0,
        gt=0,
        description="Largest acceptable age of a lane's newest record while others wait, in seconds.",
    )
    late_s: float = Field(
        default=900.0,
        gt=0,
        description="Largest acceptable time from a trace's event to its row, in seconds: the 95th percentile of ten "
        "minutes.",
    )
    contact_points: dict[Name, Contact] = Field(
        default={},
        description="Contact points: tables [grafana_alerting.contact_points.NAME] with type (webhook, slack, "
        "pagerduty, email or teams) and its settings; docs/alerting.md lists them. NAME has a-z, 0-9 and single "
        "underscores. In Grafana, dashboards.uid_prefix precedes it. A secret may be a reference that "
        "Grafana resolves in provisioning files: ${NAME}, $__env{NAME} or $__file{PATH}.",
    )
    contact_point: str = Field(
        default="",
        description="Contact point of alerts that no route matches. If empty, no notification policy is written.",
    )
    fault_contact_point: str = Field(
        default="",
        description="Contact point of alerts DatasourceError and DatasourceNoData: Grafana could not evaluate a rule. "
        "If empty, contact_point.",
    )
    routes: tuple[AlertRoute, ...] = Field(
        default=(),
        description="Who gets which alerts: tables [[grafana_alerting.routes]] with contact_point, and optional owner "
        "(pattern), severities, mute_timings, continues, group_wait_s, group_interval_s and repeat_interval_s. The "
        "first that matches decides.",
    )
    mute_timings: dict[Name, tuple[MuteInterval, ...]] = Field(
        default={},
        description="Times without notifications: tables [[grafana_alerting.mute_timings.NAME]] with times, weekdays, "
        "days_of_month, months, years and location.",
    )
    group_by: tuple[Text, ...] = Field(
        default=("app", "environment", "type"),
        min_length=1,
        description="Alerts with equal values of these labels share one message.",
    )
    group_wait_s: Seconds = Field(default=30, description="Seconds from the first alert of a group to its message.")
    group_interval_s: Seconds = Field(default=300, description="Seconds between two messages of a group that changed.")
    repeat_interval_s: Seconds = Field(default=14400, description="Seconds until alerts that go on are sent again.")
    whole_tree: bool = Field(
        default=False,
        description="Also write notification policies to files. Such a file replaces the whole tree of the "
        "organization, policies of others included. `push` adds only ours.",
    )

    @model_validator(mode="after")
    def _names_exist(self) -> Self:
        for where, name in self._named_contact_points():
            if name not in self.contact_points:
                raise ValueError(f"{where}: no contact point {name}; {_valid(self.contact_points)}")
        for name in (timing for route in self.routes for timing in route.mute_timings):
            if name not in self.mute_timings:
                raise ValueError(f"routes: no mute timing {name}; {_valid(self.mute_timings)}")
        if (self.routes or self.fault_contact_point) and not self.contact_point:
            raise ValueError("routes and fault_contact_point need contact_point, which gets what no route matches")
        return self

    def raises_problems(self, *, has_alertmanager: bool) -> bool:
        """Tell whether open problems are alerts in Grafana."""
        return not has_alertmanager if self.problems is None else self.problems

    def _named_contact_points(self) -> list[tuple[str, str]]:
        named = [("contact_point", self.contact_point), ("fault_contact_point", self.fault_contact_point)]
        return [*((where, name) for where, name in named if name), *(("routes", r.contact_point) for r in self.routes)]


def _ends(text: str, numbers: Mapping[str, int], valid: str) -> list[int]:
    """Return the number of a single value, or first and last one of a range."""
    ends = [numbers.get(part.strip().lower()) for part in text.split(":")]
    found = [end for end in ends if end is not None]
    is_range = len(found) == len(ends) <= 2
    # As Grafana does: a negative day counts from the end of the month, which has 28 days at least.
    places = [_SHORTEST_MONTH + end if end < 0 else end for end in found]
    if not is_range or places[0] > places[-1] or found[0] < 0 < found[-1]:
        raise ValueError(f"{text}: {valid}, the earlier end first")
    return found[:1] if found[0] == found[-1] else found


def _range(text: str, numbers: Mapping[str, int], valid: str) -> str:
    return ":".join(map(str, _ends(text, numbers, valid)))


def is_reference(secret: str) -> bool:
    """Tell whether Grafana puts something else in place of it when it reads a file."""
    return _REFERENCE.fullmatch(secret) is not None


def _checked_url(url: SecretStr) -> SecretStr:
    """Return a URL or a reference to one. The error does not quote it: such URLs are secrets."""
    text = url.get_secret_value()
    if is_reference(text):
        return url
    try:
        parts = urlsplit(text)
        is_whole = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_whole = False
    if not is_whole or any(not "!" <= sign <= "~" for sign in text):
        raise ValueError("give http:// or https:// and a host, or a reference such as $__file{/run/secrets/hook}")
    return url


def _valid(names: Mapping[str, object]) -> str:
    return f"valid: {', '.join(sorted(names))}" if names else "there is none"
