"""Errors named by what the caller must do.

RagtideError
├── ConfigError   stop: a person must change a setting, install something or fix a plug-in
├── BadRecord     set the record aside (dead letters) and go on
├── Refused       the sink will never accept this content: find the bad row, set it aside and go on
├── Unavailable   a resource of an evaluator is not installed; the evaluator is off, the others run
├── DeviceLost    end the process: only a new one can use the GPU; uncommitted records are read again
└── Transient     try the same thing again later
Anything else is a bug and crashes the process.
"""


class RagtideError(Exception):
    """Base of all errors that ragtide raises on purpose."""

    @property
    def lines(self) -> tuple[str, ...]:
        """The message as one line, even if it contains line breaks."""
        return (str(self),)


class ConfigError(RagtideError):
    """A person must change something first. The message says what, where, and the valid names.

    Each of several faults is an argument, and a line of the message.
    """

    @property
    def lines(self) -> tuple[str, ...]:
        """One line for each argument."""
        return tuple(map(str, self.args)) or ("",)

    def __str__(self) -> str:
        return "\n".join(self.lines)


LONGEST_DETAIL = 500  # characters: it goes into a header, a table and the log


class BadRecord(RagtideError):
    """One record cannot be used. `reason` is a slug (a counter label). The message never quotes the record.

    `key` is the path of the field at fault, "" for the record as a whole.
    """

    def __init__(self, reason: str, detail: str = "", key: str = "") -> None:
        detail = detail[:LONGEST_DETAIL]
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail
        self.key = key


class Refused(RagtideError):
    """The sink will never accept this content: do not retry."""


class Unavailable(RagtideError):
    """A resource is missing. The message says what to install."""


class DeviceLost(RagtideError):
    """A GPU no longer works for this process. The message names it and quotes its driver."""


class Transient(RagtideError):
    """The other side is down or busy. The same call may succeed later."""


def ends_process(error: BaseException) -> bool:
    """Whether an error is about more than one record: `DeviceLost`, or anything that is not an `Exception`.

    A panic of a Rust library is not an `Exception` either, but affects one call only. Each library has its own class.
    """
    if isinstance(error, Exception):
        return isinstance(error, DeviceLost)
    return type(error).__name__ != "PanicException"
