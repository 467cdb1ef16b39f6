"""Settings of calls from Python: the defaults, or a file as every command reads it, and changes over them."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ragtide.stream.settings.loader import Settings, load, load_values

Changes = Mapping[str, Any]  # tables as in ragtide.toml: {"evaluators": {"params": {...}}}
NO_CHANGES: Changes = {}


def evaluation_settings(config: str | os.PathLike[str] | None, changes: Changes) -> Settings:
    """Settings of an evaluation. Without `config` no file and no variable is read: the call alone decides."""
    if config is None:
        return load_values(changes).settings
    return connection_settings(config, changes)


def connection_settings(config: str | os.PathLike[str] | None, changes: Changes) -> Settings:
    """Settings as commands have them: the file, else RAGTIDE_CONFIG, else ./ragtide.toml; RAGTIDE_ variables on top."""
    return load(None if config is None else Path(config), os.environ, changes).settings
