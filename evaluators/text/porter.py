"""Porter's stemmer (Program 14.3, 1980) with the extensions of NLTK 3.10. Its stems are exactly those of NLTK."""

from collections.abc import Callable, Sequence

from ragtide.evaluators.text.memo import memoize

IRREGULAR = {
    "sky": "sky",
    "skies": "sky",
    "dying": "die",
    "lying": "lie",
    "tying": "tie",
    "news": "news",
    "innings": "inning",
    "inning": "inning",
    "outings": "outing",
    "outing": "outing",
    "cannings": "canning",
    "canning": "canning",
    "howe": "howe",
    "proceed": "proceed",
    "exceed": "exceed",
    "succeed": "succeed",
}
Rules = Sequence[tuple[str, str]]  # suffix and what replaces it; the first suffix that the word has decides
PLURALS: Rules = (("sses", "ss"), ("ies", "i"), ("ss", "ss"), ("s", ""))
DOUBLE_SUFFIXES: Rules = (
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("bli", "ble"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
    ("fulli", "ful"),
)
SUFFIXES: Rules = (
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ful", ""),
    ("ness", ""),
)
LAST_SUFFIXES: Rules = tuple(
    (suffix, "")
    for suffix in (
        *("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism", "ate"),
        *("iti", "ous", "ive", "ize"),
    )
)


@memoize
def stem(word: str) -> str:
    """Return the stem of a lower-case word, in linear time."""
    if word in IRREGULAR:
        return IRREGULAR[word]
    if len(word) <= 2:
        return word
    word = _without_plural(word)
    word = _without_ed_or_ing(word)
    if word.endswith("y") and len(word) > 2 and _shape(word[:-1])[-1] == "c":
        word = word[:-1] + "i"
    word = _without_double_suffix(word)
    word = _replace_suffix(word, SUFFIXES, lambda rest: _measure(rest) > 0)
    word = _replace_suffix(word, LAST_SUFFIXES, lambda rest: _measure(rest) > 1 and _can_remove_last_suffix(word, rest))
    return _without_final_e_or_l(word)


def _without_plural(word: str) -> str:
    if word.endswith("ies") and len(word) == 4:
        return word[:-1]
    return _replace_suffix(word, PLURALS, lambda rest: True)


def _without_ed_or_ing(word: str) -> str:
    if word.endswith("ied"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) else word
    rest = next((word[: -len(suffix)] for suffix in ("ed", "ing") if word.endswith(suffix)), "")
    if "v" not in _shape(rest):
        return word
    if rest.endswith(("at", "bl", "iz")):
        return rest + "e"
    if _ends_with_a_double_consonant(rest):
        return rest if rest[-1] in "lsz" else rest[:-1]
    return rest + "e" if _measure(rest) == 1 and _ends_short(rest) else rest


def _without_double_suffix(word: str) -> str:
    if word.endswith("alli") and _measure(word[:-4]):
        return _without_double_suffix(word[:-2])
    if word.endswith("logi"):
        return word[:-1] if _measure(word[:-3]) else word
    return _replace_suffix(word, DOUBLE_SUFFIXES, lambda rest: _measure(rest) > 0)


def _without_final_e_or_l(word: str) -> str:
    if word.endswith("e"):
        rest = word[:-1]
        measure = _measure(rest)
        if measure > 1 or (measure == 1 and not _ends_short(rest)):
            word = rest
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word


def _can_remove_last_suffix(word: str, rest: str) -> bool:
    """Whether the last suffix can be removed: "ion" only after s or t."""
    return rest[-1] in "st" if word.endswith("ion") else True


def _replace_suffix(word: str, rules: Rules, may: Callable[[str], bool]) -> str:
    for suffix, replacement in rules:
        if word.endswith(suffix):
            rest = word[: -len(suffix)]
            return rest + replacement if may(rest) else word
    return word


def _shape(word: str) -> str:
    """Map each letter to v (vowel) or c (consonant). y is a vowel after a consonant."""
    shape: list[str] = []
    for letter in word:
        vowel = letter in "aeiou" or (letter == "y" and shape[-1:] == ["c"])
        shape.append("v" if vowel else "c")
    return "".join(shape)


def _measure(word: str) -> int:
    """Count how often a consonant follows a vowel."""
    return _shape(word).count("vc")


def _ends_with_a_double_consonant(word: str) -> bool:
    return len(word) > 1 and word[-1] == word[-2] and _shape(word)[-1] == "c"


def _ends_short(word: str) -> bool:
    """Whether it ends in consonant, vowel, consonant other than w, x and y, or is a vowel and a consonant."""
    shape = _shape(word)
    return (shape.endswith("cvc") and word[-1] not in "wxy") or shape == "vc"
