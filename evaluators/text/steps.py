"""Steps that a text lists: numbered, lettered, bulleted, or begun with "first", "then", "finally"."""

import re
from collections.abc import Sequence

from ragtide.evaluators.spec import Sentence
from ragtide.evaluators.text.sentences import split

# At the start of a line, after what Markdown may put there, or within one.
_MARKER = re.compile(
    r"""(?:(?P<line>^(?:[ \t>]|\#{1,6}[ ]|\*\*|__)*+)|(?<=\s))
    (?:(?P<bullet>[-*+\u2022\u2023\u25aa\u25cf\u25e6\u2013\u2014\u00b7])
      |(?P<open>\(?)(?P<value>[0-9]{1,3}|[A-Za-z])(?P<close>[.)])
      |(?P<step>[Ss](?:tep|TEP))[ ]?(?P<number>[0-9]{1,3})[ ]?[.:)\u2013\u2014-])
    (?:\*\*|__)?(?=\s)""",
    re.VERBOSE | re.MULTILINE,
)
_BLANK_LINE = re.compile(r"\n[^\S\n]*+(?=\n)")
_FIRST = re.compile(r"\bfirst", re.IGNORECASE)
_ORDINAL = re.compile(
    r"(?:^|[,;:]\s|\s(?=and\s))(?:and\s)?(first(?:ly| of all)?|second(?:ly)?|third(?:ly)?|then|next|after that|"
    r"afterwards|finally|lastly)\b(?:,|(?=\s))",
    re.IGNORECASE,
)
_BETWEEN = " \t\r\n,;"  # what parts a step from the next


def steps(text: str) -> tuple[Sentence, ...]:
    """Return the steps in order, without markers, each with a letter. `text[start:end]` is the text of the step.

    A step of a list ends at the next one or at a blank line. Numbers within a line, and letters, count only in
    sequence: 1, 2 or a, b. Ordinal words count in texts without a list, after a "first". Linear time.
    """
    found = _list_steps(text) or _ordinal_steps(text)
    return tuple(step for start, end in found if (step := _step(text, start, end)) is not None)


def _step(text: str, start: int, end: int) -> Sentence | None:
    whole = text[start:end]
    step = whole.strip(_BETWEEN).removesuffix(" and").rstrip(_BETWEEN)
    if not any(map(str.isalpha, step)):
        return None
    start += whole.index(step)
    return Sentence(step, start, start + len(step))


def _list_steps(text: str) -> list[tuple[int, int]]:
    markers = _markers_of_steps(list(_MARKER.finditer(text)))
    ends = [*(marker.start() for marker in markers[1:]), len(text)]
    blanks = (blank.start() for blank in _BLANK_LINE.finditer(text))
    blank = next(blanks, len(text))
    places = []
    for marker, end in zip(markers, ends, strict=False):
        while blank < marker.end():
            blank = next(blanks, len(text))
        places.append((marker.end(), min(end, blank)))
    return places


def _markers_of_steps(markers: Sequence[re.Match[str]]) -> list[re.Match[str]]:
    """Select the markers at the start of a line, except letters, and those of a sequence from 1 or a."""
    selected = set()
    runs: dict[str, list[int]] = {}  # by style: the places of the run that may go on
    for place, marker in enumerate(markers):
        value = marker["value"] or marker["number"] or ""
        within = marker["line"] is None
        if not within and not value.isalpha():
            selected.add(place)
        if not value or (within and value.isalpha() and marker["close"] == "."):
            continue  # "A. B. Smith" is no list
        style = f"{marker['open']}{'a' if value.isalpha() else 1}{marker['close']}"
        run = runs.get(style, [])
        number = int(value) if value.isdigit() else ord(value.lower()) - ord("a") + 1
        begins = number == 1 and not (within and marker["close"] == "." and _in_clause(marker))
        runs[style] = [*run, place] if run and number == len(run) + 1 else [place] if begins else []
        if len(runs[style]) > 1:
            selected.update(runs[style][-2:])
    return [marker for place, marker in enumerate(markers) if place in selected]


def _in_clause(marker: re.Match[str]) -> bool:
    """Whether words precede it, as in a date: "on 1. May"."""
    return marker.string[max(0, marker.start() - 2)] not in ".:;,!?"


def _ordinal_steps(text: str) -> list[tuple[int, int]]:
    if not _FIRST.search(text):
        return []
    runs: list[list[tuple[int, int]]] = []
    for sentence in split(text):
        marks = list(_ORDINAL.finditer(sentence.text))
        ends = [*(mark.start() for mark in marks[1:]), len(sentence.text)]
        for mark, end in zip(marks, ends, strict=False):
            if mark[1].lower().startswith("first"):
                runs.append([])
            if runs:
                runs[-1].append((sentence.start + mark.end(), sentence.start + end))
    return [place for run in runs if len(run) > 1 for place in run]
