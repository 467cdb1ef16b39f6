"""The corpus of the demo: docstrings of Python's standard library, read from source and never imported."""

import ast
import importlib.util
import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ragtide.evaluators.errors import ConfigError

Split = Callable[[str], Sequence[str]]

MODULES = (
    "argparse",
    "bisect",
    "calendar",
    "collections",
    "configparser",
    "contextlib",
    "copy",
    "csv",
    "difflib",
    "fractions",
    "functools",
    "glob",
    "heapq",
    "inspect",
    "json",
    "logging",
    "pathlib",
    "queue",
    "random",
    "shutil",
    "statistics",
    "string",
    "subprocess",
    "tempfile",
    "textwrap",
    "threading",
    "typing",
    "zipfile",
)
PASSAGES_PER_MODULE = 8
MOST_SENTENCES = 3
_SHORTEST, _LONGEST = 24, 220  # characters of a sentence

# Whatever a privacy evaluator might take for an address, a number of a person or a link stays out of the corpus.
_TELLING = re.compile(
    r"@|://|www\.|\bmailto\b|\d[\d\s().-]{4,}\d|\b\d+(?:\.\d+){2,}|\b[0-9a-fA-F]*:[0-9a-fA-F]*:", re.IGNORECASE
)
_NOT_PROSE = re.compile(r">>>|::|[|<>{}=\\^~]|\*\*|->|__|\.\.\.|\b\w+\(\w*[,)]")
_MARKUP = re.compile(r"[`*]")


@dataclass(frozen=True, slots=True)
class Passage:
    """One docstring's prose: its first sentence begins with what it documents ("dedent in textwrap: ...")."""

    id: str  # "textwrap.dedent"
    subject: str  # "dedent in textwrap": a dot before a capital would end a sentence
    module: str
    sentences: tuple[str, ...]

    @property
    def text(self) -> str:
        """The text that is indexed and passed to the answerer."""
        return " ".join(self.sentences)

    @property
    def purpose(self) -> str:
        """The first sentence without subject and full stop: "Remove any common leading whitespace ..."."""
        return self.sentences[0].removeprefix(f"{self.subject}: ").rstrip(".")


def read(split: Split, modules: Sequence[str] = MODULES) -> tuple[Passage, ...]:
    """The passages of `modules`, the same on every run; `split` is the evaluators' own sentence splitter.

    Raises ConfigError where Python came without sources (a frozen or stripped distribution).
    """
    passages = [passage for module in modules for passage in _of_module(module, split)]
    if not passages:
        raise ConfigError("the demo reads the docstrings of the standard library, and this Python came without sources")
    return tuple(passages)


def _of_module(module: str, split: Split) -> list[Passage]:
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.origin or not spec.origin.endswith(".py"):
        return []
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    found: dict[str, Passage] = {}  # by purpose: two names for one docstring are one passage
    for name, docstring in _documented(tree):
        subject = f"{name} in {module}"
        sentences = _prose(subject, docstring, split)
        passage = Passage(f"{module}.{name}", subject, module, sentences)
        if sentences and tuple(split(passage.text)) == sentences:  # read again it is what it was made of
            found.setdefault(passage.purpose.lower(), passage)
    return list(found.values())[:PASSAGES_PER_MODULE]


def _documented(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Names inside the module and docstrings of public functions, classes and methods, in the order of the source."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.ClassDef) and not child.name.startswith("_"):
            name = prefix + child.name
            docstring = ast.get_docstring(child)
            if docstring:
                yield name, docstring
            if isinstance(child, ast.ClassDef):
                yield from _documented(child, f"{name}.")


def _prose(subject: str, docstring: str, split: Split) -> tuple[str, ...]:
    """The first sentences of the first paragraphs, as far as they are plain prose."""
    sentences: list[str] = []
    for paragraph in inspect.cleandoc(docstring).split("\n\n")[:2]:
        text = _MARKUP.sub("", " ".join(paragraph.split()))
        for sentence in split(text):
            if not _plain(sentence) or len(sentences) == MOST_SENTENCES:
                return tuple(sentences)
            sentences.append(sentence if sentences else f"{subject}: {sentence}")
    return tuple(sentences)


def _plain(sentence: str) -> bool:
    return (
        _SHORTEST <= len(sentence) <= _LONGEST
        and sentence.isascii()
        and sentence[0].isupper()
        and sentence.endswith(".")
        and not _TELLING.search(sentence)
        and not _NOT_PROSE.search(sentence)
    )
