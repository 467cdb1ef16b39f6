"""How much memory a process takes, looked at again and again."""

import psutil


class Memory:
    """Resident memory in bytes: what it was when first looked at, and the most since."""

    def __init__(self, process_id: int) -> None:
        self._process = psutil.Process(process_id)
        self.before = self.most = 0
        self.look()
        self.before = self.most

    def look(self) -> None:
        """Once more."""
        self.most = max(self.most, int(self._process.memory_info().rss))

    @property
    def grown(self) -> int:
        """The most above what it was."""
        return self.most - self.before
