"""How much a word says by how rare it is: learned from an application's contexts, or by its length.

Function words and words about the sources weigh nothing: `words` leaves them out. For the others the default is a
prior by length, because long words are rare in every language (Zipf's law of abbreviation). It ships no text of
anybody and needs no language. On RAGTruth it orders answers as well as document frequencies of its own contexts do:
AUROC differs by less than 0.01.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import log
from pathlib import Path

from ragtide.evaluators.support.contexts import segments_of
from ragtide.evaluators.support.words import UNKNOWN, language_of_words, raw_words

FORMAT = 1
MOST_WORDS = 50_000  # that a table holds, the most frequent ones: all others are as rare as its rarest
MIN_WEIGHT = 0.3  # of a word that every context has
_LONG, _MIDDLE = 6, 4  # characters of a folded word
_BY_LENGTH = (0.5, 0.8, 1.0)


def weight_by_length(word: str) -> float:
    """Return the default weight of a folded word, from 0.5 to 1."""
    length = len(word)
    return _BY_LENGTH[2] if length >= _LONG else _BY_LENGTH[1] if length >= _MIDDLE else _BY_LENGTH[0]


@dataclass(frozen=True)
class DocumentFrequencies:
    """In how many texts of an application each folded word stands. `version` is a hash of the table."""

    texts: int
    counts: Mapping[str, int]

    @property
    def version(self) -> str:
        """Hash of the table: equal tables have equal versions."""
        table = json.dumps([FORMAT, self.texts, sorted(self.counts.items())], ensure_ascii=False)
        return hashlib.sha256(table.encode("utf-8", "replace")).hexdigest()[:16]

    def weight(self, word: str) -> float:
        """Return the inverse document frequency of a folded word as a share of the highest, at least `MIN_WEIGHT`."""
        count = self.counts.get(word, 0)
        return max(MIN_WEIGHT, log((self.texts + 1) / (count + 0.5)) / log(2 * (self.texts + 1)))

    def write(self, path: Path) -> None:
        """Write the table as JSON."""
        table = {"format": FORMAT, "version": self.version, "texts": self.texts, "counts": dict(self.counts)}
        path.write_text(json.dumps(table, ensure_ascii=False, sort_keys=True), "utf-8")


def learn_frequencies(texts: Iterable[str]) -> DocumentFrequencies:
    """Count in how many texts each word stands. A text that is given twice counts once."""
    seen: set[bytes] = set()
    counts: Counter[str] = Counter()
    for text in texts:
        key = hashlib.sha256(text.encode("utf-8", "replace")).digest()
        if key in seen:
            continue
        seen.add(key)
        code = language_of_words(raw_words(text))
        counts.update({word for words in segments_of(text, code or UNKNOWN).words for word in words})
    return DocumentFrequencies(len(seen), dict(counts.most_common(MOST_WORDS)))


def read_frequencies(path: Path) -> DocumentFrequencies:
    """Read a table. Raises `ValueError` if the file is none, or was changed after it was written."""
    try:
        read = json.loads(path.read_text("utf-8"))
        found = DocumentFrequencies(int(read["texts"]), {str(word): int(n) for word, n in read["counts"].items()})
        written = (read["format"], read["version"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path} is no table of document frequencies ({type(error).__name__}): learn it again"
        ) from error
    if written != (FORMAT, found.version):
        raise ValueError(f"{path} was changed after it was written, or by another version: learn it again")
    return found
