"""Texts full of leaks, or of what nearly is one, take time that grows as they do."""

from collections import defaultdict

import pytest

from ragtide.evaluators.encodings import NAMES, decode_text
from ragtide.evaluators.leaks import NAMES as KINDS
from ragtide.evaluators.leaks import PERSONAL, SECRETS, leaks_of, scanner
from ragtide.evaluators.leaks.folding import fold
from ragtide.evaluators.leaks.label_lines import LONGEST, label_lines
from tests.evaluators.builtin.test_encoding_guardrail import as_base64, as_codes, as_rot13
from tests.evaluators.leaks.corpus import positives
from tests.infra.growth import growth_fault

TENTH = 40_000  # characters

REPEATED = {
    "cards": "4111 1111 1111 1111 ",
    "IBANs": "DE89370400440532013000 ",
    "heads of IBANs": "DE89 ",
    "addresses": "203.0.113.7 2001:db8::1 ",
    "mail": "bob@example.com git@a.co a [at] b ",
    "taxpayers": "390.533.447-05 ",
    "telephones": "212-555-0123 ",
    "international telephones": "+44 20 7946 0958 ",
    "labels": "ssn passport dob 1 call me at password is token = ",
    "keys": "api_key='a8f5f167f44f4964e6c998dee827110c' ",
    "heads of keys": "-----BEGIN PRIVATE KEY-----",
    "URLs": "http://a:b http://",
    "tokens": "eyJaaaaaaaaa.eyJ ghp_ sk- ",
    "hexadecimal": "0123456789abcdef:",
    "quotes that nothing closes": "password='a token=\"b secret=`c password for ",
    "labels of other scripts": "\u5bc6\u7801 \u062c\u0648\u0627\u0644 \u0422\u0435\u043b 12 \u0418\u041d\u041d ",
    "cells of a table": "| token | phone |\n|---|---|\n| ghp_a1 | 212-555-0123 |\n| a7f3e9 | 5550199 |\n",
    "heads of tables": "password,phone,token\n",
    "coordinates": "51.50740, -0.12780 lat: 51.5 at 51\u00b030'26\"N 0\u00b07'39\"W 1.234, ",
    "codes": "OTP: 1 CVV 12 your code is 123456 BIC SWIFT iban/bic DEUT pin 1 ",
    "dates": "born on 3 May 1980 (geb. 1980-02-03) ",
    "keys of one word": "userPhone: 5550199, customerSsn: 219099998, ",
    "labels behind": "601482937 is my mobile 12345678 to my ",
    "logins": "user a, pass b user: u: login p: define('password', ",
    "passwords ahead of their label": "'a1!bcdefgh' as the 'b' is your new k password ",
    "queries": "a%40b.de %2B4915112345678 passport: { number: ",
    "answers": "What is your PIN?\nBob: 6803\nPlease enter your passport.\nAnn: X1234567\n",
    "questions": "? ? ? ",
    "records": '{"name": "password", "value": "a1!bcdefg"} insert into t (a, ssn) values (1, \'a\'), (',
    "lists": "passport X1234567, X1234567 and X1234567\n- X1234567\n",
    "national telephones": "meine nummer 015123456789 moj nomer 89123456789 \u6211\u7684\u53f7\u7801\u662f13123456789 ",
    "words for telephones": "ring anruf 1 mein mobil cep ligue \u8054\u7cfb\u6211 12 0612345678 szamon ",
    "versions": "\u7248\u672c 10.2.3.45 versione 12.1.0.2 my laptop 10.0.0.12 the box 10.1.2.3 ",
    "placeholders": "password='tu-contrasena' password: \u4f60\u7684\u5bc6\u7801 pwd=ihr_passwort ",
    "scripts without blanks": "\u8bf7bob@example.com\u8c22\u8c22\u0e04a@b.co\u0e23 ",
    "options": "mysql -p docker login --password -p'a ",
}


SEPARATORS = (", ", "; ", " and ", "\n", "\n- ", " ", '", "', " / ")
LENGTH = 40  # values of a kind in the shorter lists; the longer ones have ten times as many
SHARE = 4  # every fourth kind stands behind one separator: each is met behind two of them

VALUES: defaultdict[str, list[str]] = defaultdict(list)
for example in positives():
    VALUES[example.kind].append(example.value)


def lists(separator: str, length: int, *, equal: bool) -> str:
    """A list of values for each of a quarter of the kinds, after the words that lead to one in the corpus."""
    texts = []
    examples = list({each.kind: each for each in positives()}.values())
    for example in examples[SEPARATORS.index(separator) % SHARE :: SHARE]:
        values = [example.value] if equal else VALUES[example.kind]
        led = example.text[: example.text.index(example.value)]
        texts.append(led + separator.join((values * length)[:length]))
    return "\n\n".join(texts)


def fault(tenth: str, whole: str) -> str | None:
    return growth_fault(lambda: scanner()(tenth), lambda: scanner()(whole), 10)


@pytest.mark.parametrize("name", REPEATED)
def test_a_text_full_of_leaks_takes_linear_time(name: str) -> None:
    piece = REPEATED[name]
    assert fault(piece * (TENTH // len(piece)), piece * (10 * TENTH // len(piece))) is None


@pytest.mark.parametrize("equal", [True, False], ids=["equal values", "different values"])
@pytest.mark.parametrize("separator", SEPARATORS)
def test_lists_of_every_kind_take_linear_time(separator: str, equal: bool) -> None:
    tenth, whole = (lists(separator, length, equal=equal) for length in (LENGTH, 10 * LENGTH))
    assert fault(tenth, whole) is None


@pytest.mark.parametrize(
    "text",
    ["into t (ssn" + "x" * 900 + ") values " + "(1)," * 20_000, "a? 1" * 20_000],
    ids=["rows under a long name", "questions in one line"],
)
def test_labels_repeated_for_too_many_values_are_bounded_and_the_scan_tells(text: str) -> None:
    shown = label_lines(fold(text))
    assert shown is not None
    assert len(shown.text) <= LONGEST
    assert not shown.complete
    for kinds in (PERSONAL, SECRETS):
        leaks = leaks_of(text, scanner()(text), kinds)
        assert leaks.any is None
    assert scanner()(text).partial == frozenset(KINDS)


@pytest.mark.parametrize("encode", [as_base64, as_codes, as_rot13])
def test_every_run_of_a_long_text_is_decoded(encode: object) -> None:
    assert callable(encode)
    said = "the password and the card are here"
    lines = "\n".join([encode(said)] * 2_000)
    assert decode_text(lines, NAMES).text.count(said) == 2_000
