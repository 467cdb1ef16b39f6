"""Window metrics: metrics of a set of records, computed by one pure function from counts of the records.

The contract of an evaluator with method `window`, in addition to that of every evaluator:

- `Scored.parts` holds the counts that a record adds to its window: whole numbers from 0 to 2^53. Their sums are exact
  in any order, so that hours and days can be summed from minutes. The key of a part is a name that the evaluator
  chooses (lower-case letters, digits, `_` and `.`) and the labels of classes, if the count belongs to some: see
  `part_key`. A record has at most `MOST_PARTS` parts.
- `Scored.metrics` holds the metrics without `per` that the record alone would give, at least the primary ones. They
  decide which records count as bad, and order examples. They are never averaged.
- `combine` computes a `Combined` from the sums. It is pure and has no other input: parameters that it needs must be in
  the parts. It leaves out metrics that are undefined (no records, 0 / 0). From no parts it makes an empty `Combined`.
- A metric with `per` has one series for each combination of the labels it names, such as classes. It is never primary.
- A window holds at most `MOST_CLASSES` classes, and fewer if it has more than 50,000 counts. Beyond that, the classes
  with the smallest counts are pooled into one class, `POOLED`, before `combine` sees them. Sums over classes stay
  exact; means over classes see one class.

`check_evaluator` checks all of this.
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
    """One value of a metric with `per`, and the number of records (of images: objects) behind it."""

    value: float
    records: int


@dataclass(frozen=True, slots=True)
class Combined:
    """The metrics of a window, without undefined ones. Those with `per` are keyed by labels, in the order of `per`."""

    metrics: Mapping[str, float] = field(default_factory=dict)
    per: Mapping[str, Mapping[tuple[str, ...], ClassValue]] = field(default_factory=dict)


Combine = Callable[[Mapping[str, float]], Combined]


def class_label(written: str) -> str:
    """Normalise a class for parts: white space and control characters become single blanks.

    A label of more than 64 characters becomes its `hidden_label`.
    """
    label = " ".join(_CONTROL.sub(" ", replace_surrogates(written)).split())
    return label if len(label) <= _LABEL_LENGTH else hidden_label(label)


def hidden_label(label: str) -> str:
    """Replace a label by a unique one that cannot be read: `#` and 16 hex digits of its SHA-256."""
    return f"#{sha256(label.encode()).hexdigest()[:16]}"


def part_key(name: str, *labels: str) -> str:
    """Make the key of a count from its name and up to three labels of `class_label`."""
    return SEPARATOR.join((name, *labels))


def name_and_labels(key: str) -> tuple[str, tuple[str, ...]]:
    """Split a key of `part_key` into its name and labels."""
    name, *labels = key.split(SEPARATOR)
    return name, tuple(labels)


def parts_fault(parts: Mapping[str, float]) -> str | None:
    """Return why these are no parts of a window evaluator, without quoting a label. None if they are."""
    if len(parts) > MOST_PARTS:
        return f"a record has at most {MOST_PARTS} parts"
    for key, count in parts.items():
        if not isinstance(key, str) or _KEY.fullmatch(key) is None:
            return "a part's key is a name of [a-z0-9_.] and up to three labels of at most 64 characters, after tabs"
        if not 0 <= count <= LARGEST_COUNT or count != int(count):
            return "parts are whole numbers from 0 to 2^53"
    return None
