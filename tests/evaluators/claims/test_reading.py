"""Amounts, dates and versions are read the same however they are written, and nothing else is taken for one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtide.evaluators.claims.reading import CHARACTERS, claims_of


def stated(text: str) -> list[str]:
    return sorted(f"{kind} {value}" for kind, value in claims_of(text))


@pytest.mark.parametrize(
    ("claim", "texts"),
    [
        ("seconds 2592000", ["within 30 days", "Thirty days.", "30 calendar days", "a 30-day window", "30 Tagen"]),
        ("seconds 1209600", ["14 days", "two weeks", "2 weeks", "zwei Wochen", "14 jours"]),
        ("months 24", ["24 months", "two years", "2 Jahre", "24-month"]),
        ("usd 49", ["$49", "49 USD", "$49.00 a month", "USD 49", "49 dollars"]),
        ("eur 10000", ["10,000 euros", "€10,000", "10.000 €", "10'000 EUR", "10000.00 euro"]),
        ("percent 42", ["42%", "42 %", "42 percent", "42 per cent", "(42 %)"]),
        ("celsius -20", ["-20 °C", "\u221220°C", "-20 degrees Celsius"]),
        ("bytes 25000000", ["25 MB", "25MB per file", "25 megabytes", "up to **25 MB**."]),
        ("clock 9:00", ["9 am", "9am", "9:00", "9 a.m. sharp", "um 9 Uhr"]),
        ("clock 17:30", ["5:30 pm", "17:30", "5:30pm."]),
        ("version 2.4", ["version 2.4", "v2.4", "2.4.0", "in release 2.4.0."]),
        ("number 50", ["50", "50 users", "(50)", "50. Guests do not count."]),
        ("year 1998", ["1998", "in 1998,"]),
    ],
)
def test_one_claim_however_it_is_written(claim: str, texts: list[str]) -> None:
    assert {text: stated(text) for text in texts} == {text: [claim] for text in texts}


@pytest.mark.parametrize(
    "text", ["15 March 2025", "March 15, 2025", "2025-03-15", "15.03.2025", "the 15th of March 2025", "15. März 2025"]
)
def test_a_day_of_a_year(text: str) -> None:
    assert stated(text) == ["date 3-15", "year 2025"]


@pytest.mark.parametrize(
    ("text", "claims"),
    [
        ("3 to 5 business days", ["seconds 259200", "seconds 432000"]),
        ("3-5 days", ["seconds 259200", "seconds 432000"]),
        ("9:00\u201317:00", ["clock 17:00", "clock 9:00"]),
        ("200 mg three times a day", ["milligrams 200"]),
        ("1. Open it\n2. Wait 5 minutes\n3. Close it", ["seconds 300"]),
        ("as [1] and [2,3] say.", []),
        ("error E-1042 of AES-256 in eu-central-1 at utf-8 over CO2", []),
        ("one of the two, may be", []),
        ("10 users a day", ["number 10"]),
        ("up to 5 may join", ["number 5"]),
        ("", []),
    ],
)
def test_what_is_a_claim_and_what_is_none(text: str, claims: list[str]) -> None:
    assert stated(text) == claims


def test_only_the_beginning_of_a_long_text_is_read() -> None:
    assert stated("x " * (CHARACTERS // 2) + "30 days") == []


@given(st.text(alphabet=st.one_of(st.sampled_from("0123456789.,:-$%€ \n[]()'v°c"), st.characters())))
def test_whatever_is_written_is_read_without_an_error(text: str) -> None:
    assert all(kind and value for kind, value in claims_of(text))
