"""Rules of a settings file: reloaded while the jobs run, or read for a backtest."""

import logging
import os
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import NamedTuple

from ragtide.drift.rules import check_settings
from ragtide.drift.settings import RuleSettings
from ragtide.evaluators import registry
from ragtide.evaluators.encoder_thresholds import with_encoder_thresholds
from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.plan import is_on
from ragtide.evaluators.spec import Evaluator
from ragtide.stream.settings.environment import leaves
from ragtide.stream.settings.loader import DEFAULT, Loaded, Settings, load
from ragtide.stream.settings.toml_lines import lines_of

log = logging.getLogger(__name__)


class RulesFile:
    """The current rules of the settings file; the last valid ones if it is invalid or cannot be read.

    Every other setting stays as it was at the start. Variables override the file. The same object until the rules
    change. Raises `ConfigError` at first if a rule fits no metric.
    """

    def __init__(self, loaded: Loaded, evaluators: Mapping[str, Evaluator], environ: Mapping[str, str]) -> None:
        check_settings(loaded.settings.rules, evaluators)
        self._rules = loaded.settings.rules
        self._file = loaded.file
        self._evaluators = evaluators
        self._environ = environ
        self._file_state = _state(loaded.file)

    def current(self) -> RuleSettings:
        """Check the file's state, read it if it changed, return the rules. Never raises."""
        state = _state(self._file)
        if state != self._file_state:
            self._file_state = state
            try:
                rules = load(self._file, self._environ).settings.rules
                check_settings(rules, self._evaluators)
            except ConfigError as error:
                log.error("could not load the rules: %s; keeping the current ones", error)
            else:
                if rules != self._rules:
                    log.info("loaded the rules of %s", self._file)
                    self._rules = rules
        return self._rules


class CandidateSettings(NamedTuple):
    """Settings for a backtest, the evaluators that they leave on, and the names of settings that differ.

    `tries_detectors`: whether the file has settings of detectors.
    """

    settings: Settings
    evaluators: Mapping[str, Evaluator]
    tries_detectors: bool
    names: frozenset[str]


def candidate_of(loaded: Loaded, running: Settings) -> CandidateSettings:
    """Take the rules of the settings to try, each other section that they set, and the rest as it runs.

    Raises `ConfigError` with file and line if a rule fits no metric.
    """
    given = {name for name, origin in loaded.origins.items() if origin != DEFAULT}
    sections = {"rules"} | {name.partition(".")[0] for name in given}
    settings = running.model_copy(update={name: getattr(loaded.settings, name) for name in sections})
    evaluators = with_encoder_thresholds(registry.load(settings.evaluators), settings.evaluators)
    check_rules(loaded, evaluators)
    if "evaluators" in sections:
        evaluators = {id: one for id, one in evaluators.items() if is_on(one, settings.evaluators)}
    paths = {".".join(path): path for path, _ in leaves(Settings)}
    differing = {name for name in given if _value(loaded.settings, paths[name]) != _value(running, paths[name])}
    return CandidateSettings(settings, evaluators, "drift" in sections, frozenset(differing))


def check_rules(loaded: Loaded, evaluators: Mapping[str, Evaluator]) -> None:
    """Raise `ConfigError` with file and line, or the variable, of a rule that fits no metric."""
    rules, file = loaded.settings.rules, loaded.file
    lines = lines_of(file.read_text(encoding="utf-8")) if file is not None else {}
    own = {"overrides": rules.overrides, "limits": rules.limits, "objectives": rules.objectives}
    for name, items in own.items():
        origin = loaded.origins[f"rules.{name}"]
        for number, item in enumerate(items):
            line = lines.get(("rules", name, str(number)))
            where = f"{file}:{line}" if line is not None and origin.startswith(f"{file}:") else origin
            try:
                check_settings(rules.model_copy(update={**dict.fromkeys(own, ()), name: (item,)}), evaluators)
            except ConfigError as error:
                raise ConfigError(f"{where}: {error}") from None


def _value(settings: Settings, path: Sequence[str]) -> object:
    return reduce(getattr, path, settings)


def _state(file: Path | None) -> tuple[int, int, int] | None:
    """Identity of the file's content: changes if it is edited or replaced; None without a file."""
    try:
        found = os.stat(file) if file is not None else None
    except OSError:
        return None
    return (found.st_ino, found.st_size, found.st_mtime_ns) if found else None
