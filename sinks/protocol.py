"""The protocol of sinks."""

from typing import Protocol

from ragtide.sinks.rows import Block


class Sink(Protocol):
    """Stores blocks. The same block twice leaves the same rows; of two rows with one identity the newer one stays.

    Identity is the table's sorting key, newer the higher `version`. Methods block; call them from a thread.
    """

    def write(self, block: Block) -> None:
        """Every row is durable when this returns; dirty marks and progress last.

        Raises `Transient` (nothing or a part was stored: write the same block again) or `Refused` (the content will
        never be accepted: see `ragtide.sinks.bisect.write_or_reject`).
        """
        ...

    def check(self) -> str:
        """Check the connection; return one line with address and version. Raises `Transient` or `ConfigError`."""
        ...

    def close(self) -> None:
        """Release connections; writing afterwards is an error."""
        ...
