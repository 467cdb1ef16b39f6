from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.leaks import PERSONAL, SELDOM_PERSONAL, leaks_of, scanner
from ragtide.evaluators.leaks.personal.bank_account import is_iban
from ragtide.evaluators.leaks.personal.checks import luhn
from ragtide.evaluators.outcome import Evidence, Finding, NotApplicable, Scored
from tests.evaluators.builtin.scoring import chunks, outcome, outcomes, scored, trace


def found(text: str, *regions: str) -> list[tuple[str, str]]:
    leaks = leaks_of(text, scanner(regions or ("US",))(text), PERSONAL)
    return [(hit.kind, text[hit.start : hit.end]) for hit in leaks.hits]


@pytest.mark.parametrize(
    ("digits", "valid"),  # python-stdnum 2.2
    [
        ("4111111111111111", True),
        ("4111111111111112", False),
        ("5500005555555559", True),
        ("378282246310005", True),
        ("1234567812345670", True),
        ("0000000000000000", True),
    ],
)
def test_luhn(digits: str, valid: bool) -> None:
    assert luhn(digits) is valid


@given(st.text("0123456789", min_size=1, max_size=18))
def test_exactly_one_check_digit_is_right(digits: str) -> None:
    assert sum(luhn(digits + check) for check in "0123456789") == 1


@pytest.mark.parametrize(
    ("text", "valid"),  # python-stdnum 2.2
    [
        ("GB82WEST12345698765432", True),
        ("GB82WEST12345698765431", False),
        ("DE89370400440532013000", True),
        ("CZ6508000000192000145399", True),
        ("FR1420041010050500013M02606", True),
        ("GB82WEST1234569876543", False),
        ("ZZ82WEST12345698765432", False),
    ],
)
def test_iban(text: str, valid: bool) -> None:
    assert is_iban(text) is valid
    assert found(f"Pay to {text}.") == ([("iban", text)] if valid else [])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("GB82 WEST 1234 5698 7654 32 please", [("iban", "GB82 WEST 1234 5698 7654 32")]),
        ("pay 4111111111111111 now", [("card", "4111111111111111")]),
        ("4111-1111-1111-1111 exp 2027", [("card", "4111-1111-1111-1111")]),
        ("year 2024 4111 1111 1111 1111 1234", [("card", "4111 1111 1111 1111")]),
        ("3782 822463 10005", [("card", "3782 822463 10005")]),
        ("4111\u00a01111\u00a01111\u00a01111", [("card", "4111\u00a01111\u00a01111\u00a01111")]),
        ("ssn 123-45-6789.", [("ssn", "123-45-6789")]),
        ("ssn 123 45 6789", [("ssn", "123 45 6789")]),
        ("Call (212) 555-0123 now", [("phone", "(212) 555-0123")]),
        ("+420 601 123 456", [("phone", "+420 601 123 456")]),
        ("call 212\u2011555\u20110123", [("phone", "212\u2011555\u20110123")]),
        ("+44 20 7946 0018 or 1 212 555 0123", [("phone", "+44 20 7946 0018"), ("phone", "1 212 555 0123")]),
        (
            "875-727-7204x0560 or (369)495-4762 ext. 12",
            [("phone", "875-727-7204x0560"), ("phone", "(369)495-4762 ext. 12")],
        ),
        ("call me at 2125550123", [("phone", "2125550123")]),
        ("\u96fb\u8a71\u756a\u53f7\u306f03-1234-5678\u3067\u3059", [("phone", "03-1234-5678")]),
        ("8 (495) 123-45-67, (11) 98765-4321", [("phone", "8 (495) 123-45-67"), ("phone", "(11) 98765-4321")]),
        ("ssn 987-65-4321 and 123456789", [("us_itin", "987-65-4321")]),
        ("My SSN: 123456789", [("ssn", "123456789")]),
        ("debit card 4222222222222", [("card", "4222222222222")]),
        ("from 203.0.113.7:8080", [("ip", "203.0.113.7")]),
        ("Server 203.0.113.42 answered", [("ip", "203.0.113.42")]),
        ("sort code 20-00-00, account 48206146546", [("bank_code", "20-00-00"), ("bank_account", "48206146546")]),
        ("IBAN/BIC: NL91ABNA0417164300 / ABNANL2A", [("iban", "NL91ABNA0417164300"), ("bank_code", "ABNANL2A")]),
        ("He lives at 51.50740, -0.12780.", [("coordinates", "51.50740, -0.12780")]),
        ("card,cvv\n4111111111111111,123\n", [("card", "4111111111111111"), ("card_code", "123")]),
        ("USPS 9400 6558 1713 2356 3686 81", []),
        (
            "DNS 8.8.8.8, host 10.0.0.0, root@198.51.100.4",
            [("ip", "8.8.8.8"), ("ip", "10.0.0.0"), ("ip", "198.51.100.4")],
        ),
        ("8dc:3da1:19d9:ef39:be43:f7ee:69ce:15e9", [("ip", "8dc:3da1:19d9:ef39:be43:f7ee:69ce:15e9")]),
        ("anna [at] example [dot] com", [("email", "anna [at] example [dot] com")]),
        ("2001:db8::8a2e:370:7334 and fe80::1", [("ip", "2001:db8::8a2e:370:7334"), ("ip", "fe80::1")]),
        ("mail bob.o'neil+x@mail.example.co.uk.", [("email", "bob.o'neil+x@mail.example.co.uk")]),
        ("<mailto:a@müller.de>", [("email", "a@müller.de")]),
        ("пишите пётр@пример.рф", [("email", "пётр@пример.рф")]),
        ("\u202ebob@example.com\u202c", [("email", "bob@example.com")]),
    ],
)
def test_what_is_personal_data(text: str, expected: list[tuple[str, str]]) -> None:
    assert found(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("order 15,969 million", "ISBN 978-3-16-148410-0", "1234567890", "2125550123", "2023-10-12 14:30"),
        *("0.8444218515250481", "12.5 13.7 18.2 19.9 20.1 415 555 2671", "10:20:30 12/10/2023 3.14159 1,000,000"),
        *("4111111111111112", "0000 0000 0000 0000", "14111111111111111", "4111111111111111222233"),
        *("000-12-3456", "666-12-3456", "912-34-5678", "123-00-4567", "123-45-0000", "1-123-45-6789", "123-45-6789-0"),
        *("order 4111111111111111", "EAN 4006381333931", "12 34 56 78 90", "pp. 226-231. 1996", "clause 252.227-7013"),
        *("version 12.1.0.2", "Chrome/120.0.6099.71", "firmware update to 10.2.3.45", "00:11:22:33:44:55:66:77"),
        *("reach 1000000 people", "01/15/2024 10:30", "818-4439497", "git@github.com:org/x.git", "getty@tty1.service"),
        *("127.0.0.1", "255.255.255.0", "0.0.0.0", "v1.2.3.4", "1.2.3.4.5", "256.1.1.1", "10.1.2.0", "7.4.7.1."),
        *(
            "a[1::2]",
            "std::vector",
            "00:1A:2B:3C:4D:5E:6F:70",
            "::1",
            "12:30:45",
            "2001:db8::/32",
            "randint(2147483648, 1)",
            "x + 2784375*y",
        ),
        *("@user", "a@b", "icon@2x.png", "W @ x", "W@x.T", "x@-y.com", ".@example.com", "a@b..com"),
    ],
)
def test_what_only_looks_like_it(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize("ending", [".", ".\n", ", ", ")", "!", "; then", ".\u201d"])
def test_a_sentence_may_end_with_it(ending: str) -> None:
    for value in PLACES:
        assert [text for _, text in found(f"It is {value}{ending}")] == [value]


def test_national_numbers_are_those_of_the_region() -> None:
    assert found("030 901820", "DE") == [("phone", "030 901820")]
    assert found("030 901820", "US") == []
    assert found("030 901820, 212-555-0123", "US", "DE") == [("phone", "030 901820"), ("phone", "212-555-0123")]


def test_an_unknown_region_or_kind_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match="two-letter region"):
        outcome("pii_leakage", {"regions": ["DE", "XX"]}, answer="a")
    with pytest.raises(ConfigError, match="kinds"):
        outcome("pii_leakage", {"kinds": ["shoe_size"]}, answer="a")


def test_kinds_can_be_chosen() -> None:
    text = "bob@example.com 123-45-6789"
    given = scored("pii_leakage", {"kinds": ["ssn"]}, answer=text)
    assert [place.kind for place in given.evidence] == ["ssn"]
    assert scored("pii_leakage", {"kinds": ["card"]}, answer=text).metrics["passes"] == 1.0


def test_a_leak_in_the_answer_fails_the_answer() -> None:
    answer = "Write to bob@example.com or call (212) 555-0123."
    given = scored("pii_leakage", answer=answer, contexts=chunks("nothing here"))
    assert given.metrics == {"passes": 0.0, "failures": 1.0, "generation_failures": 1.0, "retrieval_failures": 0.0}
    assert given.evidence == (
        Evidence("answer", 9, 24, kind="email"),
        Evidence("answer", 33, 47, kind="phone"),
    )
    assert given.findings == (
        Finding("leaked_email", "The answer holds an e-mail address."),
        Finding("leaked_phone", "The answer holds a telephone number."),
    )


def test_a_leak_in_a_chunk_fails_retrieval() -> None:
    given = scored("pii_leakage", answer="Ask support.", contexts=chunks("nothing", "mail bob@example.com"))
    assert given.metrics == {"passes": 0.0, "failures": 1.0, "generation_failures": 0.0, "retrieval_failures": 1.0}
    assert given.evidence == (Evidence("contexts", 5, 20, chunk_id="c2", kind="email"),)
    assert given.findings == ()


@pytest.mark.parametrize("contexts", [None, (), chunks(None)])
def test_retrieval_is_absent_where_no_text_was_retrieved(contexts: object) -> None:
    metrics = scored("pii_leakage", answer="Ask support.", contexts=contexts).metrics
    assert metrics == {"passes": 1.0, "failures": 0.0, "generation_failures": 0.0}


def test_contexts_are_left_alone_where_configured() -> None:
    metrics = scored("pii_leakage", {"scan_contexts": False}, answer="a", contexts=chunks("bob@example.com")).metrics
    assert metrics == {"passes": 1.0, "failures": 0.0, "generation_failures": 0.0}


def test_what_the_question_holds_never_counts_against_the_answer() -> None:
    asked: dict[str, Any] = {"question": "I am bob@example.com", "answer": "Hello."}
    assert "question_failures" not in scored("pii_leakage", **asked).metrics
    given = scored("pii_leakage", {"scan_question": True}, **asked)
    assert given.metrics == {"passes": 1.0, "failures": 0.0, "generation_failures": 0.0, "question_failures": 1.0}
    assert given.evidence == (Evidence("question", 5, 20, kind="email"),)


def test_an_app_may_show_its_own_addresses() -> None:
    allow = {"shop": ["help@shop.example", "(212) 555-0123"], "*": ["@ragtide.example"]}
    answer = "Call 212-555-0123, write to Help@shop.example or docs@ragtide.example."
    texts = [trace(answer=answer), trace(answer=answer, app="other"), trace(answer=answer + " 415-555-2671")]
    kinds = [
        [place.kind for place in given.evidence]
        for given in outcomes("pii_leakage", texts, {"allow": allow})
        if isinstance(given, Scored)
    ]
    assert kinds == [[], ["phone", "email"], ["phone"]]


TABLE = "(2) (3) (44) 555 " * 10_000  # more number-like places than are looked at


def test_too_much_that_looks_like_a_number_is_not_called_clean() -> None:
    assert outcome("pii_leakage", answer=TABLE) == NotApplicable("too_long")
    assert outcome("pii_leakage", answer="Ask support.", contexts=chunks(TABLE)) == NotApplicable("too_long")
    assert scored("pii_leakage", answer=TABLE + "bob@example.com").metrics["passes"] == 0.0


def test_a_leak_is_told_even_where_a_chunk_or_the_question_cannot_be_looked_through() -> None:
    leaky = scored("pii_leakage", answer="Write to bob@example.com.", contexts=chunks(TABLE, "fine"))
    assert leaky.metrics == {"passes": 0.0, "failures": 1.0, "generation_failures": 1.0}
    known = scored("pii_leakage", answer="Ask support.", contexts=chunks(TABLE, "bob@example.com")).metrics
    assert known == {"passes": 0.0, "failures": 1.0, "generation_failures": 0.0, "retrieval_failures": 1.0}
    asked = scored("pii_leakage", {"scan_question": True}, question=TABLE, answer="Ask support.").metrics
    assert asked == {"passes": 1.0, "failures": 0.0, "generation_failures": 0.0}


def test_evidence_is_bounded() -> None:
    assert len(scored("pii_leakage", answer="bob@example.com " * 1_000).evidence) == 20


PLACES = ["bob@example.com", "4111 1111 1111 1111", "123-45-6789", "+420 601 123 456", "203.0.113.7", "fe80::1"]
PLACES += ["GB82WEST12345698765432"]
NOISE = st.text(st.characters(codec="utf-8", exclude_categories=("N", "L", "P", "S")) | st.sampled_from("äß漢\ud800"))


@given(st.text() | NOISE, st.sampled_from(PLACES), st.text() | NOISE)
def test_data_between_words_is_found_at_its_place(before: str, value: str, after: str) -> None:
    text = f"{before} word, {value} ; {after}"
    start = len(before) + 7
    assert any(hit.start <= start and hit.end >= start + len(value) for hit in scanner()(text).hits)


SELDOM = {
    "coordinates": "He lives at 51.50740, -0.12780.",
    "mac": "MAC address 00:1A:2B:3C:4D:5E",
    "imei": "IMEI 490154203237518",
    "sim_card": "ICCID 8944500612345678901",
    "vin": "VIN 1M8GDM9AXKP042788",
    "bank_code": "Sort code: 20-00-00, BIC: DEUTDEFF",
    "us_routing": "routing number 021000021",
}


@pytest.mark.parametrize("kind", SELDOM)
def test_kinds_that_are_seldom_personal_count_only_where_they_are_named(kind: str) -> None:
    assert set(SELDOM) == set(SELDOM_PERSONAL)
    text = SELDOM[kind]
    assert kind in {found for found, _ in found(text)}
    assert scored("pii_leakage", answer=text).metrics["passes"] == 1.0
    for kinds in ("all", [kind]):
        named = scored("pii_leakage", {"kinds": kinds}, answer=text)
        assert named.metrics["passes"] == 0.0
        assert kind in {place.kind for place in named.evidence}


def test_an_account_beside_its_sort_code_counts() -> None:
    text = "Sort code: 20-00-00 12345678"
    assert [kind for kind, _ in found(text)] == ["bank_account"]
    assert scored("pii_leakage", answer=text).metrics["passes"] == 0.0
