import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtide.evaluators.builtin.looping_detection import MAX_COMPRESSED
from ragtide.evaluators.outcome import NotApplicable
from ragtide.evaluators.text.repeats import SHORT, Repeat, _by_sorting, _by_suffix_array, longest_repeat
from tests.evaluators.builtin.scoring import outcome, scored

# Text, longest repeated substring, how often it occurs without overlap, covered share, bytes of zlib level 9:
# brute force, cross-checked with zlib 1.2.13 (research; zlib-ng differs by some bytes).
REFERENCE = [
    ("banana", "ana", 1, 0.5, 12),
    ("The answer is 42. The answer is 42. The answer is 42. ", "The answer is 42. The answer is 42. ", 1, 2 / 3, 29),
    ("aaaa", "aaa", 1, 0.75, 12),
    ("Ünïcödé Ünïcödé", "Ünïcödé", 2, 14 / 15, 24),
]


@pytest.mark.parametrize(("text", "repeat", "times", "share", "packed"), REFERENCE)
def test_reference_values(text: str, repeat: str, times: int, share: float, packed: int) -> None:
    found = longest_repeat(text)
    assert text[found.start : found.start + found.length] == repeat
    assert found.times == times
    metrics = scored("looping_detection", answer=text).metrics
    assert metrics["longest_repeated_substring"] == pytest.approx(share, abs=1e-12)
    assert metrics["compression_ratio"] == pytest.approx(packed / len(text.encode()), abs=0.2)


def test_nothing_repeats() -> None:
    assert longest_repeat("abc") == longest_repeat("a") == longest_repeat("") == Repeat(0, 0, 0)
    assert scored("looping_detection", answer="abc").metrics["longest_repeated_substring"] == 0.0


def brute_force(text: str) -> tuple[int, int]:
    for length in range(len(text) - 1, 0, -1):
        for start in range(len(text) - length + 1):
            if text.find(text[start : start + length], start + 1) >= 0:
                return start, length
    return 0, 0


@given(st.lists(st.sampled_from(["ab", "a", "stuck. ", "I am looping in circles ", "é", "漢字", "\ud800"]), max_size=8))
def test_both_ways_find_what_brute_force_finds(words: list[str]) -> None:
    text = "".join(words)
    assert _by_sorting(text) == brute_force(text)
    if len(text) > 1:
        assert _by_suffix_array(text) == brute_force(text)


def test_long_texts_take_the_other_way_and_agree() -> None:
    text = "".join(chr(97 + (i * i + i // 7) % 23) for i in range(SHORT + 500))
    assert longest_repeat(text)[:2] == _by_sorting(text)


def test_more_characters_than_a_byte_has() -> None:
    once = "".join(chr(0x4E00 + i) for i in range(3_000))
    assert longest_repeat(once + once) == Repeat(0, 3_000, 2)


def test_unique_sentences_are_counted_from_ten_characters_on() -> None:
    # Three long sentences, two of them the same; "Yes." is too short to count.
    answer = "The door is locked. Yes. The key is lost now. Yes. The door is locked."
    given = scored("looping_detection", answer=answer)
    assert given.metrics["unique_sentences"] == pytest.approx(2 / 3)
    [repeated] = [place for place in given.evidence if place.kind == "repeated_sentence"]
    assert answer[repeated.start : repeated.end] == "The door is locked."
    assert repeated.start > 0
    [longest] = [place for place in given.evidence if place.kind == "longest_repeat"]
    assert answer[longest.start : longest.end] == "The door is locked."


def test_without_a_long_sentence_the_share_is_absent_and_the_rest_is_told() -> None:
    metrics = scored("looping_detection", answer="No. No. No. No.").metrics
    assert "unique_sentences" not in metrics
    # "No. No. No." (11 of 15 characters) occurs twice with overlap, so once without.
    assert metrics["longest_repeated_substring"] == pytest.approx(11 / 15)


@pytest.mark.parametrize("answer", ["", " \n\t"])
def test_an_empty_answer_cannot_loop(answer: str) -> None:
    assert outcome("looping_detection", answer=answer) == NotApplicable("empty_answer")


def test_compression_is_zlib_over_utf8_bytes() -> None:
    answer = "Die Tür ist zu und der Schlüssel ist weg. " * 5
    raw = answer.encode()
    assert scored("looping_detection", answer=answer).metrics["compression_ratio"] == len(zlib.compress(raw, 9)) / len(
        raw
    )


def test_a_loop_is_told_from_prose() -> None:
    loop = scored("looping_detection", answer="Please try to restart the router first. " * 12).metrics
    prose = scored(
        "looping_detection",
        answer="Please restart the router first. If the light stays red, call the hotline. They will send a new one.",
    ).metrics
    assert loop["unique_sentences"] == pytest.approx(1 / 12)
    assert prose["unique_sentences"] == 1.0
    assert loop["longest_repeated_substring"] > 0.75 > prose["longest_repeated_substring"]
    assert loop["compression_ratio"] < prose["compression_ratio"]


def test_a_text_that_would_take_seconds_to_compress_has_no_compression_ratio() -> None:
    assert "compression_ratio" in scored("looping_detection", answer="a" * MAX_COMPRESSED).metrics
    metrics = scored("looping_detection", answer="a" * (MAX_COMPRESSED + 1)).metrics
    assert metrics == {"unique_sentences": 1.0, "longest_repeated_substring": MAX_COMPRESSED / (MAX_COMPRESSED + 1)}
