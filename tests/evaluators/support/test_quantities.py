"""Quantities are read in any notation, and found in contexts that write them otherwise or from which they follow."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtide.evaluators.support.numbers import KnownQuantities, significant_digits
from ragtide.evaluators.support.quantities import Quantity, quantities_of, spelled_quantities_of


def read(text: str, code: str = "en") -> list[Quantity]:
    return sorted([*quantities_of(text), *spelled_quantities_of(text, code)])


def has(context: str, answer: str, code: str = "en") -> bool:
    known = KnownQuantities([read(context, code)])
    found = read(answer, code)
    assert found
    return all(known.have(one) or known.compute(one) for one in found)


@pytest.mark.parametrize(
    ("text", "value", "kind"),
    [
        ("1,200 people", 1_200, ""),
        ("1.2k people", 1_200, ""),
        ("twelve hundred people", 1_200, ""),
        ("1\u202f200 people", 1_200, ""),
        ("1'200 people", 1_200, ""),
        ("1.234.567 people", 1_234_567, ""),
        ("two hundred and fifty thousand", 250_000, ""),
        ("1.2 million", 1_200_000, ""),
        ("$1.5bn", 1_500_000_000, "usd"),
        ("USD 49", 49, "usd"),
        ("1.234,56 €", 1_234.56, "eur"),
        ("50 %", 50, "percent"),
        ("fifty percent", 50, "percent"),
        ("half", 0.5, ""),
        ("1/2", 0.5, ""),
        ("9 PM", 1_260, "clock"),
        ("21:00", 1_260, "clock"),
        ("5 km", 5_000, "metres"),
        ("3.5 kg", 3_500, "grams"),
        ("212 °F", 100, "celsius"),
    ],
)
def test_notations(text: str, value: float, kind: str) -> None:
    [one] = read(text)
    assert one.kind == kind
    assert pytest.approx(value) in one.bases


@pytest.mark.parametrize(
    ("text", "code", "value", "kind"),
    [
        ("fünfundzwanzig Prozent", "de", 25, "percent"),
        ("vingt-cinq euros", "fr", 25, "eur"),
        ("quatre-vingt-dix", "fr", 90, ""),
        ("20 por ciento", "es", 20, "percent"),
        ("dos millones", "es", 2_000_000, ""),
        ("пятьдесят процентов", "ru", 50, "percent"),
        ("3億円", "ja", 300_000_000, "jpy"),
        ("trinta dias", "pt", 30 * 86_400, "seconds"),
    ],
)
def test_other_languages(text: str, code: str, value: float, kind: str) -> None:
    [one] = read(text, code)
    assert one.kind == kind
    assert list(one.bases) == pytest.approx([value])


def test_once_is_a_number_in_spanish_only() -> None:
    assert not spelled_quantities_of("Once it is done", "en")
    assert [one.values for one in spelled_quantities_of("once días", "es")] == [(11.0,)]


def test_ranges_share_their_unit() -> None:
    assert [one.bases for one in quantities_of("10-20 kg")] == [(10_000.0,), (20_000.0,)]
    assert {one.kind for one in quantities_of("9 to 11 am")} == {"clock"}


@pytest.mark.parametrize(
    ("context", "answer"),
    [
        ("The hall seats 1,200 people.", "1.2k"),
        ("Half of the users agreed.", "50 %"),
        ("50 % of the users agreed.", "half"),
        ("It is 10 km away.", "6.2 miles"),
        ("Heat it to 350 °F.", "177 °C"),
        ("Open 11:0-21:0.", "9 PM"),
        ("A total of 1,234,567 units.", "1.2 million"),
        ("It sold 120 in May and 85 in June.", "205"),
        ("It sold 120 in May and 85 in June.", "35"),
        ("There were 80 rooms, 20 of them taken.", "25 %"),
        ("Founded in 1974.", "1970s"),
        ("On 2024-03-12 it closed.", "12"),
        ("Two weeks later.", "14 days"),
    ],
)
def test_contexts_that_have_it(context: str, answer: str) -> None:
    assert has(context, answer)


@pytest.mark.parametrize(
    ("context", "answer"),
    [
        ("The hall seats 1,200 people.", "1,300"),
        ("It is 10 km away.", "10 miles"),
        ("It costs 10 euros.", "10 dollars"),
        ("It takes 10 days.", "10 weeks"),
        ("Founded in 1992.", "1990"),
        ("50 % of the users agreed.", "60 %"),
        ("Open 11:0-21:0.", "10 PM"),
        ("A total of 1,234,567 units.", "1.3 million"),
        ("Founded in 1985.", "1970s"),
    ],
)
def test_contexts_that_lack_it(context: str, answer: str) -> None:
    assert not has(context, answer)


@pytest.mark.parametrize(("value", "digits"), [(1_200, 2), (0.05, 1), (1_234, 4), (100, 1), (0, 1)])
def test_significant_digits(value: float, digits: int) -> None:
    assert significant_digits(value) == digits


@given(st.integers(1, 10**9))
def test_a_grouped_number_is_the_number(number: int) -> None:
    for text in (f"{number:,}", str(number), f"{number:,}".replace(",", "\u202f")):
        [one] = quantities_of(f"about {text} of them")
        assert float(number) in one.values


@given(st.text(max_size=200))
def test_any_text_can_be_read(text: str) -> None:
    for one in read(text, "unknown"):
        assert 0 <= one.start < one.end <= len(text)
        assert all(value == value for value in one.bases)


def test_words_are_found_at_their_places_in_any_case_and_not_within_others() -> None:
    text = "İki: TWELVE hundred, xtwelve, twelvex, twelve"
    assert [text[one.start : one.end] for one in spelled_quantities_of(text, "en")] == ["TWELVE hundred", "twelve"]
