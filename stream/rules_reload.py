"""The rules of a settings file: taken up while the jobs run as they change there, or read to be tried."""

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ragtide.drift.rules.resolve import check_settings
from ragtide.drift.settings import DriftSettings, RuleSettings
from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.spec import Evaluator
from ragtide.stream.settings.loader import DEFAULT, Loaded, load
from ragtide.stream.settings.toml_lines import lines_of

log = logging.getLogger(__name__)


class RulesFile:
    """The rules as the settings file has them now; as they last were where it cannot be read or is wrong.

    Every other setting stays as it was at the start. Variables win over the file, as ever. The same object until the
    rules change. Raises `ConfigError` at first where a rule fits no metric.
    """

    def __init__(self, loaded: Loaded, evaluators: Mapping[str, Evaluator], environ: Mapping[str, str]) -> None:
        check_settings(loaded.settings.rules, evaluators)
        self._rules = loaded.settings.rules
        self._file = loaded.file
        self._evaluators = evaluators
        self._environ = environ
        self._file_state = _state(loaded.file)

    def current(self) -> RuleSettings:
        """Looks at the file's state each time, reads it only when that changed, and never raises."""
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
    """The rules that a settings file has, detectors' settings where it has any, and the names of all that it says."""

    rules: RuleSettings
    drift: DriftSettings | None
    names: frozenset[str]


def load_candidate(file: Path, evaluators: Mapping[str, Evaluator], environ: Mapping[str, str]) -> CandidateSettings:
    """What a settings file has, variables over it.

    Raises `ConfigError` that names file and line where a setting is wrong or a rule fits no metric.
    """
    loaded = load(file, environ)
    check_rules(loaded, evaluators)
    names = frozenset(name for name, origin in loaded.origins.items() if origin != DEFAULT)
    changes = any(name.startswith("drift.") for name in names)
    return CandidateSettings(loaded.settings.rules, loaded.settings.drift if changes else None, names)


def check_rules(loaded: Loaded, evaluators: Mapping[str, Evaluator]) -> None:
    """Raises `ConfigError` that names file and line, or the variable, of a rule that fits no metric."""
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


def _state(file: Path | None) -> tuple[int, int, int] | None:
    """Changes with the file, also where another takes its place; None: there is none."""
    try:
        found = os.stat(file) if file is not None else None
    except OSError:
        return None
    return (found.st_ino, found.st_size, found.st_mtime_ns) if found else None
