"""Tokenises texts, and makes windows with the special tokens of one text and of pairs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.runtime.batches import Ids, Window, split_evenly
from ragtide.evaluators.text.surrogates import replace_surrogates

_LEAST_SHARE = 4  # of a pair the first text is left at least a quarter of the room, or the pair is not read


@dataclass(frozen=True, slots=True)
class _Around:
    """Special tokens before, between and after texts, and the kind of each part."""

    specials: tuple[Ids, ...]  # one more than there are texts
    kinds: Ids  # of special, text, special, ...

    @property
    def length(self) -> int:
        return sum(map(len, self.specials))

    def window(self, texts: Sequence[Ids], with_kinds: bool) -> Window:
        parts = [self.specials[0]]
        for text, special in zip(texts, self.specials[1:], strict=True):
            parts += text, special
        return Window(np.concatenate(parts), self.kinds.repeat(list(map(len, parts))) if with_kinds else ())


class Pieces:
    """A fast tokenizer and the model's maximum of tokens. Thread-safe."""

    def __init__(self, tokenizer: Any, max_tokens: int, pad: int = 0, with_kinds: bool = False) -> None:
        """`tokenizer` is a `tokenizers.Tokenizer`. With `with_kinds` the model distinguishes the texts of a pair."""
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self.pad = pad
        self.max_tokens = max_tokens
        self._tokenizer = tokenizer
        self._with_kinds = with_kinds
        self._one = _around(tokenizer.encode("a"), 1)
        self._two = _around(tokenizer.encode("a", "a"), 2)

    def of(self, texts: Sequence[str]) -> list[Ids]:
        """Tokenise each text, whole and without special tokens."""
        encoded = self._tokenizer.encode_batch_fast(
            [replace_surrogates(text) for text in texts], add_special_tokens=False
        )
        return [np.array(encoding.ids, np.int64) for encoding in encoded]

    def windows(self, texts: Sequence[Ids]) -> list[Window]:
        """Return the windows of a text or a pair. [] if the second text of a pair leaves too little room.

        One text is split evenly into as few windows as possible. Of a pair the first is split so, each time with the
        whole second.
        """
        around = self._one if len(texts) == 1 else self._two
        room = self.max_tokens - around.length
        first, *others = texts
        left = room - sum(map(len, others))
        if len(first) > left and left < max(1, room // _LEAST_SHARE):
            return []
        return [around.window((part, *others), self._with_kinds) for part in split_evenly(first, max(1, left))]


def _around(encoding: Any, texts: int) -> _Around:
    """Derive the special tokens from an example: they belong to no text."""
    specials: list[list[int]] = [[]]
    kinds: list[int] = [0]
    inside: int | None = None
    for token, owner, kind in zip(encoding.ids, encoding.sequence_ids, encoding.type_ids, strict=True):
        if owner is not None and owner != inside:
            specials.append([])
            kinds += kind, kind  # of the text, and of what follows it unless that says otherwise
            inside = owner
        elif owner is None:
            kinds[-1] = kind
            specials[-1].append(token)
    if len(specials) != texts + 1:
        raise ConfigError(f"the model's tokenizer cannot join {texts} texts; it is not for a classifier")
    return _Around(tuple(np.array(each, np.int64) for each in specials), np.array(kinds, np.int64))
