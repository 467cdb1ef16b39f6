"""Settings as the file that a process is given."""

import json
from collections.abc import Mapping
from typing import Any


def settings_file(settings: Mapping[str, Mapping[str, Any]]) -> str:
    """TOML of values by section and name; a value is a mapping, or what JSON and TOML write alike."""
    lines = []
    for section, values in settings.items():
        lines.append(f"[{section}]")
        lines += [f"{name} = {_value(value)}" for name, value in values.items()]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if not isinstance(value, Mapping):
        return json.dumps(value)
    return "{" + ", ".join(f"{json.dumps(name)} = {_value(one)}" for name, one in value.items()) + "}"
