"""A launcher: its program ends when the parent does, however the parent ended.

    python -m ragtide.stream.local.child PARENT_PID PROGRAM ARGUMENT...

On Linux the kernel ends the program, which replaces the launcher. Elsewhere the launcher stays and watches.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from types import FrameType

_PR_SET_PDEATHSIG = 1
_WATCH_EVERY_S = 0.5


def launcher(parent: int | None = None) -> list[str]:
    """Prefix for a program's command line; `parent` is this process by default."""
    return [sys.executable, "-m", "ragtide.stream.local.child", str(parent or os.getpid())]


def main(arguments: Sequence[str]) -> int:
    """Become the program, or run it and return its exit status."""
    parent, command = int(arguments[0]), list(arguments[1:])
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before the kernel knew
            return 1
        os.execvp(command[0], command)
    return watch(parent, command)


def watch(parent: int, command: Sequence[str]) -> int:
    """Run the program, forward SIGTERM and SIGINT, and kill it once `parent` is gone."""
    program = subprocess.Popen(command)

    def forward(number: int, _: FrameType | None) -> None:
        program.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, forward)
    while program.poll() is None:
        if os.getppid() != parent:
            program.kill()
        time.sleep(_WATCH_EVERY_S)
    return int(program.returncode)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
