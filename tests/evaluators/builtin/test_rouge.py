import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragtide.evaluators.builtin.rouge import ALL, OVERLAPS, read, read_stems
from ragtide.evaluators.outcome import NotApplicable
from ragtide.evaluators.text.subsequence import lcs_length, lcs_positions
from tests.evaluators.builtin.scoring import outcome, scored

ORACLE = {"rouge_1": "rouge1", "rouge_2": "rouge2", "rouge_l": "rougeL", "rouge_lsum": "rougeLsum"}
EXACT = 1e-12

PAIRS = [  # answer, reference
    ("The cat sat on the mat.", "The cat is sitting on the mat."),
    ("Paris is the capital of France.", "Paris is the capital of France."),
    ("Completely unrelated words here today.", "Paris is the capital of France."),
    ("15,969 million", "Brazil revenue was 15,969 million."),
    (
        "The model runs runs runs fast.\nIt costs $5.00 per hour.",
        "The models run fast.\nIt costs $5 per hour on 2 CPUs.",
    ),
    ("Über café naïve résumé", "Uber cafe naive resume"),
    ("", "Paris is the capital of France."),
    ("Yes", "Yes"),
    ("the Eiffel Tower!", "Eiffel tower"),
    ("The cat sat on the mat.\nThe dog barked loudly.", "The dog barked loudly.\nThe cat sat on the mat."),
    ("a b c d\na b c d", "a b\nc d"),
    ("The runner was running quickly past flies", "Runners run quick past a fly"),
    ("police killed the gunman\nthe end", "the gunman killed police\nend of story"),
]


def check_against_the_oracle(answer: str, reference: str, use_stemmer: bool) -> None:
    from rouge_score.rouge_scorer import RougeScorer

    theirs = RougeScorer(list(ORACLE.values()), use_stemmer=use_stemmer).score(reference, answer)
    made = read_stems if use_stemmer else read
    one, other = made(answer), made(reference)
    for key in ALL:
        ours, expected = OVERLAPS[key](one, other), theirs[ORACLE[key]]
        assert ours.precision == pytest.approx(expected.precision, abs=EXACT), key
        assert ours.recall == pytest.approx(expected.recall, abs=EXACT), key
        assert ours.f1 == pytest.approx(expected.fmeasure, abs=EXACT), key


@pytest.mark.parametrize("use_stemmer", [False, True])
@pytest.mark.parametrize(("answer", "reference"), PAIRS)
def test_equals_rouge_score(answer: str, reference: str, use_stemmer: bool) -> None:
    check_against_the_oracle(answer, reference, use_stemmer)


WORDS = st.lists(st.sampled_from(["a", "b", "c", "running", "runs", "flies", "x1", "Été", ".", "\n"]), max_size=30)


@settings(deadline=None)
@given(WORDS, WORDS, st.booleans())
def test_equals_rouge_score_on_anything(answer: list[str], reference: list[str], use_stemmer: bool) -> None:
    check_against_the_oracle(" ".join(answer), " ".join(reference), use_stemmer)


@given(st.text("abc", max_size=40), st.text("abc", max_size=40))
def test_positions_are_a_longest_common_subsequence(reference: str, candidate: str) -> None:
    positions = lcs_positions(list(reference), list(candidate))
    assert positions == sorted(set(positions))
    assert len(positions) == lcs_length(list(reference), list(candidate))
    rest = iter(candidate)
    assert all(reference[position] in rest for position in positions)


def test_hand_worked() -> None:
    # 6 and 7 words; they share the (twice), cat, on, mat.
    given = scored("rouge", answer="The cat sat on the mat.", expected=("The cat is sitting on the mat.",))
    assert given.metrics["rouge_1"] == pytest.approx(2 * (5 / 6) * (5 / 7) / (5 / 6 + 5 / 7))
    # Pairs: the-cat, on-the, the-mat of 5 and of 6.
    assert given.metrics["rouge_2"] == pytest.approx(2 * (3 / 5) * (3 / 6) / (3 / 5 + 3 / 6))
    assert given.parts["rouge_l_precision"] == pytest.approx(5 / 6)
    assert given.parts["rouge_l_recall"] == pytest.approx(5 / 7)


def test_the_best_reference_counts_for_each_score() -> None:
    given = scored(
        "rouge",
        answer="The cat sat on the mat.\nThe dog barked loudly.",
        expected=("the gunman killed police\nend of story", "The dog barked loudly.\nThe cat sat on the mat."),
    )
    assert given.metrics["rouge_1"] == 1.0
    assert given.metrics["rouge_l"] == pytest.approx(0.6)
    assert given.metrics["rouge_lsum"] == 1.0


def test_only_the_configured_scores_are_given() -> None:
    given = scored("rouge", {"rouge_types": ["rouge_l"]}, answer="a b", expected=("a c",))
    assert given.metrics == {"rouge_l": 0.5}


def test_stems_meet_where_configured() -> None:
    answer, expected = "He was running quick", ("he runs quickly",)
    plain = scored("rouge", answer=answer, expected=expected).metrics["rouge_1"]
    stemmed = scored("rouge", {"use_stemmer": True}, answer=answer, expected=expected).metrics["rouge_1"]
    assert plain == pytest.approx(2 / 7)  # "he": 1 of 4 and 1 of 3
    assert stemmed == pytest.approx(4 / 7)  # and "run"; "quickly" has the stem "quickli"


def test_an_empty_answer_shares_nothing() -> None:
    assert set(scored("rouge", answer="", expected=("Paris.",)).metrics.values()) == {0.0}


@pytest.mark.parametrize(
    ("expected", "reason"), [((), "empty_expected"), (("東京は日本の首都です",), "reference_without_words")]
)
def test_a_reference_that_cannot_be_compared_is_not_a_zero(expected: tuple[str, ...], reason: str) -> None:
    assert outcome("rouge", answer="東京は日本の首都です", expected=expected) == NotApplicable(reason)


def test_a_reference_in_another_script_beside_one_in_latin_is_left_out() -> None:
    assert scored("rouge", answer="Tokyo", expected=("東京", "Tokyo")).metrics["rouge_1"] == 1.0


@pytest.mark.parametrize("use_stemmer", [False, True])
@pytest.mark.parametrize(
    ("answer", "expected", "reason"),
    [
        ("订单于2024年发货", "退款在2024年到账", "reference_without_words"),
        ("Заказ 42 отправлен", "Деньги за заказ 42 вернули", "reference_without_words"),
        ("GPT是2018年发布的语言模型", "GPT于2018年由公司发布", "reference_without_words"),
        ("订单于2024年发货", "2024", "answer_in_other_script"),
    ],
)
def test_digits_in_a_text_of_another_script_give_no_score(
    answer: str, expected: str, reason: str, use_stemmer: bool
) -> None:
    given = outcome("rouge", {"use_stemmer": use_stemmer}, answer=answer, expected=(expected,))
    assert given == NotApplicable(reason)


@pytest.mark.parametrize(
    "text", ["Über café naïve résumé", "Thủ đô của Việt Nam là Hà Nội", "2024", "Die Größe: 42 µm"]
)
def test_texts_with_some_other_letters_are_compared(text: str) -> None:
    assert scored("rouge", answer=text, expected=(text,)).metrics["rouge_1"] == 1.0


def test_what_is_quadratic_has_a_budget() -> None:
    long = "a b c d e f g h " * 2_500
    assert outcome("rouge", answer=long, expected=(long,)) == NotApplicable("too_long")
    lines = "a b\n" * 5_000
    assert outcome("rouge", answer=lines, expected=(lines,)) == NotApplicable("too_long")
    assert scored("rouge", {"rouge_types": ["rouge_1"]}, answer=long, expected=(long,)).metrics == {"rouge_1": 1.0}
