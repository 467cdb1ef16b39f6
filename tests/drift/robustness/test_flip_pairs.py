"""Both ways, ties at the line, what cannot be told, and when a rate is surely too high."""

import pytest

from ragtide.drift.robustness.flip_pairs import NO_SCORE, Bounds, Score, flip_outcome
from ragtide.drift.robustness.perturbation_links import technique_label
from ragtide.drift.robustness.repeated_questions import above_limit
from ragtide.drift.stats.proportions import Share, wilson
from ragtide.evaluators.trace import Technique

AT_LEAST, AT_MOST = Bounds(0.75, 1e308), Bounds(-1e308, 2.0)


def score(value: float | None, status: str = "scored", fingerprint: str = "f1", model: str = "m1") -> Score:
    return Score(status, {} if value is None else {"good": value}, fingerprint, model)


@pytest.mark.parametrize(
    ("lines", "original", "perturbed", "found"),
    [
        (AT_LEAST, 0.9, 0.74, "worse"),
        (AT_LEAST, 0.1, 0.9, "better"),
        (AT_LEAST, 0.9, 0.75, "same"),  # equal to the line is good
        (AT_LEAST, 0.75, 0.74, "worse"),
        (AT_LEAST, 0.1, 0.7, "same"),
        (AT_MOST, 1.0, 2.5, "worse"),
        (AT_MOST, 2.5, 1.0, "better"),
        (AT_MOST, 1.0, 2.0, "same"),
    ],
)
def test_a_flip_crosses_the_line_either_way(lines: Bounds, original: float, perturbed: float, found: str) -> None:
    assert flip_outcome(score(perturbed), score(original), "good", lines) == found


@pytest.mark.parametrize(
    ("perturbed", "original", "found"),
    [
        (score(0.1), NO_SCORE, "unknown"),
        (score(0.1), score(None, "not_applicable"), "unknown"),
        (score(None, "failed"), score(None, "failed"), "unknown"),
        (score(0.1), score(0.9, fingerprint="f2"), "unknown"),
        (score(0.1), score(0.9, model="m2"), "unknown"),
        (score(None), score(None), None),  # an optional metric
        (score(None, "not_applicable"), score(None, "not_applicable"), None),
        (score(None, "sampled_out"), NO_SCORE, None),
    ],
)
def test_what_cannot_be_compared_is_no_pair(perturbed: Score, original: Score, found: str | None) -> None:
    assert flip_outcome(perturbed, original, "good", AT_LEAST) == found


def test_a_rate_is_bad_where_its_whole_interval_is() -> None:
    """z² = 3.8415; centre (0.3 + z²/80) / (1 + z²/40) = 0.31752, reach 0.13678."""
    share = Share(12, 40)
    assert wilson(share) == pytest.approx((0.18075, 0.45430), abs=5e-5)
    assert [above_limit(share, limit) for limit in (0.18, 0.19, 0.299, 0.3)] == ["bad", "unclear", "unclear", "good"]


def test_techniques_are_named_in_their_order() -> None:
    some = [Technique("typo", 0.1), Technique("paraphrase", "strong"), Technique("upper\ncase"), Technique("noise", 3)]
    assert technique_label(some) == "typo 0.1 > paraphrase strong > upper case > noise 3"
    assert technique_label([]) == "unnamed"
    assert len(technique_label([Technique("x" * 10_000)] * 50)) == 10 * 60 + 9 * 3
