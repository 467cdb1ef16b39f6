"""Tokens as the reference implementations of text comparison make them: pure functions of a text, linear in it.

A piece between blanks that is letters and digits alone is a token. The rules of a tokeniser are run on the others only
("mat.", "it's"), and what they made of a short one is remembered.
"""

import re

from ragtide.evaluators.text.memo import memoize


def lower_case_words(text: str) -> list[str]:
    """Split into lower-case words at white space."""
    return text.lower().split()


def mteval(text: str) -> list[str]:
    """Tokenise like mteval-v13a in sacrebleu 2.6 and in Hugging Face's bleu, keeping case."""
    if "&" in text or "-\n" in text or "<skipped>" in text:
        text = text.replace("<skipped>", "").replace("-\n", "")
        text = text.replace("&quot;", '"').replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">")
    return [token for piece in text.split() for token in ((piece,) if piece.isalnum() else _mteval(piece))]


def lower_case_mteval(text: str) -> list[str]:
    """Tokenise like mteval-v13a in lower case, as in Hugging Face's sari."""
    return mteval(text.lower())


def treebank(text: str) -> list[str]:
    """Tokenise like NLTKWordTokenizer of NLTK 3.10 (Penn Treebank), in lower case and as one sentence.

    A full stop inside the text stays with its word. The last one is a token. A combining mark beside an apostrophe is
    no part of a word, as in NLTK 3.9. In NLTK 3.10 it is one: its `\\w` is that of the package regex.
    """
    if '"' in text or "''" in text:
        text = _mark_opening_quotes(text)
    ended = text.rstrip().rstrip(CLOSING)
    if not ended.endswith(".") or ended.endswith(".."):
        return _treebank_words(text)
    return [*_treebank_words(f"{ended[:-1]} "), ".", *_treebank_words(text[len(ended) :])]


def _mark_opening_quotes(text: str) -> str:
    """Replace opening quotation marks, which follow a blank or a bracket, by two backquotes."""
    padded = QUOTES.sub(r" \g<0> ", text)
    if padded.startswith('"'):
        padded = f" `` {padded[1:]}"
    return OPENING.sub(r"\1 `` ", padded)


def _treebank_words(text: str) -> list[str]:
    if "' " in text:
        text = QUOTED_CLITIC.sub(r"\1 ' ", text)
    return [
        token
        for piece in text.split()
        for token in ((piece.lower(),) if piece.isalnum() and piece.lower() not in CONTRACTIONS else _treebank(piece))
    ]


Rules = tuple[tuple[re.Pattern[str], str], ...]  # what is looked for, and what takes its place


def _rules(*rules: tuple[str, str]) -> Rules:
    return tuple((re.compile(pattern), replacement) for pattern, replacement in rules)


def _apply_rules(piece: str, rules: Rules) -> str:
    """Apply each rule to a piece between blanks."""
    padded = f" {piece} "
    for pattern, replacement in rules:
        padded = pattern.sub(replacement, padded)
    return padded


MTEVAL = _rules(
    (r"[!-&(-+/:-@\[-`{-~]", r" \g<0> "),  # ASCII's symbols but the four below
    (r"([^0-9])([.,])", r"\1 \2 "),
    (r"([.,])([^0-9])", r" \1 \2"),
    (r"([0-9])(-)", r"\1 \2 "),
)


@memoize
def _mteval(piece: str) -> list[str]:
    return _apply_rules(piece, MTEVAL).split()


CONTRACTIONS = frozenset({"cannot", "gimme", "gonna", "gotta", "lemme", "wanna"})
CLOSING = " ])}>\"'»”\u2019"  # what may stand between the last full stop and the end
QUOTES = re.compile("``|[`«“\u2018„]")
OPENING = re.compile(r"([ (\[{<])(?:\"|'')")
QUOTED_CLITIC = re.compile(r"('[sSmMdD])' ")  # at the end of a line it stays with its word
TREEBANK = _rules(
    (QUOTES.pattern, r" \g<0> "),
    (r"(?<!\w)'(?!(?i:re|ve|ll|m|t|s|d|n)\b)(?=\w)", "' "),
    (r"([:,])(\D)", r" \1 \2"),
    (r"\.{2,}|[;@#$%&?!\u2012-\u2015]", r" \g<0> "),
    (r"([^'])' (?!$)", r"\1 ' "),
    (r"--|[*\]\[(){}<>»”\u2019]", r" \g<0> "),
    (r"''|\"", " '' "),
    (r"\s+", " "),
    (r"([^' ])('[sSmMdD]?) ", r"\1 \2 "),
    (r"([^' ])('ll|'LL|'re|'RE|'ve|'VE|n't|N'T) ", r"\1 \2 "),
    (
        r"(?i)\b(can|d|gim|gon|got|lem|more|wan)"
        r"(?:((?<=can)not|(?<=d)'ye|(?<=m)me|(?<=gon)na|(?<=t)ta|(?<=e)'n)\b|((?<=wan)na)(?=\s))",
        r" \1 \2\3 ",
    ),
    (r"(?i) ('t)(is|was)\b", r" \1 \2 "),
)


@memoize
def _treebank(piece: str) -> list[str]:
    return _apply_rules(piece, TREEBANK).lower().split()
