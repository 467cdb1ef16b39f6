"""Parse TOML and JSON that a person wrote; every error is a sentence with the position."""

import json
import re
import sys
import tomllib
from typing import Any

from ragtide.evaluators.errors import ConfigError
from ragtide.stream.settings.toml_lines import lines_of

MAX_DEPTH = 100  # tables and lists within each other
_INTEGER_BITS = 64
_LONG_NUMBER = re.compile(rf"[0-9_]{{{sys.get_int_max_str_digits() + 1},}}")


def read_toml(text: str, where: object) -> dict[str, Any]:
    """Parse a TOML text; raise `ConfigError` that starts with `where`, the file."""
    lines = lines_of(text)
    for path, line in lines.items():
        if len(path) > MAX_DEPTH:  # the parser's time grows with the square of a key's parts
            raise _too_deep(f"{where}:{line}")
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{where}: not valid TOML: {error}") from None
    except RecursionError:
        raise _too_deep(where) from None
    except ValueError:  # of int()
        found = _LONG_NUMBER.search(text)
        raise _too_large(where if found is None else f"{where}:{text.count(chr(10), 0, found.start()) + 1}") from None
    _check_limits(values, where)
    return values


def read_json(text: str, where: object) -> Any:
    """Parse a JSON text; raise `ConfigError` that starts with `where`, and `JSONDecodeError` for no JSON."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        raise
    except RecursionError:
        raise _too_deep(where) from None
    except ValueError:  # of int()
        raise _too_large(where) from None
    return _check_limits(value, where)


def _check_limits(value: Any, where: object) -> Any:
    """Refuse values that are nested too deeply, and integers that are too large."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        if any(isinstance(one, int) and one.bit_length() > _INTEGER_BITS for one in level):
            raise _too_large(where)
        level = [below for one in level for below in _items(one)]
        if not level:
            return value
    raise _too_deep(where)


def _items(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _too_deep(where: object) -> ConfigError:
    return ConfigError(f"{where}: tables or lists are nested in more than {MAX_DEPTH} levels")


def _too_large(where: object) -> ConfigError:
    return ConfigError(f"{where}: a whole number is larger than {_INTEGER_BITS} bits hold")
