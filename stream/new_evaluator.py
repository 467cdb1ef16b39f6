"""Write the files of a new evaluator: itself, its test and its golden file. The test passes as it is."""

import builtins
import importlib.util
import keyword
from collections.abc import Collection
from importlib.resources import files
from pathlib import Path
from string import Template

from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.slugs import is_slug

LONGEST_NAME = 37  # `from NAME import NAME` fits 88 columns
FILES = {
    "{name}.py": "evaluator.py.txt",
    "test_{name}.py": "test.py.txt",
    "{name}.golden.json": "golden.json.txt",
}
RESERVED_NAMES = frozenset(  # lower-case names that the files give to something else
    {"check_evaluator", "check_golden", "dataclass", "evaluator", "golden_traces", "inf"}
)


def write(name: str, directory: Path, known: Collection[str]) -> list[Path]:
    """Write the files and return them, the evaluator's first; never overwrite an existing file.

    Raises `ConfigError` for a name that cannot be an evaluator's or is in `known`, and where a file is there already.
    """
    _check(name, known)
    texts = {directory / file.format(name=name): _text(template, name) for file, template in FILES.items()}
    there = [str(file) for file in texts if file.exists()]
    if there:
        raise ConfigError(f"nothing was written: {', '.join(there)} is there already; take another name or directory")
    if importlib.util.find_spec(name) is not None:
        raise ConfigError(f"there is a Python module {name!r} already, which the file would hide; take another name")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for file, text in texts.items():
            with file.open("x", encoding="utf-8") as opened:
                opened.write(text)
    except OSError as error:
        raise ConfigError(f"cannot write into {directory}: {error.strerror}: {error.filename}") from error
    return list(texts)


def _text(template: str, name: str) -> str:
    return Template((files("ragtide.stream") / "templates" / template).read_text("utf-8")).substitute(name=name)


def _check(name: str, known: Collection[str]) -> None:
    if not is_slug(name) or len(name) > LONGEST_NAME:
        raise ConfigError(
            f"{name!r} cannot name an evaluator: lower-case letters, digits and underscores, a letter first, "
            f"at most {LONGEST_NAME}; e.g. short_answers"
        )
    if keyword.iskeyword(name) or hasattr(builtins, name) or name in RESERVED_NAMES:
        raise ConfigError(f"{name!r} means something else in Python or in the files; take another name")
    if name in known:
        raise ConfigError(f"there is an evaluator {name!r} already; `ragtide evaluators {name}` shows it")
