from functools import cache
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ragtide.evaluators.text.porter import DOUBLE_SUFFIXES, IRREGULAR, LAST_SUFFIXES, SUFFIXES, stem

# Roots of every measure, and endings that meet every rule.
ROOTS = (
    "s",
    "tr",
    "fl",
    "ow",
    "hop",
    "fail",
    "fizz",
    "agr",
    "enjo",
    "sky",
    "syzyg",
    "oper",
    "adjust",
    "conform",
    "geo",
)
ENDINGS = (
    *("", "s", "sses", "ies", "ied", "eed", "ed", "ing", "ating", "bled", "izing", "pped", "lling", "y", "yed", "e"),
    *("ll", "alli", "logi", "ology", "sion", "tion", "aion", "ssed", "ement", "yyy", "é"),
    *(suffix for suffix, _ in (*DOUBLE_SUFFIXES, *SUFFIXES, *LAST_SUFFIXES)),
)


@cache
def theirs() -> Any:
    from nltk.stem.porter import PorterStemmer

    return PorterStemmer()


@pytest.mark.parametrize("root", ROOTS)
def test_stems_are_nltks(root: str) -> None:
    words = [root + ending + more for ending in ENDINGS for more in ENDINGS]
    assert {word: stem(word) for word in words} == {word: theirs().stem(word) for word in words}


def test_irregular_words_are_nltks() -> None:
    assert {word: stem(word) for word in IRREGULAR} == {word: theirs().stem(word) for word in IRREGULAR}


@settings(deadline=None)
@given(st.text(st.sampled_from("aeiouyslnt'1édgi"), max_size=30))
@example("y" * 5_000)
def test_stems_of_anything_are_nltks(word: str) -> None:
    assert stem(word) == theirs().stem(word)
