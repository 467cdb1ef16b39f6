"""Texts that the reference implementations of text comparison were run on; their values stand in the tests."""

from typing import NamedTuple


class Pair(NamedTuple):
    """A source text, what was made of it, and what should have been made of it."""

    answer: str
    reference: str
    source: str = ""


PAIRS = {
    "paraphrase": Pair(
        "The cat sat on the mat.",
        "The cat is sitting on the mat.",
        "The cat is currently sitting on top of the old mat.",
    ),
    "identical": Pair(
        "Paris is the capital of France.",
        "Paris is the capital of France.",
        "Paris has been the capital city of France since 987.",
    ),
    "disjoint": Pair(
        "Completely unrelated words here today.",
        "Paris is the capital of France.",
        "Paris has been the capital city of France since 987.",
    ),
    "short": Pair(
        "15,969 million",
        "Brazil revenue was 15,969 million.",
        "Brazil reported that revenue was 15,969 million reais in 2023.",
    ),
    "sentences": Pair(
        "The model runs runs runs fast.\nIt costs $5.00 per hour.",
        "The models run fast.\nIt costs $5 per hour on 2 CPUs.",
        "The model, which runs very fast, costs $5.00 per hour, e.g. on weekdays. It runs on 2 CPUs.",
    ),
    "unicode": Pair("Über café naïve résumé", "Uber cafe naive resume"),
    "cjk": Pair("東京は日本の首都です", "東京は日本の首都です"),
    "empty": Pair("", "Paris is the capital of France."),
    "word": Pair("Yes", "Yes"),
    "case": Pair("the Eiffel Tower!", "Eiffel tower"),
}
