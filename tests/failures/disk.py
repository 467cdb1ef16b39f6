"""A disk that refuses writes, without mounting one: the kernel fails every write of the process beyond a size."""

from collections.abc import Iterator
from contextlib import contextmanager

import psutil


@contextmanager
def refusing_writes(pid: int | None, beyond_bytes: int = 0) -> Iterator[None]:
    """Files of the process cannot grow beyond `beyond_bytes` (EFBIG); what is written already can be read."""
    process = psutil.Process(pid)
    before, most = process.rlimit(psutil.RLIMIT_FSIZE)
    process.rlimit(psutil.RLIMIT_FSIZE, (beyond_bytes, most))
    try:
        yield
    finally:
        process.rlimit(psutil.RLIMIT_FSIZE, (before, most))
