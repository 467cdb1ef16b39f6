"""What an answer claims against a record in its contexts: keys that are false or missing, and opening hours."""

import pytest

from ragtide.evaluators.support.hours import contradicted_hours, schedule_of
from ragtide.evaluators.support.polarity import is_negated
from ragtide.evaluators.support.records import contradictions, facts_of
from ragtide.evaluators.support.words import languages, raw_words

RECORD = (
    '{"Wifi": "no", "OutdoorSeating": false, "Music": null, "TakeOut": true, "Parking": {"valet": false, "lot": true}}'
)
HOURS = '{"Monday": "0:0-0:0", "Tuesday": "9:0-17:0", "Wednesday": "9:0-17:0", "Sunday": "10:0-14:30"}'


def claimed(sentence: str, record: str = RECORD) -> set[str]:
    words = raw_words(sentence)
    return {words[place] for place in contradictions(facts_of(record), words, languages()["en"])}


def test_facts_are_false_or_missing_keys() -> None:
    assert {fact.name: fact.missing for fact in facts_of(RECORD)} == {
        "wifi": False,
        "outdoorseating": False,
        "music": True,
        "valet": False,
    }


@pytest.mark.parametrize(
    "record", ["wifi: no\nmusic: none\n", "{'wifi': False, 'music': None}", "wifi=false\nmusic=null"]
)
def test_facts_of_other_notations(record: str) -> None:
    assert {(fact.name, fact.missing) for fact in facts_of(record)} >= {("wifi", False), ("music", True)}


@pytest.mark.parametrize(
    ("sentence", "found"),
    [
        ("It offers free Wi-Fi and takeout.", {"Wi"}),
        ("It has outdoor seating but no wifi.", {"outdoor"}),
        ("It does not offer outdoor seating, valet parking or wifi.", set()),
        ("Valet parking and outdoor seating are not available.", set()),
        ("Takeout is available.", set()),
        ("There is live music.", {"music"}),
        ("There is no music.", {"music"}),
        ("The record gives no information on music.", set()),
        ("It lies on Valet Street.", set()),
    ],
)
def test_claims_against_a_record(sentence: str, found: set[str]) -> None:
    assert claimed(sentence) == found


def test_prose_has_no_facts() -> None:
    assert not facts_of("Is it open? No. We said: no dogs are allowed here.")


def test_a_schedule_leaves_out_closed_days() -> None:
    assert schedule_of(HOURS) == {1: (540, 1_020), 2: (540, 1_020), 6: (600, 870)}


@pytest.mark.parametrize(
    "sentence",
    [
        "It is open from 9 AM to 5 PM on Tuesday and Wednesday.",
        "Tuesday to Wednesday 9:00-17:00, Sunday 10 am to 2:30 pm.",
        "On Sunday it opens from 10:00 to 14:30.",
        "It is closed on Monday.",
        "From 9 am to 5 pm on Tuesdays, and from 10 am to 2:30 pm on Sundays.",
    ],
)
def test_hours_that_agree(sentence: str) -> None:
    assert not contradicted_hours(schedule_of(HOURS), sentence)


@pytest.mark.parametrize(
    ("sentence", "wrong"),
    [
        ("It is open every day.", "every day"),
        ("It is open Monday through Wednesday.", "Monday through Wednesday"),
        ("It is open from 9 AM to 6 PM on Tuesday.", "9 AM to 6 PM"),
        ("Sunday 9:00-17:00.", "9:00-17:00"),
        ("It has extended hours on weekends.", "extended hours on weekends"),
    ],
)
def test_hours_that_do_not(sentence: str, wrong: str) -> None:
    assert [sentence[start:end] for start, end in contradicted_hours(schedule_of(HOURS), sentence)] == [wrong]


def test_without_a_schedule_nothing_is_wrong() -> None:
    assert not contradicted_hours({}, "It is open every day from 9 AM to 6 PM.")


@pytest.mark.parametrize(
    ("sentence", "word", "negated"),
    [
        ("it does not offer parking", "parking", True),
        ("it has parking", "parking", False),
        ("it has no wifi but offers parking", "parking", False),
        ("parking is not offered", "parking", True),
        ("parking is offered and dogs are not", "parking", False),
    ],
)
def test_polarity(sentence: str, word: str, negated: bool) -> None:
    words = sentence.split()
    assert is_negated(words, words.index(word), languages()["en"]) is negated
