"""Yes or no: by the first word, else by a denial that holds for the whole of the first sentence."""

import pytest

from ragtide.evaluators.claims.stance import stance_of


@pytest.mark.parametrize(
    ("question", "opening", "stance"),
    [
        ("Is it free?", "Yes, it is.", "yes"),
        ("Is it free?", "**No.**", "no"),
        ("Ist es frei?", "Nein", "no"),
        ("What is free?", "No, nothing is.", "no"),
        ("Is it free?", "It is not free.", "no"),
        ("Does it work?", "It doesn\u2019t work offline.", "no"),
        ("Kann ich es nutzen?", "Das ist nicht erlaubt.", "no"),
        ("Can I change it?", "As long as it has not been shipped, you can change it.", ""),
        ("Can I change it?", "You can, unless it is not there.", ""),
        ("Is it free?", "It is free.", ""),
        ("Why is it free?", "It is not free.", ""),
        ("Is it free?", "Nothing is known.", ""),
        ("Is it free?", "", ""),
        ("", "No", "no"),
    ],
)
def test_stance(question: str, opening: str, stance: str) -> None:
    assert stance_of(question, opening) == stance
