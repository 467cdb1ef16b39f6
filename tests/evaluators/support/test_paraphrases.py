"""Changed answers are told from faithful paraphrases, in the set of `benchmarks.support`."""

from collections import Counter

from benchmarks.support.__main__ import GOAL_PARAPHRASES, paraphrase_figures
from benchmarks.support.paraphrases import CHANGES, paraphrases
from ragtide.evaluators.builtin.support import support
from ragtide.evaluators.resources import Resources


def test_the_set_is_balanced() -> None:
    counts = Counter(one.change for one in paraphrases())
    assert counts[None] == 200
    assert {change: counts[change] for change in CHANGES} == dict.fromkeys(CHANGES, 50)
    assert {one.language for one in paraphrases()} >= {"en", "de", "es", "fr", "it", "ja", "pt", "ru"}


def test_changed_answers_have_a_lower_score() -> None:
    assert paraphrase_figures(support, Resources()) >= GOAL_PARAPHRASES
