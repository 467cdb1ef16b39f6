"""Topics are named by the words that tell them from the rest, never by what belongs to a person.

A word stands for a topic by p ln(p / q), p the share of the topic's questions that use it and q that of all questions:
class-based TF-IDF as the divergence of Kullback and Leibler has it (Tomokiyo and Hurst 2003). Words that every topic
has come to nothing, in any language.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from ragtide.evaluators.leaks import DEFAULT_REGION, scanner

WORDS = 3
MAX_CHARACTERS = 2_000  # characters of a question that are read
_MAX_WORD = 30
_MIN_OF_BEST = 0.2  # of the first word's weight: what tells less than that tells nothing beside it
_MASK = re.compile(r"\[[^\]\n]{0,80}\]")  # of what was masked when it was stored
_WORD = re.compile(r"[^\W\d_]{2,}")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_UNSPACED_LENGTH = 2  # characters that are taken as a word where none is between spaces


def words_of(question: str) -> frozenset[str]:
    """The words of a question in lower case, without what is personal, secret or was masked."""
    text = question[:MAX_CHARACTERS]
    shown = list(text)
    for hit in scanner(DEFAULT_REGION)(text).hits:
        shown[hit.start : hit.end] = " " * (hit.end - hit.start)
    found: set[str] = set()
    for word in _WORD.findall(_MASK.sub(" ", "".join(shown)).casefold()):
        if _UNSPACED.search(word):
            found.update(word[at : at + _UNSPACED_LENGTH] for at in range(len(word) - 1))
        elif 3 <= len(word) <= _MAX_WORD:
            found.add(word)
    return frozenset(found)


def names_of(topics: Sequence[Iterable[str]], others: Iterable[str], min_questions: int) -> list[str]:
    """A name for each topic, given the texts of its questions; empty where no word may stand in it.

    A word may where at least `least` different questions of the topic use it: what is in so many belongs to nobody.
    `others` are questions of no topic. A question that was asked in the same words counts once.
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
