"""Synonyms of WordNet, if NLTK and its data are installed. Downloads nothing."""

from functools import lru_cache
from threading import Lock
from typing import Any

LONGEST = 64  # characters: WordNet's longest word has 45, so longer ones need not be looked for, nor remembered
_one_at_a_time = Lock()  # NLTK's reader seeks in files that it keeps open


def what_is_missing() -> str | None:
    """Return what to install for synonyms, or None."""
    try:
        _wordnet()
    except ImportError:
        return "NLTK is not installed (the extra `wordnet`)"
    except LookupError:
        return "NLTK finds no WordNet on this machine (python -m nltk.downloader wordnet)"
    return None


def synonyms(word: str) -> frozenset[str]:
    """Return the word and all single words that share a sense with it. Raises if `what_is_missing` is not None."""
    return _look_up(word) if len(word) <= LONGEST else frozenset({word})


@lru_cache(maxsize=20_000)
def _look_up(word: str) -> frozenset[str]:
    with _one_at_a_time:
        lemmas = {name for sense in _wordnet().synsets(word) for name in sense.lemma_names() if "_" not in name}
    return frozenset({word, *lemmas})


@lru_cache(maxsize=1)
def _wordnet() -> Any:
    from nltk.corpus import wordnet

    wordnet.ensure_loaded()
    return wordnet
