"""Classification against scikit-learn: the golden values, and windows of random records."""

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from ragtide.evaluators.checks import check_evaluator
from ragtide.evaluators.classification.labels import MOST_LABELS
from ragtide.evaluators.classification.score_bins import BINS, roc_auc, score_bin
from ragtide.evaluators.combining import combine_parts
from ragtide.evaluators.outcome import NotApplicable, Scored
from ragtide.evaluators.parts import ClassValue, Combined, hidden_label
from ragtide.evaluators.registry import load
from ragtide.evaluators.trace import Labels, Trace
from tests.evaluators.builtin.scoring import outcome, outcomes, scored, trace

ID = "classification"
# Computed by scikit-learn 1.9.1 and valor-lite 0.39.0.
TRUE = ["cat", "dog", "dog", "bird", "cat", "dog", "bird", "fish"]
PREDICTED = ["cat", "dog", "cat", "bird", "cat", "bird", "bird", "dog"]
TIES = [(1, 0.5), (0, 0.5), (1, 0.5), (0, 0.1)]
RANKED = list(zip([1, 0, 1, 1, 0, 0, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.55, 0.4, 0.3, 0.2], strict=True))
SCORED: list[tuple[str, dict[str, float]]] = [
    ("cat", {"cat": 0.91, "dog": 0.09}),
    ("dog", {"cat": 0.55, "dog": 0.45}),
    ("dog", {"cat": 0.2, "dog": 0.8}),
    ("bird", {"cat": 0.3, "dog": 0.65, "bird": 0.05}),
]


def labelled(records: Iterable[Labels]) -> list[Trace]:
    return [trace(labels=record) for record in records]


def summed(outcomes: Sequence[object]) -> dict[str, float]:
    total: dict[str, float] = {}
    for one in outcomes:
        assert isinstance(one, Scored), one
        for key, count in one.parts.items():
            total[key] = total.get(key, 0.0) + count
    return total


def window(traces: Sequence[Trace], params: Mapping[str, Any] | None = None) -> Combined:
    """The metrics of a window of these traces, as the roll-up makes them."""
    return combine_parts(load()[ID], summed(outcomes(ID, traces, params)))


def single(pairs: Iterable[tuple[str, str]], **params: Any) -> Combined:
    return window(labelled(Labels(expected, predicted) for expected, predicted in pairs), params)


def test_multi_class_is_scikit_learns() -> None:
    made = single(zip(TRUE, PREDICTED, strict=True))
    assert made.metrics == pytest.approx(
        {
            "accuracy": 0.625,
            "micro_precision": 0.625,
            "micro_recall": 0.625,
            "micro_f1": 0.625,
            "macro_precision": 0.4583333333333333,
            "macro_recall": 0.5833333333333334,
            "macro_f1": 0.5,
            "precision": 0.4583333333333333,
            "recall": 0.5833333333333334,
            "f1": 0.5,
        }
    )
    names = ("bird", "cat", "dog", "fish")
    rates = {key: [made.per[f"class_{key}"].get((name,)) for name in names] for key in ("precision", "recall", "f1")}
    assert [one and one.value for one in rates["recall"]] == pytest.approx([1.0, 1.0, 1 / 3, 0.0])
    assert [one and one.value for one in rates["f1"]] == pytest.approx([0.8, 0.8, 0.4, 0.0])
    # Nothing was predicted to be a fish: scikit-learn warns and says 0, which nobody measured.
    assert rates["precision"][-1] is None
    assert [one.value for one in rates["precision"][:-1] if one] == pytest.approx([2 / 3, 2 / 3, 0.5])
    assert [one and one.records for one in rates["recall"]] == [2, 2, 3, 1]


def test_multi_label_is_scikit_learns() -> None:
    true, predicted = (["ac", "bc", "ab", ""], ["a", "bc", "ac", "c"])
    made = window(labelled(Labels(tuple(one), tuple(other)) for one, other in zip(true, predicted, strict=True)))
    assert [made.metrics[f"micro_{key}"] for key in ("precision", "recall", "f1")] == pytest.approx([2 / 3] * 3)
    macro = [made.metrics[f"macro_{key}"] for key in ("precision", "recall", "f1")]
    assert macro == pytest.approx([0.7777777777777778, 0.6666666666666666, 0.6888888888888888])
    assert made.metrics["accuracy"] == 0.25  # of the sets as a whole


@pytest.mark.parametrize(("records", "area"), [(RANKED, 0.6875), (TIES, 0.75)])
def test_roc_auc_is_by_rank_and_a_tie_is_half(records: Sequence[tuple[int, float]], area: float) -> None:
    given_ = [Labels("yes" if true else "no", scores={"yes": score, "no": 1 - score}) for true, score in records]
    assert window(labelled(given_)).metrics["roc_auc"] == pytest.approx(area)


def test_roc_auc_of_several_classes_is_the_mean_of_each_against_the_rest() -> None:
    """scikit-learn's areas of bird, cat and dog: no other record has a score for the bird, which is 0 there."""
    made = window(labelled(Labels(label, scores=scores) for label, scores in SCORED))
    assert made.metrics["roc_auc"] == pytest.approx((1.0 + 1.0 + 0.75) / 3)
    assert made.metrics["accuracy"] == 0.5  # the highest score is the prediction: cat, cat, dog, dog


def test_a_record_without_a_score_of_a_class_has_0_there() -> None:
    """Where only the predicted class has a score. Of pairs won, a: 4 of 6, b: 5 of 6, c: 2 of 4."""
    given_ = [("a", "a", 0.9), ("a", "b", 0.6), ("b", "b", 0.8), ("b", "b", 0.4), ("c", "a", 0.5)]
    made = [Labels(true, scores={predicted: score}) for true, predicted, score in given_]
    made.append(Labels("b", "a"))  # no scores: not in it
    assert window(labelled(made)).metrics["roc_auc"] == pytest.approx((4 / 6 + 5 / 6 + 2 / 4) / 3)


def test_a_recorded_prediction_stands_against_the_highest_score() -> None:
    scores = {"a": 0.9, "b": 0.1}
    assert scored(ID, labels=Labels("b", "b", scores)).metrics == {"accuracy": 1.0}
    assert scored(ID, labels=Labels("b", scores=scores)).metrics == {"accuracy": 0.0}
    assert scored(ID, labels=Labels(("b",), ("b",), scores)).metrics == {"accuracy": 1.0}


labels = st.sampled_from(["cat", "dog", "bird", "Fish and chips", "naïve"])


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(labels, labels), min_size=1, max_size=30))
def test_any_window_of_single_labels_is_scikit_learns(pairs: list[tuple[str, str]]) -> None:
    from sklearn.metrics import accuracy_score, precision_recall_fscore_support

    true, predicted = zip(*pairs, strict=True)
    made = single(pairs).metrics
    assert made["accuracy"] == pytest.approx(accuracy_score(true, predicted))
    for average in ("micro", "macro"):
        theirs = precision_recall_fscore_support(true, predicted, average=average, zero_division=0)[:3]
        assert [made[f"{average}_{key}"] for key in ("precision", "recall", "f1")] == pytest.approx(list(theirs))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.sets(labels), st.sets(labels)), min_size=1, max_size=20))
def test_any_window_of_several_labels_is_scikit_learns(pairs: list[tuple[set[str], set[str]]]) -> None:
    from sklearn.metrics import accuracy_score, precision_recall_fscore_support
    from sklearn.preprocessing import MultiLabelBinarizer

    names = sorted(set().union(*(one | other for one, other in pairs)))
    assume(len(names) > 1)  # scikit-learn takes one column for a binary problem
    made = window(labelled(Labels(tuple(one), tuple(other)) for one, other in pairs)).metrics
    true, predicted = (MultiLabelBinarizer(classes=names).fit_transform(side) for side in zip(*pairs, strict=True))
    assert made["accuracy"] == pytest.approx(accuracy_score(true, predicted))
    for average in ("micro", "macro"):
        theirs = precision_recall_fscore_support(true, predicted, average=average, zero_division=0)[:3]
        ours = [made.get(f"{average}_{key}", 0.0) for key in ("precision", "recall", "f1")]
        assert ours == pytest.approx(list(theirs))


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30), st.sampled_from(["yes", "True", "1"])
)
def test_any_binary_window_is_scikit_learns_for_the_positive_class(pairs: list[tuple[bool, bool]], word: str) -> None:
    from sklearn.metrics import precision_recall_fscore_support

    names = {True: word, False: {"yes": "no", "True": "False", "1": "0"}[word]}
    made = single((names[one], names[other]) for one, other in pairs).metrics
    theirs = precision_recall_fscore_support(*zip(*pairs, strict=True), average="binary", zero_division=math.nan)[:3]
    expected = {key: value for key, value in zip(("precision", "recall", "f1"), theirs, strict=True) if value == value}
    assert {key: made[key] for key in ("precision", "recall", "f1") if key in made} == pytest.approx(expected)


hundredths = st.integers(0, 100).map(lambda n: n / 100)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(st.booleans(), hundredths | st.floats(0, 1)), min_size=2, max_size=60))
def test_roc_auc_differs_by_half_the_share_of_pairs_in_one_bin_at_most(records: list[tuple[bool, float]]) -> None:
    from sklearn.metrics import roc_auc_score

    true, scores = zip(*records, strict=True)
    sides = [[score_bin(score) for was, score in records if was is side] for side in (True, False)]
    bins = [{index: float(side.count(index)) for index in side} for side in sides]
    ours = roc_auc(*bins)
    if len(set(true)) < 2:
        assert ours is None
        return
    exact = roc_auc_score(true, scores)
    in_one_bin = sum(count * bins[1].get(index, 0) for index, count in bins[0].items()) / (
        len(sides[0]) * len(sides[1])
    )
    assert ours is not None
    assert abs(ours - exact) <= in_one_bin / 2 + 1e-12
    if all(score * BINS == round(score * BINS) for score in scores):
        assert ours == pytest.approx(exact)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 2), st.tuples(hundredths, hundredths, hundredths)), min_size=6, max_size=30))
def test_roc_auc_of_three_classes_is_scikit_learns(records: list[tuple[int, tuple[float, ...]]]) -> None:
    from sklearn.metrics import roc_auc_score

    assume({true for true, _ in records} == {0, 1, 2})
    names = "abc"
    made = window(labelled(Labels(names[true], scores=dict(zip(names, s, strict=True))) for true, s in records))
    areas = [roc_auc_score([true == i for true, _ in records], [s[i] for _, s in records]) for i in range(3)]
    assert made.metrics["roc_auc"] == pytest.approx(sum(areas) / 3)


top_scores = st.dictionaries(st.sampled_from("abcd"), hundredths, max_size=3)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(st.sets(st.sampled_from("abcd"), min_size=1), top_scores), min_size=2, max_size=30))
def test_roc_auc_of_the_highest_scores_is_scikit_learns_with_0_for_the_others(
    records: list[tuple[set[str], dict[str, float]]],
) -> None:
    from sklearn.metrics import roc_auc_score

    single_label = all(len(true) == 1 for true, _ in records)
    given_ = [
        Labels(min(true) if single_label else tuple(true), None if scores else "a", scores or None)
        for true, scores in records
    ]
    ranked = [(true, scores) for true, scores in records if scores]
    areas = [
        roc_auc_score([name in true for true, _ in ranked], [scores.get(name, 0.0) for _, scores in ranked])
        for name in "abcd"
        if len({name in true for true, _ in ranked}) == 2
    ]
    expected = pytest.approx(sum(areas) / len(areas)) if areas else None
    assert window(labelled(given_)).metrics.get("roc_auc") == expected


@given(hundredths | st.floats(0, 1))
def test_a_bin_holds_what_lies_between_its_edges(score: float) -> None:
    index = score_bin(score)
    assert index / BINS <= score < (index + 1) / BINS
    assert score_bin(index / BINS) == index


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(labels, labels), min_size=1, max_size=30), st.data())
def test_minutes_summed_are_one_computation_over_all(pairs: list[tuple[str, str]], data: st.DataObject) -> None:
    given_ = outcomes(ID, labelled(Labels(one, other, {one: 0.3, other: 0.71}) for one, other in pairs))
    at = data.draw(st.integers(0, len(given_)))
    halves: dict[str, float] = summed(given_[at:])
    for key, count in summed(given_[:at]).items():
        halves[key] = halves.get(key, 0.0) + count
    assert halves == summed(given_)


def test_the_positive_class_is_the_one_that_settings_name() -> None:
    pairs = [("spam", "spam"), ("spam", "ham"), ("ham", "spam"), ("ham", "ham"), ("ham", "ham")]
    assert single(pairs).metrics["recall"] == pytest.approx((1 / 2 + 2 / 3) / 2)  # macro: nobody knows which
    made = single(pairs, positive="Spam").metrics
    assert (made["precision"], made["recall"]) == (0.5, 0.5)
    assert made["macro_recall"] == pytest.approx((1 / 2 + 2 / 3) / 2)
    never = single([("ham", "ham")], positive="spam").metrics
    assert {"precision", "recall", "f1", "roc_auc"} & never.keys() == set()


def test_nothing_expected_and_nothing_predicted_is_right() -> None:
    assert window(labelled([Labels((), ())])).metrics == {"accuracy": 1.0}


def test_without_a_prediction_a_class_is_missed_and_no_other_is_blamed() -> None:
    one = scored(ID, labels=Labels("dog", ""))
    assert (one.metrics, one.categories) == ({"accuracy": 0.0}, {"outcome": "no_prediction"})
    assert one.parts == {"records": 1.0, "truth\tdog": 1.0, "lost\tdog": 1.0}
    made = single([("dog", ""), ("dog", "dog")]).metrics
    assert (made["micro_precision"], made["micro_recall"]) == (1.0, 0.5)


def test_what_a_record_adds() -> None:
    one = scored(ID, labels=Labels("dog", scores={"cat": 0.55, "dog": 0.45}))
    assert one.categories == {"outcome": "misclassification"}
    assert one.parts == dict.fromkeys(
        [
            "records",
            "truth\tdog",
            "guess\tcat",
            "confusion\tdog\tcat",
            "scored",
            "pos.45\tdog",
            "top.55\tdog",
            "neg.55\tcat",
        ],
        1.0,
    )
    many = scored(ID, labels=Labels(("a", "b"), scores={"a": 0.5, "b": 0.49, "c": 1.0}))
    assert {key for key in many.parts if key.startswith("guess")} == {"guess\ta", "guess\tc"}


def test_answers_are_labels_where_settings_or_the_task_say_so() -> None:
    def answered(answer: str, *expected: str, task: str = "classification") -> Any:
        return outcome(ID, answer=answer, expected=expected, task=task)

    assert answered("Dog.", "dog").metrics == {"accuracy": 1.0}
    assert answered(" **CAT** ", "dog", "cat").parts["truth\tcat"] == 1.0
    assert answered("Dog.", "dog", task="question_answering") == NotApplicable("missing_labels")
    wrong = answered("my secret is 12", "dog")
    assert wrong.metrics == {"accuracy": 0.0}
    assert "secret" not in repr(wrong)
    by_setting = outcome(ID, {"labels_from": "answer"}, answer="cat", expected=("cat",), labels=Labels("a", "b"))
    assert isinstance(by_setting, Scored)
    assert by_setting.metrics == {"accuracy": 1.0}
    assert answered("dog") == NotApplicable("empty_expected")
    assert outcome(ID, {"labels_from": "labels"}, answer="dog", task="classification") == NotApplicable(
        "missing_labels"
    )


def test_a_wrong_answer_is_known_again_where_it_is_another_records_class() -> None:
    records = [("cat", "cat"), ("dog", "cat"), ("dog", "what a dog"), ("cat", "cat")]  # expected, answer
    made = window([trace(answer=answer, expected=(true,)) for true, answer in records], {"labels_from": "answer"})
    assert made.per["class_precision"]["cat",] == ClassValue(2 / 3, 3)
    assert made.per["class_recall"] == {("cat",): (1.0, 2), ("dog",): (0.0, 2)}
    assert made.metrics["micro_precision"] == 0.5


@pytest.mark.parametrize("private", ["alice@example.com", "+41 44 668 18 00", "AKIA4YFAKEKEYXKZQ7PT"])
def test_an_expected_class_that_is_personal_data_or_a_secret_is_kept_as_a_hash(private: str) -> None:
    hidden = hidden_label(private.casefold())
    for answer, right in ((f" {private}.", 1.0), ("dog", 0.0)):
        given = scored(ID, answer=answer, expected=("", private), task="classification")
        assert given.metrics == {"accuracy": right}
        assert given.parts[f"truth\t{hidden}"] == 1.0
        assert private.casefold() not in repr(given).casefold()
    records = [(private, private), ("dog", private), (private, "dog"), ("dog", "dog")]  # expected, answer
    made = window([trace(answer=answer, expected=(true,)) for true, answer in records], {"labels_from": "answer"})
    assert made.per["class_precision"] == {(hidden,): (0.5, 2), ("dog",): (0.5, 2)}
    assert made.per["class_recall"] == {(hidden,): (0.5, 2), ("dog",): (0.5, 2)}


@pytest.mark.parametrize("label", ["dog", "billing & refunds", "no", "42", "2026-11-22", "level 3", "api_key", "email"])
def test_ordinary_classes_are_kept_as_they_are(label: str) -> None:
    assert scored(ID, answer=label, expected=(label,), task="classification").parts[f"truth\t{label}"] == 1.0


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        (Labels(predicted="a"), "missing_expected"),
        (Labels("a"), "missing_predicted"),
        (Labels("a", scores={}), "missing_predicted"),
        (Labels(" \n", "a"), "empty_expected"),
        (Labels("a", scores={"a": math.nan}), "scores_not_finite"),
        (Labels("a", scores={"a": math.inf, "b": 0.0}), "scores_not_finite"),
        (Labels(tuple(map(str, range(MOST_LABELS + 1))), ()), "too_many_labels"),
        (Labels("a", "b", dict.fromkeys(map(str, range(MOST_LABELS + 1)), 0.5)), "too_many_labels"),
    ],
)
def test_what_cannot_be_told_is_no_number(labels: Labels, reason: str) -> None:
    assert outcome(ID, labels=labels) == NotApplicable(reason)


def test_scores_that_are_no_shares_still_say_which_is_highest() -> None:
    one = scored(ID, labels=Labels("a", scores={"a": 3.2, "b": -1.0}))
    assert one.metrics == {"accuracy": 1.0}
    assert [finding.kind for finding in one.findings] == ["scores_not_shares"]
    assert not any(key.startswith(("scored", "pos", "top")) for key in one.parts)


@pytest.mark.parametrize(
    "thresholds",
    [
        (0.0, 0.9, 0.1),
        (0.5, 0.4, 0.1),
        (0.1, 1.1, 0.1),
        (0.1, 0.9, 0.0),
        (0.125, 0.9, 0.1),
        (0.1, 0.9, 1e-12),
        (0.1, 0.9, 1e308),
        (0.1, 0.9, math.inf),
        (0.1, math.inf, 0.1),
        (-math.inf, 0.9, 0.1),
        (math.nan, 0.9, 0.1),
    ],
)
def test_thresholds_must_be_hundredths_in_order(thresholds: tuple[float, ...]) -> None:
    with pytest.raises(ValidationError, match="curve_thresholds must be"):
        load()[ID].params.model_validate({"curve_thresholds": thresholds})


def test_it_keeps_the_contract() -> None:
    nasty = ["", "a\tb", "x" * 200, "\ud800", "__other__", "#" * 17, "\u202eabc"]
    records = [Labels(one, other, {one: 0.2, other: 0.9}) for one in nasty for other in nasty]
    records += [Labels(tuple(nasty), ("a", "b")), Labels((), ()), Labels("yes", "no"), Labels("yes", "yes")]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_evaluator(load()[ID], labelled(records))
