"""Columns as a pandas DataFrame or an Arrow table. Both libraries are optional, and loaded when they are asked for."""

from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

from ragtide.evaluators.errors import ConfigError

_EXAMPLES = {int: 0, float: 0.0, str: "", datetime: datetime(2026, 1, 1, tzinfo=UTC)}


def to_pandas(columns: Mapping[str, Any], types: Mapping[str, type] | None = None) -> Any:
    """Make a DataFrame; a missing value is NaN or None. `types` are of some columns, whether they have rows or not."""
    pandas = optional("pandas")
    dtypes = {kind: pandas.Series([example]).dtype for kind, example in _EXAMPLES.items()}
    wanted = {name: dtypes[kind] for name, kind in (types or {}).items()}
    held = {name: pandas.Series(cells, dtype=wanted.get(name)) for name, cells in columns.items()}
    return pandas.DataFrame(held)


def to_arrow(columns: Mapping[str, Any], types: Mapping[str, type] | None = None) -> Any:
    """Make an Arrow table; a missing value is null. `types` are as in `to_pandas`."""
    pyarrow = optional("pyarrow")
    known = {int: pyarrow.int64(), float: pyarrow.float64(), str: pyarrow.string()}
    known[datetime] = pyarrow.timestamp("us", "UTC")
    wanted = {name: known[kind] for name, kind in (types or {}).items()}
    held = {name: pyarrow.array(cells, wanted.get(name), from_pandas=True) for name, cells in columns.items()}
    return pyarrow.table(held)


def optional(package: str) -> Any:
    """Import the package. Raises `ConfigError` with what to install."""
    try:
        return import_module(package)
    except ImportError:
        raise ConfigError(f"{package} is not installed: pip install {package}") from None
