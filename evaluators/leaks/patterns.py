"""RE2 patterns, compiled when first used: none can stall a worker, and none is compiled at import."""

from functools import cache
from typing import Any


@cache
def compile_pattern(pattern: str) -> Any:
    """An RE2 pattern for the bytes of a `Formatted`."""
    import re2

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    return re2.compile(pattern.encode("latin-1"), options)
