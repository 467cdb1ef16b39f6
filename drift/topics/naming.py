"""Name topics by their distinctive words, never by personal data.

The weight of a word is p ln(p / q), where p is the share of the topic's questions that use it and q that of all
questions: the Kullback-Leibler form of class-based TF-IDF (Tomokiyo and Hurst 2003). Words of all topics weigh nothing.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from ragtide.evaluators.leaks import scanner

WORDS = 3
MAX_CHARACTERS = 2_000  # of a question that are read
_MAX_WORD = 30
_MIN_OF_BEST = 0.2  # of the first word's weight
_MASK = re.compile(r"\[[^\]\n]{0,80}\]")  # inserted in place of masked text when the question was stored
_WORD = re.compile(r"[^\W\d_]{2,}")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_UNSPACED_LENGTH = 2  # characters taken as a word in scripts without spaces


def words_of(question: str) -> frozenset[str]:
    """Return the words of a question in lower case, without personal, secret or masked text."""
    text = question[:MAX_CHARACTERS]
    shown = list(text)
    for hit in scanner()(text).hits:
        shown[hit.start : hit.end] = " " * (hit.end - hit.start)
    found: set[str] = set()
    for word in _WORD.findall(_MASK.sub(" ", "".join(shown)).casefold()):
        if _UNSPACED.search(word):
            found.update(word[at : at + _UNSPACED_LENGTH] for at in range(len(word) - 1))
        elif 3 <= len(word) <= _MAX_WORD:
            found.add(word)
    return frozenset(found)


def names_of(topics: Sequence[Iterable[str]], others: Iterable[str], min_questions: int) -> list[str]:
    """Name each topic from the texts of its questions; empty if no word qualifies.

    A word qualifies if at least `min_questions` different questions of the topic use it: then it identifies nobody.
    `others` are questions of no topic. Questions with the same words count once.
    """
    words = [_by_question(texts) for texts in (*topics, others)]
    everywhere = Counter(word for group in words for question in group for word in question)
    return [_name(group, everywhere, sum(map(len, words)), min_questions) for group in words[:-1]]


def _by_question(texts: Iterable[str]) -> set[frozenset[str]]:
    return {words for words in map(words_of, texts) if words}


def _name(questions: set[frozenset[str]], everywhere: Counter[str], asked: int, min_questions: int) -> str:
    within = Counter(word for words in questions for word in words)
    weights = {
        word: used / len(questions) * math.log(used / len(questions) / (everywhere[word] / asked))
        for word, used in within.items()
        if used >= min_questions
    }
    floor = _MIN_OF_BEST * max(weights.values(), default=0.0)
    best = sorted((word for word in weights if weights[word] > floor), key=lambda word: (-weights[word], word))
    return ", ".join(best[:WORDS])
