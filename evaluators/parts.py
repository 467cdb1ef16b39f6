"""Window metrics: numbers of a set of records, made by one pure function of counts that each record leaves.

The contract of an evaluator whose method is `window`, besides that of every evaluator:

- `Scored.parts` holds what a record adds to its window: whole numbers from 0 to 2^53, so that sums are exact in any
  order and hours and days are made of minutes. A part's key is a name of the evaluator's own (lower-case letters,
  digits, `_` and `.`; few and known) and, where the count belongs to classes, their labels: see `part_key`. At most
  `MOST_PARTS` of them a record.
- `Scored.metrics` holds, of the metrics without `per`, what the record alone would give, at least of primary ones
  where it gives any. Records are counted as wrong by them, and examples are ordered; nothing averages them.
- `combine` makes a `Combined` of the sums. It is pure and sees nothing else: what it needs of the parameters, parts
  say. What sums cannot tell (no records, 0 / 0) it leaves out; of no parts at all it makes nothing.
- A metric with `per` is a series for each combination of labels that it names, such as a class. It is never primary.
- A window holds at most `MOST_CLASSES` classes, and fewer where it has more than 50,000 counts. Where its records have
  more, those with the smallest counts are one class, `POOLED`, before `combine` sees them: sums over classes stay
  exact, means over classes see one.

`check_evaluator` tells whether an evaluator keeps to it.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NamedTuple

from ragtide.evaluators.text.surrogates import replace_surrogates

SEPARATOR = "\t"
POOLED = "__other__"
MOST_CLASSES = 100
MOST_PARTS = 10_000
LARGEST_COUNT = float(1 << 53)
_LABEL_LENGTH = 64
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_KEY = re.compile(r"[a-z][a-z0-9_.]{0,63}(\t[^\x00-\x1f\ud800-\udfff]{0,64}){0,3}")


class ClassValue(NamedTuple):
    """One value of a metric with `per`, and how many records (of images: objects) it rests on."""

    value: float
    records: int


@dataclass(frozen=True, slots=True)
class Combined:
    """A window's own metrics, those with `per` by the labels in its order; what could not be told is not there."""

    metrics: Mapping[str, float] = field(default_factory=dict)
    per: Mapping[str, Mapping[tuple[str, ...], ClassValue]] = field(default_factory=dict)


Combine = Callable[[Mapping[str, float]], Combined]


def class_label(written: str) -> str:
    """The class as parts name it: white space and control characters in single blanks.

    One of more than 64 characters is `hidden_label` of it.
    """
    label = " ".join(_CONTROL.sub(" ", replace_surrogates(written)).split())
    return label if len(label) <= _LABEL_LENGTH else hidden_label(label)


def hidden_label(label: str) -> str:
    """Tells a label from all others, and cannot be read: `#` and 16 hex digits of its SHA-256."""
    return f"#{sha256(label.encode()).hexdigest()[:16]}"


def part_key(name: str, *labels: str) -> str:
    """The key of a count: what it counts, and up to three labels of `class_label`."""
    return SEPARATOR.join((name, *labels))


def name_and_labels(key: str) -> tuple[str, tuple[str, ...]]:
    """What `part_key` was given."""
    name, *labels = key.split(SEPARATOR)
    return name, tuple(labels)


def wrong_parts(parts: Mapping[str, float]) -> str | None:
    """What makes these no parts of a window evaluator, without quoting a label; None if nothing does."""
    if len(parts) > MOST_PARTS:
        return f"a record has at most {MOST_PARTS} parts"
    for key, count in parts.items():
        if not isinstance(key, str) or _KEY.fullmatch(key) is None:
            return "a part's key is a name of [a-z0-9_.] and up to three labels of at most 64 characters, after tabs"
        if not 0 <= count <= LARGEST_COUNT or count != int(count):
            return "parts are whole numbers from 0 to 2^53"
    return None
