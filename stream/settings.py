"""The effective settings: defaults, one TOML file over them, RAGWATCH_ variables over both; nothing else is read.

Sections are defined by the package that they configure. A name that no section knows is an error, wherever it stands.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, Field, SecretStr, ValidationError, model_validator

from drift.settings import DriftSettings, JobSettings, RuleSettings, TopicSettings, WindowSettings
from evaluators.errors import ConfigError
from evaluators.settings import EvaluatorSettings
from sinks.settings import ClickHouseSettings, GrafanaSettings, PrivacySettings, RetentionSettings
from stream.configuration.names import CONFIG_VARIABLE, close, from_environment, leaves, model_at, nearest
from stream.configuration.sections import (
    IngestSettings,
    KafkaSettings,
    SamplingSettings,
    TelemetrySettings,
    WorkerSettings,
)
from stream.configuration.toml_lines import lines_of

DEFAULT_FILE = "ragwatch.toml"
DEFAULT = "default"
MASK = "********"
_TABLE, _LIST = "give a table", 'give a list, such as ["a", "b"]'
_IN_OUR_WORDS = {"model_type": _TABLE, "dict_type": _TABLE, "tuple_type": _LIST, "list_type": _LIST}


class Settings(BaseModel, extra="forbid", frozen=True):
    """Every setting of ragwatch; `Settings()` is the defaults and reads nothing."""

    kafka: KafkaSettings = Field(default_factory=KafkaSettings)
    worker: WorkerSettings = Field(default_factory=WorkerSettings)
    ingest: IngestSettings = Field(default_factory=IngestSettings)
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
    grafana: GrafanaSettings = Field(default_factory=GrafanaSettings)
    telemetry: TelemetrySettings = Field(default_factory=TelemetrySettings)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.privacy.hash_users and not self.privacy.hash_key.get_secret_value():
            raise ValueError("privacy.hash_users needs privacy.hash_key: any long random text, kept secret")
        if self.privacy.store_texts == "hashed" and not self.privacy.hash_key.get_secret_value():
            raise ValueError("privacy.store_texts = hashed needs privacy.hash_key: any long random text, kept secret")
        largest, carried = self.ingest.max_bytes, self.kafka.max_record_bytes
        if largest > carried:
            raise ValueError(
                f"ingest.max_bytes ({largest}) is more than kafka.max_record_bytes ({carried}): none so large could "
                f"be sent on; set kafka.max_record_bytes = {largest}, or lower ingest.max_bytes"
            )
        if self.kafka.heartbeat_s * 2 > self.kafka.session_timeout_s:
            raise ValueError("kafka.heartbeat_s must be at most half of kafka.session_timeout_s")
        for name in ("traces_days", "windows_minute_days"):  # a trace that comes last revises windows of its time
            if getattr(self.retention, name) < self.ingest.max_age_s / 86400 + 1:
                raise ValueError(f"retention.{name} must be at least a day more than ingest.max_age_s")
        return self

    @model_validator(mode="after")
    def _keeps_what_is_learned_from(self) -> Self:
        """Baselines of fewer days than were asked for would look like those of a young series, and nobody knew."""
        needed = self.drift.history_days + 1
        for size_s in (self.windows.base_s, self.windows.all_sizes_s[-1]):
            name = self.retention.windows_setting(size_s)
            if self.drift.watches_somebody and self.retention.windows_days(size_s) < needed:
                raise ValueError(
                    f"retention.{name} must be at least a day more than drift.history_days "
                    f"({self.drift.history_days}): the windows that baselines are learned from would be deleted "
                    f"before; set retention.{name} = {needed}, or lower drift.history_days"
                )
        return self


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings, and where each came from: "default", "ragwatch.toml:3" or a variable's name, by dotted name."""

    settings: Settings
    origins: Mapping[str, str]
    file: Path | None


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of `ragwatch config`; secrets are masked."""

    name: str
    value: Any
    origin: str
    description: str


def load(path: Path | None, environ: Mapping[str, str]) -> Loaded:
    """Read `path` (else RAGWATCH_CONFIG, else ./ragwatch.toml where it exists) and `environ`.

    Raises `ConfigError` listing every wrong setting, where it stands and the nearest valid name; never a secret.
    """
    file = _file(path, environ)
    text = _read(file) if file is not None else ""
    values = _toml(text, file)
    origins = {at: f"{file}:{line}" for at, line in lines_of(text).items()}
    for found in from_environment(Settings, environ):
        _put(values, found.path, found.value)
        origins = {at: origin for at, origin in origins.items() if at[: len(found.path)] != found.path}
        origins[found.path] = found.variable
    try:
        settings = Settings.model_validate(values)
    except ValidationError as error:
        raise ConfigError(_explain(error, origins, file)) from None
    return Loaded(settings, {".".join(at): _origin(at, origins) for at, _ in leaves(Settings)}, file)


def entries(loaded: Loaded) -> list[Entry]:
    """Every setting with its effective value and origin, in order."""
    shown = []
    for path, field in leaves(Settings):
        value: Any = loaded.settings
        for name in path:
            value = getattr(value, name)
        name = ".".join(path)
        shown.append(Entry(name, _masked(value), loaded.origins[name], field.description or ""))
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


def _toml(text: str, file: Path | None) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file}: not valid TOML: {error}") from None


def _put(values: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for name in path[:-1]:
        below = values.setdefault(name, {})
        if not isinstance(below, dict):
            return  # the file has no table there, which validation reports
        values = below
    values[path[-1]] = value


def _origin(path: tuple[str, ...], origins: Mapping[tuple[str, ...], str]) -> str:
    below = {origin for at, origin in origins.items() if len(at) > len(path) and at[: len(path)] == path}
    if path in origins and not below:
        return origins[path]
    return ", ".join(sorted(below)) or origins.get(path, DEFAULT)


def _explain(error: ValidationError, origins: Mapping[tuple[str, ...], str], file: Path | None) -> str:
    lines = []
    for problem in error.errors(include_url=False, include_context=False):
        at = tuple(str(step) for step in problem["loc"])
        where = next((origins[at[:n]] for n in range(len(at), 0, -1) if at[:n] in origins), str(file or "settings"))
        name = ".".join(at)
        if problem["type"] == "extra_forbidden":
            lines.append(f"{where}: {name}: no such setting; {_suggestion(problem['loc'], problem['input'])}")
        else:
            said = _IN_OUR_WORDS.get(problem["type"], problem["msg"].removeprefix("Value error, "))
            lines.append(f"{where}: {name}: {said}" if name else f"{where}: {said}")
    return "\n".join(lines)


def _suggestion(loc: tuple[str | int, ...], value: object) -> str:
    """Of the value it matters only whether it is a table; it may be a secret."""
    *above, last = loc
    if above == ["evaluators"] and isinstance(value, dict) and not close(str(last), EvaluatorSettings.model_fields):
        return f"parameters of an evaluator {last} stand in [evaluators.params.{last}]"
    elsewhere = [".".join(path) for path, _ in leaves(Settings) if path[-1] == last]
    if elsewhere:
        return f"did you mean {elsewhere[0]}?"
    section = model_at(Settings, above) or Settings
    hint = nearest(str(last), section.model_fields)
    prefix = "".join(f"{step}." for step in above)
    return hint.replace("did you mean ", f"did you mean {prefix}") if prefix else hint


def _masked(value: Any) -> Any:
    if isinstance(value, SecretStr):
        return MASK if value.get_secret_value() else ""
    if isinstance(value, BaseModel):
        return {name: _masked(getattr(value, name)) for name in type(value).model_fields}
    if isinstance(value, Mapping):
        return {key: _masked(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_masked(item) for item in value]
    return value
