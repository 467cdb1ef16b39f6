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
    kinds = types or {}
    held = {name: pandas.Series(cells, dtype=dtypes.get(kinds.get(name))) for name, cells in columns.items()}
    return pandas.DataFrame(held)


def to_arrow(columns: Mapping[str, Any], types: Mapping[str, type] | None = None) -> Any:
    """Make an Arrow table; a missing value is null. `types` are as in `to_pandas`."""
    pyarrow = optional("pyarrow")
    known = {int: pyarrow.int64(), float: pyarrow.float64(), str: pyarrow.string()}
    known[datetime] = pyarrow.timestamp("us", "UTC")
    kinds = types or {}
    held = {name: pyarrow.array(cells, known.get(kinds.get(name)), from_pandas=True) for name, cells in columns.items()}
    return pyarrow.table(held)


def optional(package: str) -> Any:
    """Import the package. Raises `ConfigError` with what to install."""
    try:
        return import_module(package)
    except ImportError:
        raise ConfigError(f"{package} is not installed: pip install {package}") from None
