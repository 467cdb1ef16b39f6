"""Detectors for official numbers: a shape, a check of its digits, and a label where shape and check are too common."""

from collections.abc import Callable, Iterator

from ragtide.evaluators.leaks.byte_text import ByteText, Span, stands_alone
from ragtide.evaluators.leaks.detector import Detector
from ragtide.evaluators.leaks.labels import BESIDE, SOMEWHERE, is_something_else, label_pattern, search_by_label
from ragtide.evaluators.leaks.patterns import compile_pattern

Check = Callable[[str], bool]  # takes letters (upper case) and digits without separators

_LEAST_DIGITS, _LEAST_MIXED = 5, 7  # characters of digits alone, and with letters, where nothing but a label tells


def number_by_shape(
    kind: str, name: str, shape: str, check: Check, joints: str = "-./", unlike: bool = False
) -> Detector:
    """Numbers that their shape and check digits tell from all others, unless a label says that they are another's.

    `unlike`: no other numbers have this shape, whatever a label says.
    """

    def find(text: ByteText) -> Iterator[Span]:
        for match in compile_pattern(shape).finditer(text.data):
            start, end = match.span()
            alone = stands_alone(text.text, start, end, joints)
            if alone and check(compact(match[0])) and (unlike or not is_something_else(text, start)):
                yield Span(start, end)

    return Detector(kind, name, (shape,), find)


def number_near_label(
    kind: str, name: str, labels: str, shape: str, check: Check, mark: str = "", gap: str = SOMEWHERE
) -> Detector:
    """Detect numbers with a label near them that pass a check; `labels`, `mark`, `gap`: see `search_by_label`."""
    search = search_by_label(labels, shape, gap, mark)

    def find(text: ByteText) -> Iterator[Span]:
        for start, end in search(text):
            if check(compact(text.data[start:end])):
                yield Span(start, end)

    gates = (rf"(?i:{label_pattern(labels)})", *((mark,) if mark else ()))
    return Detector(kind, name, gates, find)


def number_beside_label(
    kind: str, name: str, labels: str, shape: str, check: Check | None = None, mark: str = ""
) -> Detector:
    """Numbers that nothing or little but their label tells: it must stand beside them ("no. ", ": ", "of Ms X is ")."""
    return number_near_label(kind, name, labels, shape, check or _is_long_enough, mark, BESIDE)


def compact(data: bytes) -> str:
    """Its letters, in upper case, and digits."""
    return "".join(filter(str.isalnum, data.decode("latin-1"))).upper()


def any_number(text: str) -> bool:
    """No check: its shape or its label alone tells."""
    return any(map(str.isdigit, text)) and len(set(text)) > 1


def _is_long_enough(text: str) -> bool:
    """Whether it is more than a year, an amount or a word."""
    digits = sum(map(str.isdigit, text))
    return len(set(text)) > 1 and (
        digits >= _LEAST_DIGITS if digits == len(text) else digits > 0 and len(text) >= _LEAST_MIXED
    )
