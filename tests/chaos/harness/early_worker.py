"""`ragtide` with a guarantee taken out: a slice is acknowledged as soon as it is handed to the writer.

To show that the harness finds what then is lost.
"""

import asyncio
import sys
from unittest.mock import patch

from ragtide.sinks.bisect import RejectedRow
from ragtide.sinks.rows import Block
from ragtide.stream.cli import main
from ragtide.stream.worker import lane
from ragtide.stream.worker.writer import Writer


class EarlyWriter(Writer):
    """Says that a block is stored when it is not, and takes however many come."""

    async def put(self, block: Block) -> "asyncio.Future[list[RejectedRow]]":
        self.max_pending_rows = sys.maxsize
        await super().put(block)
        stored: asyncio.Future[list[RejectedRow]] = asyncio.get_running_loop().create_future()
        stored.set_result([])
        return stored


if __name__ == "__main__":
    with patch.object(lane, "Writer", EarlyWriter):
        main()
