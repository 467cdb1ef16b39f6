"""Golden files of text: sections of lines, compared or written."""

import os
from collections.abc import Iterable
from pathlib import Path

WRITE = "WRITE_PINS"  # environment variable: any text writes, none compares
_FOLDER = Path(__file__).parent / "golden"
_HEAD = "== "


def check(file: str, section: str, lines: Iterable[str]) -> None:
    """Assert that a section of `golden/FILE.txt` has these lines; where `WRITE` is set, write them."""
    path = _FOLDER / f"{file}.txt"
    sections = _read(path)
    found = list(lines)
    assert found, f"{file}, {section}: nothing to compare"
    assert not any(one.startswith(_HEAD) or "\n" in one for one in found)
    if os.environ.get(WRITE):
        sections[section] = found
        _write(path, sections)
        return
    assert sections.get(section) == found, f"{path.name}, section {section}; `python -m tests.pins --write` accepts it"


def _read(path: Path) -> dict[str, list[str]]:
    sections: dict[str, list[str]] = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        if line.startswith(_HEAD):
            sections[line.removeprefix(_HEAD)] = []
        elif line:
            sections[list(sections)[-1]].append(line)
    return sections


def _write(path: Path, sections: dict[str, list[str]]) -> None:
    path.parent.mkdir(exist_ok=True)
    blocks = [f"{_HEAD}{name}\n" + "".join(f"{line}\n" for line in lines) for name, lines in sorted(sections.items())]
    path.write_text("\n".join(blocks))
