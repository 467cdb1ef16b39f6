"""What every sink promises the stream."""

from typing import Protocol

from ragtide.sinks.rows import Block


class Sink(Protocol):
    """Stores blocks; the same block twice leaves the same rows, and of two rows with one identity the newer stays.

    Identity is the table's sorting key, newer the higher `version`. Methods block; call them from a thread.
    """

    def write(self, block: Block) -> None:
        """Every row is durable when this returns; dirty marks and progress last.

        Raises `Transient` (nothing or a part was stored: write the same block again) or `Refused` (the content will
        never be accepted: see `ragtide.sinks.bisect.write_or_reject`).
        """
        ...

    def check(self) -> str:
        """One line that says what was reached and its version; raises `Transient` or `ConfigError`."""
        ...

    def close(self) -> None:
        """Release connections; writing afterwards is an error."""
        ...
