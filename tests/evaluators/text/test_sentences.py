"""The one splitter: by hand, and its promises for any text."""

import pytest
import sentencex
from hypothesis import given
from hypothesis import strategies as st

from ragtide.evaluators.text.sentences import _NEVER_SPLITS, PIECE, split

texts = st.text(st.characters(), max_size=200) | st.text(alphabet="aB1 .!?\n\r\t\"'()|-*\u3002\ud800\x00", max_size=40)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("", []),
        (" \n\n ", []),
        ("...", []),
        ("42", []),
        ("One sentence", ["One sentence"]),
        ("  Padded.  ", ["Padded."]),
        ("First one. Second one! Third one?", ["First one.", "Second one!", "Third one?"]),
        ("Dr. Smith came, e.g. Mr. Jones left.", ["Dr. Smith came, e.g. Mr. Jones left."]),
        ("Steps:\n\n1. Turn it on. 2. Wait.", ["Steps:", "1. Turn it on.", "2. Wait."]),
        ("3. \nItem three", ["3. \nItem three"]),
        ("| 2. A cell?", ["| 2. A cell?"]),
        ("Above.\n\n---\n\nBelow.", ["Above.", "Below."]),
        ("Ends with a number. 7.", ["Ends with a number."]),
        ("- one\n- two", ["- one", "- two"]),
        ("\u6f22\u5b57\u3002\u6b21\u306e\u6587\u3002", ["\u6f22\u5b57\u3002", "\u6b21\u306e\u6587\u3002"]),
        ("Lone \ud800 one. Next.", ["Lone \ufffd one.", "Next."]),
    ],
)
def test_by_hand(text: str, sentences: list[str]) -> None:
    assert [sentence.text for sentence in split(text)] == sentences


@given(texts)
def test_sentences_are_places_in_the_text_in_order_each_with_a_letter(text: str) -> None:
    end = 0
    for sentence in split(text):
        here = text[sentence.start : sentence.end]
        assert sentence.text == "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in here)
        assert sentence.text == sentence.text.strip()
        assert any(c.isalpha() for c in sentence.text)
        assert end <= sentence.start < sentence.end
        end = sentence.end


@given(texts)
def test_no_letter_is_lost(text: str) -> None:
    kept = {i for sentence in split(text) for i in range(sentence.start, sentence.end)}
    assert all(i in kept for i, c in enumerate(text) if c.isalpha())


@given(st.text(alphabet=st.characters(max_codepoint=127, blacklist_characters="")))
def test_the_short_cut_takes_only_what_would_not_be_split(text: str) -> None:
    if _NEVER_SPLITS.match(text):
        assert len(sentencex.segment("en", text)) <= 1


@pytest.mark.parametrize("blank", ["\u00a0", "\u3000", "\u2028", " \u00a0", "\u00a0\u00a0"])
def test_a_blank_between_a_capital_and_a_full_stop_makes_the_splitter_panic_no_more(blank: str) -> None:
    text = f"This is plan B{blank}. There is no other."
    assert [text[each.start : each.end] for each in split(text)] == [each.text for each in split(text)]
    assert "".join(each.text for each in split(text)).endswith("There is no other.")


@given(st.lists(st.sampled_from([40, 300, 1_000, 3_500]), min_size=1, max_size=12))
def test_a_text_of_several_pieces_has_the_same_sentences(lengths: list[int]) -> None:
    sentences = ["It goes on " + "and on " * (length // 7) + "until it ends." for length in lengths]
    assert [sentence.text for sentence in split(" ".join(sentences))] == sentences


def test_a_sentence_longer_than_a_piece_stays_whole() -> None:
    long = "It goes on " + "and on " * PIECE + "until it ends."
    assert [sentence.text for sentence in split(f"First. {long} Last.")] == ["First.", long, "Last."]


@pytest.mark.parametrize(
    "hostile", ["\u201ca. " * 100_000, '"(' * 10_000, "." * 100_000, "1. " * 30_000, "\n" * 100_000, "a. " * 30_000]
)
def test_hostile_texts_end(hostile: str) -> None:
    assert len(split(hostile)) <= len(hostile)
