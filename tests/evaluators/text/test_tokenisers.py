from functools import cache
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ragtide.evaluators.text.tokenisers import lower_case_mteval, mteval, treebank


@cache
def theirs_mteval() -> Any:
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

    return Tokenizer13a()


@cache
def theirs_treebank() -> Any:
    from nltk.tokenize.destructive import NLTKWordTokenizer

    return NLTKWordTokenizer()


@settings(deadline=None, max_examples=200)
@given(st.text(st.sampled_from("ab.,1-2'\"(&;<\n é東")))
@example("1..5 ...5 a.,5 1.,.5 -2--3 &quot;&amp;lt; x-\ny <skip<skipped>ped>")
def test_mteval_is_sacrebleus(text: str) -> None:
    assert mteval(text) == theirs_mteval()(text).split()


@given(st.text())
def test_mteval_is_sacrebleus_in_any_script(text: str) -> None:
    assert lower_case_mteval(text) == theirs_mteval()(text.lower()).split()


WORDS = (
    *("the", "cat", "it's", "dogs'", "don't", "we'll", "they've", "I'm", "'tis", "cannot", "gonna", "wanna,", "d'ye"),
    *(
        "$5.00",
        "15,969",
        "e.g.",
        "etc...",
        "U.S.",
        "a:b",
        "x,y",
        "10:30",
        "end.",
        "(see",
        "below)",
        "[1]",
        "{x}",
        "<b>",
    ),
    *(
        '"quoted"',
        '"open',
        'close"',
        "“curly”",
        "\u2018one\u2019",
        "«two»",
        "`tick`",
        "semi;colon",
        "50%",
        "a&b",
        "#1",
        "me@x.org",
    ),
    *(
        "well--known",
        "5\u20136",
        "why?",
        "stop!",
        "*bold*",
        "-",
        "naïve",
        "東京は",
        "rock'n'roll",
        "more'n",
        "can't.",
        "O'Neil",
    ),
    *('agile."', 'agile".', "'tis.'", "end.''", "''so", "dog's'", "end.)", ")", '"', "```python", "``so''", "`"),
    *('\n"line', "x\n", "\n''y", "DON'T", "Don'T", "CANNOT", "wanna.x", "it\u2019s", ".", "...", "_a_", "**b**"),
)


@settings(deadline=None, max_examples=200)
@given(st.lists(st.sampled_from(WORDS), max_size=12))
def test_treebank_is_nltks(words: list[str]) -> None:
    text = " ".join(words)
    assert treebank(text) == [token.lower() for token in theirs_treebank().tokenize(text)]


# A full stop, marks of any kind and what may stand around them: quotation marks, backquotes, brackets, new lines.
SYMBOLS = "absST .,:'\"`?!()[]{}<>$&-\u2026é1\n*“”«»\u2018\u2019"


@settings(deadline=None, max_examples=400)
@given(st.text(st.sampled_from(SYMBOLS), max_size=20))
@example('It is called "agile."')
@example('He said "the cat sat on the mat".')
@example('The sign reads:\n"No entry" at night')
@example("Run:\n```sh\nmake ``all``\n```")
@example("(It ends. )")
def test_treebank_is_nltks_on_anything(text: str) -> None:
    assert treebank(text) == [token.lower() for token in theirs_treebank().tokenize(text)]


@pytest.mark.parametrize("tokens", [mteval, lower_case_mteval, treebank])
def test_a_blank_text_has_no_tokens(tokens: Any) -> None:
    assert tokens("") == tokens(" \n\u00a0") == []


@pytest.mark.parametrize(
    ("text", "ours", "nltk_3_10"),
    [
        ("e\u0301te\u0301 l'e\u0301te\u0301", ["e\u0301te\u0301", "l'e\u0301te\u0301"], None),
        ("cafe\u0301's", ["cafe\u0301", "'s"], None),
        ("'\u0301a", ["'\u0301a"], ["'", "\u0301a"]),
        ("e\u0301'2", ["e\u0301", "'", "2"], ["e\u0301'2"]),
    ],
)
def test_a_combining_mark_beside_an_apostrophe_is_no_part_of_a_word(
    text: str, ours: list[str], nltk_3_10: list[str] | None
) -> None:
    """NLTK 3.9 compiled its patterns with `re`, as here; 3.10 does with `regex`, whose letters include marks."""
    assert treebank(text) == ours
    assert [token.lower() for token in theirs_treebank().tokenize(text)] == (nltk_3_10 or ours)
