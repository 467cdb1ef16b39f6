"""RE2 patterns, compiled at first use: none can stall a worker or slow down the import."""

from functools import cache
from typing import Any


@cache
def compile_pattern(pattern: str) -> Any:
    """Compile an RE2 pattern for the bytes of a `ByteText`."""
    import re2

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    return re2.compile(pattern.encode("latin-1"), options)
