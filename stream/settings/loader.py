"""The effective settings: defaults, one TOML file over them, RAGTIDE_ variables over both.

The package that a section configures defines it. A name that no section knows is an error. Files that settings name are
read when they are used, but for prompts of the user's (`evaluators.judge.byop`), which are read with the settings.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from pydantic import BaseModel, Field, SecretStr, ValidationError, model_validator

from ragtide.dashboards.alerting_settings import GrafanaAlertingSettings
from ragtide.dashboards.settings import DashboardSettings, ViewSettings
from ragtide.drift.routes import Route
from ragtide.drift.settings import DriftSettings, JobSettings, RuleSettings, TopicSettings, WindowSettings
from ragtide.drift.webhook_settings import Webhook
from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.settings import EvaluatorSettings
from ragtide.sinks.alertmanager_settings import AlertmanagerSettings
from ragtide.sinks.settings import ClickHouseSettings, GrafanaSettings, PrivacySettings, RetentionSettings
from ragtide.stream.settings.environment import CONFIG_VARIABLE, closest, from_environment, leaves, model_at, nearest
from ragtide.stream.settings.otel import OtelSettings
from ragtide.stream.settings.parsing import read_toml
from ragtide.stream.settings.sampling import SamplingSettings
from ragtide.stream.settings.sections import (
    IngestSettings,
    KafkaSettings,
    TelemetrySettings,
    WorkerSettings,
)
from ragtide.stream.settings.toml_lines import lines_of

DEFAULT_FILE = "ragtide.toml"
DEFAULT = "default"
CHANGES = "settings"  # the origin of a setting that a caller changed
MASK = "********"
Origins = Mapping[tuple[str, ...], str]
_LONGEST_REASON = 500  # characters: it may quote a value
_TABLE, _LIST = "give a table", 'give a list, such as ["a", "b"]'
_MESSAGES = {"model_type": _TABLE, "dict_type": _TABLE, "tuple_type": _LIST, "list_type": _LIST}


class Settings(BaseModel, extra="forbid", frozen=True):
    """Every setting of ragtide; `Settings()` is the defaults and reads nothing."""

    kafka: KafkaSettings = Field(default_factory=KafkaSettings)
    worker: WorkerSettings = Field(default_factory=WorkerSettings)
    ingest: IngestSettings = Field(default_factory=IngestSettings)
    otel: OtelSettings = Field(default_factory=OtelSettings)
    sampling: SamplingSettings = Field(default_factory=SamplingSettings)
    privacy: PrivacySettings = Field(default_factory=PrivacySettings)
    evaluators: EvaluatorSettings = Field(default_factory=EvaluatorSettings)
    clickhouse: ClickHouseSettings = Field(default_factory=ClickHouseSettings)
    retention: RetentionSettings = Field(default_factory=RetentionSettings)
    windows: WindowSettings = Field(default_factory=WindowSettings)
    rules: RuleSettings = Field(default_factory=RuleSettings)
    drift: DriftSettings = Field(default_factory=DriftSettings)
    jobs: JobSettings = Field(default_factory=JobSettings)
    topics: TopicSettings = Field(default_factory=TopicSettings)
    routes: tuple[Route, ...] = Field(
        default=(),
        description="Who owns problems: tables [[routes]], of which the first that matches decides. app, metric and "
        "type are patterns (* stands for any characters, ? for one; default *). owner is a team or person. labels are "
        "more labels for alerts, e.g. { channel = '#search' }.",
    )
    webhooks: tuple[Webhook, ...] = Field(
        default=(),
        description="Webhooks: tables [[webhooks]] with name and url, and optional secret, events, filters (app, "
        "environment, metric, type, severities), headers, ca_file, timeout_s, retry_days and source. docs/webhooks.md "
        "explains them.",
    )
    grafana: GrafanaSettings = Field(default_factory=GrafanaSettings)
    grafana_alerting: GrafanaAlertingSettings = Field(default_factory=GrafanaAlertingSettings)
    alertmanager: AlertmanagerSettings = Field(default_factory=AlertmanagerSettings)
    dashboards: DashboardSettings = Field(default_factory=DashboardSettings)
    view: ViewSettings = Field(default_factory=ViewSettings)
    telemetry: TelemetrySettings = Field(default_factory=TelemetrySettings)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.privacy.hash_users and not self.privacy.hash_key.get_secret_value():
            raise ValueError("privacy.hash_users needs privacy.hash_key: any long random text, kept secret")
        if self.privacy.store_texts == "hashed" and not self.privacy.hash_key.get_secret_value():
            raise ValueError("privacy.store_texts = hashed needs privacy.hash_key: any long random text, kept secret")
        if self.sampling.always.thumbs_down and self.privacy.store_texts != "full":
            raise ValueError(
                f"sampling.always.thumbs_down needs privacy.store_texts = full, not {self.privacy.store_texts}: judges "
                "score the stored texts of a trace that somebody dislikes"
            )
        largest, carried = self.ingest.max_bytes, self.kafka.max_record_bytes
        if largest > carried:
            raise ValueError(
                f"ingest.max_bytes ({largest}) is more than kafka.max_record_bytes ({carried}): none so large could "
                f"be sent; set kafka.max_record_bytes = {largest}, or lower ingest.max_bytes"
            )
        topic, kafka, otel = self.otel.export.scores_topic, self.kafka, self.otel
        own = (kafka.dead_letter_topic, kafka.spans_topic, kafka.labels_topic, kafka.jobs_topic, *kafka.state_topics)
        if topic and (topic in (*own, *otel.topics, *otel.log_topics) or kafka.entry_of(topic) is not None):
            raise ValueError(
                f"otel.export.scores_topic = {topic} needs a topic of its own: ragtide reads or writes this one"
            )
        names = [one.name for one in self.webhooks]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"webhooks: names must differ; twice: {', '.join(twice)}")
        if self.kafka.heartbeat_s * 2 > self.kafka.session_timeout_s:
            raise ValueError("kafka.heartbeat_s must be at most half of kafka.session_timeout_s")
        for name in ("traces_days", "windows_minute_days"):  # a trace that comes last revises windows of its time
            if getattr(self.retention, name) < self.ingest.max_age_s / 86400 + 1:
                raise ValueError(f"retention.{name} must be at least a day more than ingest.max_age_s")
        return self

    @model_validator(mode="after")
    def _retains_baseline_history(self) -> Self:
        """Refuse a retention of windows below the history of baselines, which would silently be shorter."""
        needed = self.drift.history_days + 1
        for size_s in (self.windows.base_s, self.windows.all_sizes_s[-1]):
            name = self.retention.windows_setting(size_s)
            if self.drift.monitors_any_app and self.retention.windows_days(size_s) < needed:
                raise ValueError(
                    f"retention.{name} must be at least a day more than drift.history_days "
                    f"({self.drift.history_days}): the windows that baselines are learned from would be deleted "
                    f"before; set retention.{name} = {needed}, or lower drift.history_days"
                )
        return self


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings, and the origin of each by dotted name: "default", "ragtide.toml:3" or a variable's name."""

    settings: Settings
    origins: Mapping[str, str]
    file: Path | None


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of `ragtide config`; secrets are masked."""

    name: str
    value: Any
    origin: str
    description: str


def load(path: Path | None, environ: Mapping[str, str], changes: Mapping[str, Any] = MappingProxyType({})) -> Loaded:
    """Read `path` (else RAGTIDE_CONFIG, else ./ragtide.toml where it exists) and `environ`; `changes` go on top.

    `changes` are tables as in the file. Raises `ConfigError` with every invalid setting, its position and the most
    similar valid name; never a secret.
    """
    file = _file(path, environ)
    text = _read(file) if file is not None else ""
    values = read_toml(text, file)
    origins = {at: f"{file}:{line}" for at, line in lines_of(text).items()}
    for found in from_environment(Settings, environ):
        _put(values, found.path, found.value)
        origins = {at: origin for at, origin in origins.items() if at[: len(found.path)] != found.path}
        origins[found.path] = found.variable
    return _change(values, origins, file, changes)


def load_values(changes: Mapping[str, Any]) -> Loaded:
    """Make settings of `changes` over the defaults, without file and environment; raises as `load`."""
    return _change({}, {}, None, changes)


def _change(values: dict[str, Any], origins: Origins, file: Path | None, changes: Mapping[str, Any]) -> Loaded:
    """Put `changes` over the values that were read, and validate all."""
    for at, value in _leaf_values(changes):
        _put(values, at, value)
        origins = {path: origin for path, origin in origins.items() if path[: len(at)] != at}
        origins[at] = CHANGES
    try:
        settings = Settings.model_validate(values)
    except ValidationError as error:
        raise ConfigError(*_explain(error, origins, file)) from None
    return Loaded(settings, {".".join(at): _origin(at, origins) for at, _ in leaves(Settings)}, file)


def entries(loaded: Loaded) -> list[Entry]:
    """Every setting with its effective value and origin, in order."""
    shown = []
    for path, field in leaves(Settings):
        value: Any = loaded.settings
        for name in path:
            value = getattr(value, name)
        name = ".".join(path)
        shown.append(Entry(name, _mask_secrets(value), loaded.origins[name], field.description or ""))
    return shown


def _file(path: Path | None, environ: Mapping[str, str]) -> Path | None:
    named = path or (Path(environ[CONFIG_VARIABLE]) if environ.get(CONFIG_VARIABLE) else None)
    if named is not None:
        return named
    default = Path(DEFAULT_FILE)
    return default if default.is_file() else None


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"{file}: no such settings file; give one with --config or {CONFIG_VARIABLE}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: cannot be read: {type(error).__name__}") from None


def _put(values: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for name in path[:-1]:
        below = values.setdefault(name, {})
        if not isinstance(below, dict):
            return  # the file has no table there, which validation reports
        values = below
    values[path[-1]] = value


def _leaf_values(table: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, value in table.items():
        at = (*above, str(name))
        if isinstance(value, Mapping) and value:
            yield from _leaf_values(value, at)
        else:
            yield at, value


def _origin(path: tuple[str, ...], origins: Origins) -> str:
    below = {origin for at, origin in origins.items() if len(at) > len(path) and at[: len(path)] == path}
    if path in origins and not below:
        return origins[path]
    return ", ".join(sorted(below)) or origins.get(path, DEFAULT)


def _explain(error: ValidationError, origins: Origins, file: Path | None) -> list[str]:
    lines = []
    for problem in error.errors(include_url=False, include_context=False):
        at = tuple(str(step) for step in problem["loc"])
        where = next((origins[at[:n]] for n in range(len(at), 0, -1) if at[:n] in origins), str(file or "settings"))
        name = ".".join(at)
        if problem["type"] == "extra_forbidden":
            lines.append(f"{where}: {name}: no such setting; {_suggestion(problem['loc'], problem['input'])}")
        else:
            message = _MESSAGES.get(problem["type"], problem["msg"].removeprefix("Value error, "))
            message = message if len(message) <= _LONGEST_REASON else f"{message[:_LONGEST_REASON]} ..."
            lines.append(f"{where}: {name}: {message}" if name else f"{where}: {message}")
    return lines


def _suggestion(loc: tuple[str | int, ...], value: object) -> str:
    """Suggest a name. The value matters only as a table or not; it may be a secret."""
    *above, last = loc
    sections = EvaluatorSettings.model_fields
    if above == ["evaluators"] and isinstance(value, dict) and not closest(str(last), sections, cutoff=0.7):
        return f"parameters of an evaluator {last} stand in [evaluators.params.{last}]"
    elsewhere = [".".join(path) for path, _ in leaves(Settings) if path[-1] == last]
    if elsewhere:
        return f"did you mean {elsewhere[0]}?"
    section = model_at(Settings, above) or Settings
    hint = nearest(str(last), section.model_fields)
    prefix = "".join(f"{step}." for step in above)
    return hint.replace("did you mean ", f"did you mean {prefix}") if prefix else hint


def _mask_secrets(value: Any) -> Any:
    """Return the value as JSON and TOML have it, secrets masked."""
    if isinstance(value, SecretStr):
        return MASK if value.get_secret_value() else ""
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, BaseModel):
        return {name: _mask_secrets(getattr(value, name)) for name in type(value).model_fields}
    if isinstance(value, Mapping):
        return {key: _mask_secrets(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_mask_secrets(item) for item in value]
    return value
