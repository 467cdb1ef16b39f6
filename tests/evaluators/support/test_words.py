"""Words are folded so that inflected forms meet, and the language of a text is told by its function words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtide.evaluators.support.contexts import MOST_WORDS, Places, months_of, segments_of
from ragtide.evaluators.support.words import (
    NEGATION,
    STOP,
    UNKNOWN,
    language_of_words,
    raw_words,
    script_of_words,
    tokens,
)

SENTENCES = {
    "en": "The warehouse was opened by the mayor, and it stores goods for the whole region.",
    "de": "Das Lager wurde von der Bürgermeisterin eröffnet und es dient der ganzen Region.",
    "es": "El almacén fue abierto por la alcaldesa y guarda los productos de toda la región.",
    "fr": "L'entrepôt a été ouvert par la maire et il garde les produits de toute la région.",
    "pt": "O armazém foi aberto pela prefeita e guarda os produtos de toda a região.",
    "it": "Il magazzino è stato aperto dalla sindaca e custodisce i prodotti di tutta la regione.",
    "ru": "Склад был открыт мэром, и он хранит товары для всего региона.",
    "ja": "倉庫は市長によって開かれ、地域全体の商品を保管しています。",
    "zh": "这个仓库由市长开设,为整个地区存放货物。",
    "nl": "Het magazijn werd door de burgemeester geopend en bewaart de goederen van de hele regio.",
    UNKNOWN: "Varaston avasi kaupunginjohtaja, ja siellä säilytetään koko alueen tavaroita nykyisin kai aina.",
}


@pytest.mark.parametrize(("code", "text"), SENTENCES.items())
def test_languages(code: str, text: str) -> None:
    assert language_of_words(raw_words(text)) == code


def test_a_text_beside_decides_between_languages() -> None:
    assert language_of_words(raw_words("la table en bois, la chaise en cuir"), SENTENCES["fr"]) == "fr"


@pytest.mark.parametrize(
    ("code", "forms"),
    [
        ("en", ["study", "studies", "studied", "studying"]),
        ("en", ["house", "houses", "House's"]),
        ("en", ["Friday", "Fridays"]),
        ("en", ["operate", "operates", "operated", "operating"]),
        ("de", ["Werkzeug", "Werkzeuge", "Werkzeugs"]),
        ("fr", ["l'entreprise", "entreprises", "Entreprise"]),
        ("es", ["almacén", "almacenes"]),
    ],
)
def test_forms_of_a_word_are_one(code: str, forms: list[str]) -> None:
    assert len({one for form in forms for one in tokens(form, code)}) == 1


def test_tokens_mark_negations_and_ends() -> None:
    assert [one for one in tokens("It isn't open. No dogs!", "en") if one] == [
        NEGATION,
        "open",
        STOP,
        NEGATION,
        "dog",
        STOP,
    ]


def test_camel_case_is_split() -> None:
    assert [one for one in tokens("OutdoorSeating", "en") if one] == ["outdoor", "seat"]


def test_months_meet_dates_in_digits() -> None:
    assert [one for one in tokens("March", "en") if one] == ["#3"] == [one for one in tokens("März", "de") if one]
    assert set(months_of("on 2024-03-12")) == {"#3"}


def test_scripts() -> None:
    assert script_of_words(raw_words("plain words")) == script_of_words(raw_words("größere Wörter")) == 0
    assert script_of_words(raw_words(SENTENCES["ru"])) != 0
    assert script_of_words(raw_words(SENTENCES["zh"])) == script_of_words(raw_words(SENTENCES["ja"])) == -1
    assert script_of_words([]) == -2


def test_long_sentences_are_cut() -> None:
    cut = segments_of(" ".join(f"word{chr(97 + i)}x" for i in range(26)) * 4, "en")
    assert all(len(words) <= MOST_WORDS for words in cut.words)


def test_places() -> None:
    places = Places(["red", "blue", "gone"], [segments_of("Red cars. Blue cars. A red and a blue car.", "en")])
    assert ("red" in places.words, "gone" in places.words) == (True, False)
    assert places.apart([("red", "blue"), ("red", "gone")]) == 1
    assert places.nearest({"red": 1.0, "blue": 1.0}) == (2, 2.0)
    assert places.nearest({"gone": 1.0}) == (-1, 0.0)


@given(st.text(max_size=300), st.sampled_from(["en", "ja", UNKNOWN]))
def test_any_text_has_tokens(text: str, code: str) -> None:
    assert all(isinstance(one, str) for one in tokens(text, code))
    segments = segments_of(text, code)
    assert len(segments.words) == len(segments.negations)
