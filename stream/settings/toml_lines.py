"""Find the line of each setting in a TOML file, for errors and `ragtide config`."""

import re
from collections.abc import Mapping

Path = tuple[str, ...]
_PART = r"(?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*')"
_DOTTED = rf"{_PART}(?:\s*\.\s*{_PART})*"
_HEADER = re.compile(rf"^\s*(\[\[?)\s*({_DOTTED})\s*\]\]?")
_KEY = re.compile(rf"^\s*({_DOTTED})\s*=")


def lines_of(text: str) -> Mapping[Path, int]:
    """Line (from 1) of each key and table header; items of `[[rules]]` have numbers: ("rules", "0", "metric").

    For messages only: text in multi-line strings or inline tables may be mistaken for keys.
    """
    found: dict[Path, int] = {}
    counts: dict[Path, int] = {}
    table: Path = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            table = _split(header[2])
            if header[1] == "[[":
                index = counts.get(table, 0)
                counts[table] = index + 1
                found.setdefault(table, number)
                table = (*table, str(index))
            found.setdefault(table, number)
        elif key := _KEY.match(line):
            found.setdefault(table + _split(key[1]), number)
    return found


def _split(dotted: str) -> Path:
    return tuple(part.strip("\"'") for part in re.findall(_PART, dotted))
