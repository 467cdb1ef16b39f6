"""Errors named by what the caller must do.

RagtideError
├── ConfigError   stop: a person must change a setting, install something or mend a plug-in
├── BadRecord     set the record aside (dead letters) and go on
├── Refused       the sink will never take this content: find the bad row, set it aside, go on
├── Unavailable   a resource an evaluator needs is not installed; the evaluator is off, the rest work
├── DeviceLost    end the process: only a new one can use the card again; what is not committed is read again
└── Transient     try the same thing again later
Anything else is a bug and crashes the process.
"""


class RagtideError(Exception):
    """Root of everything ragtide raises on purpose."""

    @property
    def lines(self) -> tuple[str, ...]:
        """The message, where a line break is a part of the text."""
        return (str(self),)


class ConfigError(RagtideError):
    """A person must change something before this can work; the message says what, where and the valid names.

    Where several things are wrong, each is an argument and a line of the message.
    """

    @property
    def lines(self) -> tuple[str, ...]:
        """One for each argument."""
        return tuple(map(str, self.args)) or ("",)

    def __str__(self) -> str:
        return "\n".join(self.lines)


LONGEST_DETAIL = 500  # characters: it goes into a header, a table and the log


class BadRecord(RagtideError):
    """One record cannot be used. `reason` is a short slug (a counter label); the message never quotes the record."""

    def __init__(self, reason: str, detail: str = "") -> None:
        detail = detail[:LONGEST_DETAIL]
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail


class Refused(RagtideError):
    """The sink understood and will never accept this content; retrying is pointless."""


class Unavailable(RagtideError):
    """A resource is not there; the message names what to install."""


class DeviceLost(RagtideError):
    """A card computes nothing any more for this process; the message says which and what its driver said."""


class Transient(RagtideError):
    """The other side is away or busy; the same call may succeed later."""


def ends_process(error: BaseException) -> bool:
    """Whether an error concerns more than the record that raised it: `DeviceLost`, and what is no `Exception`.

    The panic of a native library in Rust is no `Exception`, but ends one call only; each library has its own class.
    """
    if isinstance(error, Exception):
        return isinstance(error, DeviceLost)
    return type(error).__name__ != "PanicException"
