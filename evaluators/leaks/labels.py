"""What the words beside a number say that it is: many numbers are personal only by their label."""

from collections.abc import Callable, Iterator

from evaluators.leaks.formatted import Formatted, Span
from evaluators.leaks.patterns import compiled

_GAP = r"[^0-9\n]{0,40}?"  # "passport number of the second traveller: "
_BEFORE = 32  # characters that a label of something else and its number take

# Of what is counted or made in a shop, a build or a book, none is a person's.
_OTHER = (
    r"(?i)(?:\b|_|#)(?:order|invoice|tracking|ticket|case|part|sku|isbn|issn|doi|serial|model|version|release|build|rev|"
    r"revision|commit|reference|ref|item|product|catalog(?:ue)?|article|lot|batch|barcode|upc|ean|gtin|asin|job|session|"
    r"transaction|request|message|event|trace|page|chapter|section|figure|table|issue|shipment|parcel|"
    r"(?:order|user|item|tweet|post|video|channel|row)[_ -]?id|[\"']id)s?"
    r"(?:[ _-]?(?:id|no|nr|num|number|code|is|was|key)\b\.?){0,2}[\"']?[ :#=\"'(-]*$"
)


def labelled(labels: str, value: str) -> Callable[[Formatted], Iterator[Span]]:
    """Finds `value` behind one of the `labels` (RE2 alternatives, any case), or with one right behind it."""
    before = rf"(?i:(?:\b|_)(?:{labels})){_GAP}\b({value})(?:\b|_|$)"
    after = rf"\b({value})[ ]?[(\[,-]{{1,2}} ?(?i:(?:{labels}))"

    def find(shape: Formatted) -> Iterator[Span]:
        seen = -1
        for pattern in (before, after):
            for match in compiled(pattern).finditer(shape.data):
                start, end = match.span(1)
                if start != seen:
                    yield Span(start, end)
                seen = start

    return find


def is_something_else(shape: Formatted, start: int) -> bool:
    """Whether the words right before say that this is an order's, a part's, a book's number."""
    return compiled(_OTHER).search(shape.data[max(start - _BEFORE, 0) : start]) is not None
