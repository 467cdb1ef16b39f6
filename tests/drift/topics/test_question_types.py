"""What kind of question it is, by hand, in four languages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtide.drift.insights.failing_sample import TYPES, question_type

ASKED = {
    "who": [
        "Who wrote it?",
        "whose is this",
        "Wer hat das gebaut?",
        "Qui est là ?",
        "¿Quién lo hizo?",
        "To whom is it?",
    ],
    "what": [
        "What does json.dumps return?",
        "which of them",
        "Was ist ein Lock?",
        "Welche Farbe hat es?",
        "Quel est le prix ?",
        "Qu'est-ce que c'est ?",
        "¿Qué es esto?",
        "In what year did it begin?",
        "Mit welchem Modul geht das?",
    ],
    "when": ["When is it due?", "Seit wann gilt das?", "Quand arrive-t-il ?", "¿Cuándo llega?"],
    "where": ["Where is my order?", "Wo liegt es?", "Où est la gare ?", "¿Dónde está?"],
    "how": ["How do I pay?", "Wie zahle ich?", "Comment payer ?", "¿Cómo pago?", "Hi, how does it work?"],
    "how_many": [
        "How many are there?",
        "How much is it?",
        "Wie viele gibt es?",
        "Combien ça coûte ?",
        "¿Cuánto cuesta?",
    ],
    "why": [
        "Why not?",
        "How come it fails?",
        "Warum geht das nicht?",
        "Pourquoi ?",
        "¿Por qué falla?",
        "Por favor, ¿por qué?",
    ],
    "yes_no": [
        "Is it safe?",
        "Can I return it?",
        "Was it sent?",
        "Kann ich zahlen?",
        "Est-ce que ça marche ?",
        "¿Hay descuentos?",
    ],
    "command": [
        "Explain locks.",
        "Please list all.",
        "Can you explain this?",
        "Erkläre mir das",
        "Explique-moi",
        "Dime más",
    ],
    "other": ["", "   ", "42", "printer broken", "Password reset", "退款"],
}


@pytest.mark.parametrize(("kind", "question"), [(kind, text) for kind, texts in ASKED.items() for text in texts])
def test_by_hand(kind: str, question: str) -> None:
    assert question_type(question) == kind


@given(st.text())
def test_any_text_has_a_type(text: str) -> None:
    assert question_type(text) in TYPES


def test_long_texts_cost_what_their_head_costs() -> None:
    assert question_type("why " + "x" * 5_000_000) == "why"
