"""The same question has the same hash whatever its case and spacing; who lacks the key cannot try questions."""

import pytest
from pydantic import SecretStr

from ragtide.sinks.settings import PrivacySettings
from ragtide.stream.ingest.question_hash import question_hash_of

PLAIN, KEYED = (
    "47945af1699004fa",
    "2d1deb515e7a7d6c",
)  # sha256sum and openssl dgst -sha256 -hmac k of it, in lower case
QUESTION = "What does json.dumps return?"


def hashed(question: str | None, store_texts: str = "full", key: str = "") -> str:
    settings = PrivacySettings.model_validate({"store_texts": store_texts, "hash_key": SecretStr(key)})
    return question_hash_of(settings)(question)


@pytest.mark.parametrize("same", [QUESTION, f"  {QUESTION.upper()}\n", QUESTION.replace(" ", "\t \u00a0")])
def test_case_and_spacing_do_not_matter(same: str) -> None:
    assert (hashed(same), hashed(same, key="k")) == (PLAIN, KEYED)


def test_without_a_key_nothing_can_be_guessed_where_texts_are_not_stored_in_full() -> None:
    kept = [hashed(QUESTION, store_texts) for store_texts in ("masked", "off")]
    keyed = [hashed(QUESTION, store_texts, "k") for store_texts in ("masked", "hashed", "off")]
    assert (kept, keyed) == (["", ""], [KEYED] * 3)


@pytest.mark.parametrize("nothing", [None, "", " \n"])
def test_no_question_has_no_hash(nothing: str | None) -> None:
    assert hashed(nothing) == hashed(nothing, key="k") == ""


def test_a_lone_surrogate_stops_nobody() -> None:
    assert len(hashed("\ud800")) == 16
