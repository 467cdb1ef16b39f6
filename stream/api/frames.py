"""Columns as a pandas DataFrame or an Arrow table. Both libraries are optional, and loaded when they are asked for."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from ragtide.evaluators.errors import ConfigError


def to_pandas(columns: Mapping[str, Any]) -> Any:
    """Make a DataFrame; a missing value is NaN or None."""
    return optional("pandas").DataFrame(columns)


def to_arrow(columns: Mapping[str, Any]) -> Any:
    """Make an Arrow table; a missing value is null."""
    pyarrow = optional("pyarrow")
    return pyarrow.table({name: pyarrow.array(cells, from_pandas=True) for name, cells in columns.items()})


def optional(package: str) -> Any:
    """Import the package. Raises `ConfigError` with what to install."""
    try:
        return import_module(package)
    except ImportError:
        raise ConfigError(f"{package} is not installed: pip install {package}") from None
