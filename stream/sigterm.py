"""SIGTERM before a command has started its work. Imports nothing that takes time."""

import os
import signal
from types import FrameType


def exit_at_sigterm() -> None:
    """End this process with status 0 at SIGTERM, until the command handles the signal itself.

    For the time in which it imports, reads settings and connects: nothing is begun then, so nothing has to be undone.
    Raising an exception instead would surface in the middle of somebody's import.
    """
    signal.signal(signal.SIGTERM, _exit)


def restore_default() -> None:
    """Let SIGTERM kill this process again, where `exit_at_sigterm` was called and nothing handled it since."""
    if signal.getsignal(signal.SIGTERM) is _exit:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _exit(number: int, frame: FrameType | None) -> None:
    os._exit(0)
