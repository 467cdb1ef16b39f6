"""Detectors for official numbers: a shape, a check of its digits, and a label where shape and check are too common."""

from collections.abc import Callable, Iterator

from evaluators.leaks.detector import Detector
from evaluators.leaks.formatted import Formatted, Span, stands_alone
from evaluators.leaks.labels import is_something_else, labelled
from evaluators.leaks.patterns import compiled

Check = Callable[[str], bool]  # takes letters (upper case) and digits without separators


def free(kind: str, name: str, shape: str, check: Check, joints: str = "-./") -> Detector:
    """Numbers that their shape and check digits tell from all others, unless a label says that they are another's."""

    def find(text: Formatted) -> Iterator[Span]:
        for match in compiled(shape).finditer(text.data):
            start, end = match.span()
            alone = stands_alone(text.text, start, end, joints)
            if alone and check(compact(text.text[start:end])) and not is_something_else(text, start):
                yield Span(start, end)

    return Detector(kind, name, (shape,), find)


def told(kind: str, name: str, labels: str, shape: str, check: Check) -> Detector:
    """Numbers that only a label beside them tells from others, with a check where there is one."""
    search = labelled(labels, shape)

    def find(text: Formatted) -> Iterator[Span]:
        for start, end in search(text):
            if check(compact(text.text[start:end])):
                yield Span(start, end)

    return Detector(kind, name, (rf"(?i:{labels})",), find)


def compact(text: str) -> str:
    """Its letters, in upper case, and digits."""
    return "".join(filter(str.isalnum, text)).upper()


def any_number(text: str) -> bool:
    """No check: the label alone tells."""
    return any(map(str.isdigit, text)) and len(set(text)) > 1
