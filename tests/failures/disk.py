"""Disks that refuse writes: a small one that is full, and one whose kernel fails a process's writes beyond a size."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest


@contextmanager
def small_disk(folder: Path, size_bytes: int) -> Iterator[None]:
    """A disk of that size is mounted there, whose writes fail with ENOSPC once it is full. Only root may mount."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "none", str(folder)], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"no disk can be mounted here: {mounted.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


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
