"""Finds values that answer a question: "What is your PESEL?", and on the next line "Customer: Sure, it's ..."."""

from collections.abc import Iterator

from ragtide.evaluators.leaks.byte_text import ByteText, Span
from ragtide.evaluators.leaks.patterns import compile_pattern

_MOST_WORDS = 4  # of a label
_QUESTION, _ANSWER = 120, 96  # characters
_MARKS = "?\uff1f\u061f"  # also the one of full width and of Arabic; what else is folded to "?" is no question
_MARKED = r"\?[\"'*_ )>]{0,4}\s{1,4}"
# As spelt without accents: English, German, French, Spanish, Portuguese, Italian, Dutch, Polish, Nordic languages.
_REQUESTED = (
    r"(?i)\b(?:enter|provide|confirm|give|tell|share|send|need|type|state|supply|verify|bitte|nennen|geben|merci de|"
    r"indique[rz]|donne[rz]|communique[rz]|introduz[a-z]{1,3}|introduzca|indi[ck][a-z]{1,4}|proporcion[a-z]{1,3}|"
    r"inseri[a-z]{1,4}|forni[a-z]{1,4}|inform[ae][a-z]{0,3}|digite|vul|geef|podac|podaj|prosze|ange|oppgi|angiv)\b"
    r"([^\n?]{2,80})\n"
)
_SPEAKER = (
    r"^\s{0,4}(?:\[?[0-9][0-9:. -]{3,18}\]?\s)?[*_>#\[<(-]{0,3}\s?[A-Za-z\x80-\x8f?][A-Za-z\x80-\x8f0-9_.' -]{0,24}"
    r"[*_\]>)]{0,3}:[*_]{0,2}\s?"
)
_WHOSE = (
    r"(?i).*(?:\b(?:your|the|my|his|her|their|our|ihre?|deine?|die|der|das|votre|ton|ta|le|la|su|tu|el|il|suo|sua|"
    r"tuo|tua|"
    r"seu|teu|o|uw|je|jouw|het|de|pana|pani|twoj|din|ditt) |\bl')"
)
_POLITE = (
    r"(?i)[ ,]+(?:please|pls|bitte|por favor|per favore|s'il (?:vous|te) plait|prosze|alstublieft|tack|again|"
    r"(?:to|so|for|on|as|so that|we|um|pour|para|per|om|zur?|fur|an|ein) .*)$"
)
_FROM_DIGIT = r"[+(]{0,2}[^\s]*[0-9].*"


def find_answers(shape: ByteText) -> Iterator[tuple[Span, Span]]:
    """Yield possible labels in each question with the answer, once whole and once from the first digit."""
    data = shape.data
    if b"?" in data:
        for mark in compile_pattern(_MARKED).finditer(data):
            if shape.text[mark.start()] not in _MARKS:
                continue
            first = max(mark.start() - _QUESTION, 0)
            first = max(first, data.rfind(b"\n", first, mark.start()) + 1)
            yield from _pairs(data, Span(first, mark.start()), mark.end())
    if b"\n" not in data or b":" not in data:
        return
    for request in compile_pattern(_REQUESTED).finditer(data):
        if compile_pattern(_SPEAKER).search(data[request.end() : request.end() + _ANSWER]):
            yield from _pairs(data, Span(*request.span(1)), request.end())


def _pairs(data: bytes, question: Span, start: int) -> Iterator[tuple[Span, Span]]:
    line = data[start : start + _ANSWER].partition(b"\n")[0]
    digit = compile_pattern(r"[0-9]").search(line)
    if not digit and b" " in line.rpartition(b": ")[2].strip():
        return  # words alone
    speaker = compile_pattern(_SPEAKER).search(line)
    said = Span(start + (speaker.end() if speaker else 0), start + len(line))
    answers = [said]
    numbered = compile_pattern(_FROM_DIGIT).search(data[said.start : said.end]) if digit else None
    if numbered:
        answers.append(Span(said.start + numbered.start(), said.start + numbered.end()))
    for label in _labels(data, question):
        yield from ((label, answer) for answer in answers if answer.end > answer.start)


def _labels(data: bytes, question: Span) -> Iterator[Span]:
    """Yield the words after the last article or pronoun, in each possible length; without one, the last words."""
    asked = data[question.start : question.end].rstrip(b" .:!*_\"'")
    polite = compile_pattern(_POLITE).search(asked)
    asked = asked[: polite.start()] if polite else asked
    whose = compile_pattern(_WHOSE).search(asked)
    first = question.start + (whose.end() if whose else 0)
    words = [
        Span(first + word.start(), first + word.end())
        for word in compile_pattern(r"\S+").finditer(asked[first - question.start :])
    ]
    for count in range(1, min(_MOST_WORDS, len(words)) + 1):
        named = words[:count] if whose else words[-count:]
        yield Span(named[0].start, named[-1].end)
