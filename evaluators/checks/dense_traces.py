"""Traces of any size, full of the values that evaluators look for, to find work that grows too fast."""

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from ragtide.evaluators.trace import Artifact, Boxes, Chunk, Labels, Trace

SEPARATORS = (", ", "; ", " and ", "\n", " ", ". ", "")
PIECE = 100  # characters of a chunk or reference, where there are many
MASK = {"size": [2, 3], "counts": [0, 3, 3]}
_BASE64 = base64.b64encode(b"the password and the card are here").decode()
_Value = Callable[[int], str]

# Each value by its number: the same number gives the same value.
VALUES: Mapping[str, _Value] = {
    "words": lambda i: f"w{i}rd",
    "names": lambda i: f"Ann Berg{i} of Paris",
    "numbers": lambda i: f"{i},{i % 1_000:03}.5",
    "negations": lambda i: f"it is not {i} and never was",
    "sentences": lambda i: f"The door {i} is locked.",
    "shouts": lambda i: f"No{i}!",
    "Chinese sentences": lambda i: f"{chr(0x4E00 + i % 20_000)}。",
    "steps": lambda i: f"{i % 1_000}. Turn it on",
    "questions": lambda i: f"Who is {i}?\nBob: {i}",
    "refusals": lambda i: f"I'm sorry, I cannot help with {i}.",
    "quotes": lambda i: f"“Nobody {i}” said 'it' and \"left",
    "IP addresses": lambda i: f"192.168.{i % 251}.{i % 241}",
    "telephone numbers": lambda i: f"212-555-{i % 10_000:04}",
    "international numbers": lambda i: f"+44 20 7946 {i % 10_000:04}",
    "e-mail addresses": lambda i: f"ann{i}@example.com",
    "cards": lambda i: ("4111 1111 1111 1111", "5555 5555 5555 4444")[i % 2],
    "passports": lambda i: f"passport X{1_234_567 + i}",
    "passwords": lambda i: f"password=a1!bcdef{i}",
    "tokens": lambda i: f"ghp_{i:036}",
    "URLs": lambda i: f"https://user:p{i}@example.com/a?b=c%20d",
    "dates": lambda i: f"born on {1 + i % 28} May {1950 + i % 50}",
    "coordinates": lambda i: f"51.{i % 100_000:05}, -0.12780",
    "JSON": lambda i: f'{{"password": [{i}, {{"b{i}": null}}]}}',
    "JSON lists": lambda i: f"[{i}",
    "code": lambda i: f"f(x[{i}], {{y}}) -> `z`",
    "tags": lambda i: f"<p id='{i}'>&amp;<b>",
    "tables": lambda i: f"| token | phone |\n|---|---|\n| ghp_a{i} | 212-555-0123 |",
    "base64": lambda i: _BASE64,
    "hexadecimal": lambda i: f"0x{i:02x}0x63 74:68:65:20:6b:65:79",
    "percent signs": lambda i: f"%70%61%73%73 {i}",
}


def dense_traces() -> Iterator[tuple[str, Callable[[int], Trace]]]:
    """Yield the name of each shape, and a function that makes a trace with a text or list of about `size` characters.

    Every kind of value is in one text, with two separators, once all equal and once all different, and in pieces.
    """
    for i, (kind, value) in enumerate(VALUES.items()):
        first, second = SEPARATORS[i % len(SEPARATORS)], SEPARATORS[(i + 3) % len(SEPARATORS)]
        yield f"{kind}, equal, behind {first!r}", partial(_whole, partial(_same, value(7)), first)
        yield f"{kind}, different, behind {second!r}", partial(_whole, value, second)
        yield f"{kind} in pieces", partial(_pieces, value, first)
    yield "empty chunks and references", partial(_many, lambda i: "", 8)
    yield "equal chunks and references", partial(_many, lambda i: "the same", 16)
    yield "words as chunks and references", partial(_many, VALUES["words"], 16)
    yield "sentences as chunks and references", partial(_many, VALUES["sentences"], 40)
    yield "an answer beside as many references", _beside
    yield "regions", partial(_regions, lambda i: {"label": "cat", "score": 0.5, "box": [i % 99, i % 99, 100, 100]})
    yield "equal regions", partial(_regions, lambda i: {"label": "cat", "score": 0.5, "box": [0, 0, 9, 9]})
    yield "regions of many labels", partial(_regions, lambda i: {"label": f"c{i}", "score": 0.5, "box": [0, 0, 9, 9]})
    yield "masks", partial(_regions, lambda i: {"label": "cat", "score": 0.5, "mask": MASK})


def _same(value: str, number: int) -> str:
    return value


def _text(value: _Value, separator: str, size: int) -> str:
    one = value(999) + separator
    return separator.join(map(value, range(max(1, size // len(one)))))


def _whole(value: _Value, separator: str, size: int) -> Trace:
    text = _text(value, separator, size)
    return _trace(
        question=text,
        answer=text,
        contexts=(Chunk("c1", text),),
        expected=(text,),
        artifacts=(Artifact("a.json", None, text),),
        labels=Labels(expected="yes", predicted=text[:PIECE]),
    )


def _pieces(value: _Value, separator: str, size: int) -> Trace:
    text = _text(value, separator, size)
    pieces = [text[at : at + PIECE] for at in range(0, len(text), PIECE)]
    return _of_items(text, pieces)


def _many(value: _Value, characters: int, size: int) -> Trace:
    """Make many items of about `characters` each, with the separator."""
    items = [value(i) for i in range(max(1, size // characters))]
    return _of_items(" ".join(items), items)


def _beside(size: int) -> Trace:
    """Make a long answer and as many references, each of which is compared with all of it."""
    return _of_items(_text(VALUES["words"], " ", size), [f"w{i}rd" for i in range(max(1, size // 16))])


def _of_items(text: str, items: Sequence[str]) -> Trace:
    names = [f"c{i}" for i in range(len(items))]
    return _trace(
        question=text[: 10 * PIECE],
        answer=text,
        contexts=tuple(map(Chunk, names, items)),
        expected=tuple(items),
        constraints=tuple(items),
        relevance=dict.fromkeys(names, 1.0),
        artifacts=tuple(Artifact(name, None, item) for name, item in zip(names, items, strict=True)),
        labels=Labels(tuple(items), tuple(reversed(items)), dict.fromkeys(names, 0.5)),
    )


def _regions(region: Callable[[int], Mapping[str, Any]], size: int) -> Trace:
    """Make regions of about 50 characters each."""
    some = tuple(map(region, range(max(1, size // 50))))
    return _trace(answer="", boxes=Boxes(some, some))


def _trace(**fields: Any) -> Trace:
    return Trace(
        trace_id="dense",
        time=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        app="specimens",
        condition='"door" OR NOT regexp("(w+[0-9]*)+rd")' if "constraints" not in fields else None,
        categories=("base64", "url attack"),
        **fields,
    )
