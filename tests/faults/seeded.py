"""The list of seeded faults, and where each one is in product code: by its text, whatever file that is in."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_PACKAGES = ("stream", "evaluators", "sinks", "drift", "dashboards")
ROOT = Path(__file__).parents[2]
LIST = Path(__file__).parent / "faults.toml"


@dataclass(frozen=True, slots=True)
class Fault:
    """A change of product code, `old` to `new`, that each of `tests` (node ids) finds."""

    name: str
    old: str
    new: str
    tests: tuple[str, ...]

    def place(self, texts: Mapping[Path, str]) -> Path:
        """The one file of product code that has the text. Raises LookupError where it is not there exactly once."""
        found = {path: count for path, text in texts.items() if (count := text.count(self.old))}
        if sum(found.values()) != 1:
            places = ", ".join(f"{path} ({count})" for path, count in found.items()) or "nowhere"
            raise LookupError(f"fault {self.name}: its text must be in product code once; it is in: {places}")
        return next(iter(found))

    def changed(self, text: str) -> str:
        """The file's text with the fault in it."""
        return text.replace(self.old, self.new)


def faults() -> list[Fault]:
    """All of them, in the order of the list."""
    rows = tomllib.loads(LIST.read_text())["faults"]
    return [Fault(row["name"], row["old"], row["new"], tuple(row["tests"])) for row in rows]


def product(root: Path) -> dict[Path, str]:
    """The text of every file of product code below `root`."""
    return {
        path: path.read_text()
        for package in _PACKAGES
        for path in sorted((root / package).rglob("*"))
        if path.suffix in (".py", ".sql")
    }
