"""Texts that break evaluators which were not written for them, of any length, and traces full of them."""

import base64
import random
from collections.abc import Callable

from ragtide.evaluators.outcome import Evidence, Outcome, Scored
from ragtide.evaluators.trace import Artifact, Labels, Trace
from tests.evaluators.builtin.scoring import chunks, trace

WORDS = ("the", "door", "is", "locked", "and", "nobody", "knows", "where", "12", "3.4", "(5)", "66-77", "a@b", "x:y")
SENTENCE = "It is. "
CONDITION = 'regexp("(x+x+)+y") OR regexp("[ab]*a[ab]{40}c") OR NOT "\\"" AND regexp(".*.*.*=$")'


def prose(size: int) -> str:
    draw = random.Random(size)
    words = [draw.choice(WORDS) + draw.choice(("", "", "", ",", ".")) for _ in range(size // 4)]
    return " ".join(words)[:size]


def drawn(first: int, end: int, distinct: int) -> Callable[[int], str]:
    """Characters drawn at random, of which so many are distinct, the same for every size."""
    alphabet = random.Random(first).sample(range(first, end), distinct)
    return lambda size: "".join(map(chr, random.Random(size).choices(alphabet, k=size)))


TEXTS: dict[str, Callable[[int], str]] = {
    "one letter": lambda size: "a" * size,
    "two letters": lambda size: "".join(random.Random(size).choices("ab", k=size)),
    "prose": prose,
    "short sentences": lambda size: SENTENCE * (size // len(SENTENCE)),  # 142,857 of them in 1 MB
    "lines": lambda size: "\n- x" * (size // 4),
    "any character": drawn(0, 0x110000, 5_000),  # surrogates too
    "any Western character": drawn(32, 0x2100, 2_000),
    "control characters": drawn(0, 32, 32),
    "lone surrogates": lambda size: "\ud800\udfff" * (size // 2),
    "right to left": lambda size: "\u202e\u05e9\u05dc\u05dd \u202c" * (size // 6),
    "combining marks": lambda size: "e" + "\u0301" * (size - 1),
    "emoji": lambda size: "\U0001f469\u200d\U0001f4bb" * (size // 3),
    "blanks": lambda size: " \n\t\u00a0" * (size // 4),
    "digits": lambda size: "1" * size,
    "numbers": lambda size: "(2) 555 01 " * (size // 11),
    "addresses": lambda size: "a@b.c@d." * (size // 8),
    "deep JSON": lambda size: '{"a":' * (size // 6) + "1" + "}" * (size // 6),
    "broad JSON": lambda size: "[" + '{"a":[]},' * (size // 9) + "0]",
    "open tags": lambda size: "<p>" * (size // 3),
    "open quotes": lambda size: "\u201ca. " * (size // 4),
    "quotes and backslashes": lambda size: '\\"' * (size // 2),
    "base64": lambda size: base64.b64encode(random.Random(size).randbytes(size * 3 // 4)).decode(),
    "percent signs": lambda size: "%25" * (size // 3),
}


def hostile(text: str) -> Trace:
    """A trace with the text in the answer, half of it in a chunk, and pieces of it wherever else a text can stand."""
    piece = text[:500]
    return trace(
        question=text[:1_000],
        answer=text,
        contexts=chunks(text[: len(text) // 2], piece),
        expected=(piece,),
        condition=CONDITION,
        relevance={"c1": 1.0},
        labels=Labels(expected="yes", predicted=piece, scores={"yes": 0.25, piece: 0.75}),
        artifacts=(Artifact("a.json", None, text), Artifact(piece, "text/html", piece), Artifact("d/", None, piece)),
        categories=("base64", piece),
        segments={"tenant": piece},
        attributes={piece: piece},
    )


def points_into(evidence: Evidence, of: Trace) -> bool:
    """Whether the place lies in the text (or is one of the things) that it names; empty only where that is."""
    whole = {"artifacts": of.artifacts, "constraints": of.constraints}
    references = "".join(of.expected or ())
    texts = {"answer": of.answer, "question": of.question, "condition": of.condition, "expected": references}
    held = whole.get(evidence.field) or texts.get(evidence.field)
    if evidence.field == "contexts":
        held = next(chunk.text for chunk in of.contexts or () if chunk.id == evidence.chunk_id)
    if held is None or not 0 <= evidence.start <= evidence.end <= len(held):
        return False
    return evidence.start < evidence.end or not held


def sound(outcome: Outcome, of: Trace) -> bool:
    """Whether a score's evidence points into its trace."""
    return not isinstance(outcome, Scored) or all(points_into(evidence, of) for evidence in outcome.evidence)
