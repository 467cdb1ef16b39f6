"""Errors named by what the caller must do.

RagwatchError
├── ConfigError   stop: a person must change a setting, install something or mend a plug-in
├── BadRecord     set the record aside (dead letters) and go on
├── Refused       the sink will never take this content: find the bad row, set it aside, go on
├── Unavailable   a resource an evaluator needs is not installed; the evaluator is off, the rest work
├── DeviceLost    end the process: only a new one can use the card again; what is not committed is read again
└── Transient     try the same thing again later
Anything else is a bug and crashes the process.
"""


class RagwatchError(Exception):
    """Root of everything ragwatch raises on purpose."""


class ConfigError(RagwatchError):
    """A person must change something before this can work; the message says what, where and the valid names."""


class BadRecord(RagwatchError):
    """One record cannot be used. `reason` is a short slug (a counter label); the message never quotes the record."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail


class Refused(RagwatchError):
    """The sink understood and will never accept this content; retrying is pointless."""


class Unavailable(RagwatchError):
    """A resource is not there; the message names what to install."""


class DeviceLost(RagwatchError):
    """A card computes nothing any more for this process; the message says which and what its driver said."""


class Transient(RagwatchError):
    """The other side is away or busy; the same call may succeed later."""
