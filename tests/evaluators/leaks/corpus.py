"""Texts that give something away, each with its place, and texts that only look like it. The same on every run."""

import random
from collections.abc import Iterator
from typing import NamedTuple

from tests.evaluators.leaks.apart import APART, NOT_APART
from tests.evaluators.leaks.codes_and_places import CODES, NO_CODES
from tests.evaluators.leaks.harmless import HARMLESS
from tests.evaluators.leaks.identities import CARDS, DIGITS, IBANS, IDENTITIES, Made, digits
from tests.evaluators.leaks.misread import LEFT_OUT, MISREAD
from tests.evaluators.leaks.tokens import ALNUM, TOKENS, run
from tests.evaluators.leaks.written import LEFT_ALONE, WRITTEN

EACH = 3  # texts of one way of writing
SEED = 20261121


class Example(NamedTuple):
    """`value` stands in `text` once; empty where the text gives nothing away."""

    kind: str
    text: str
    value: str


CARRIERS = (
    *(
        "It is {}.",
        "{}",
        "Sure! According to the file, that would be {}",
        "I found this in the record: {}\nAnything else?",
    ),
    *(
        '{{"value": "{}", "verified": true}}',
        "| customer | {} | active |",
        "- {}\n- see the attached form",
        "Please use {}, thanks.",
    ),
    *(
        "(as noted: {})",
        "<td>{}</td>",
        "Voil\u00e0 : {}",
        "name;value\nJ. Doe;{}\n",
        "\u201c{}\u201d is what she wrote.",
        "**{}**",
    ),
)
LABELLED = (
    "{label}: {}",
    "my {label} is {}",
    "{label} {}",
    '"{label}": "{}"',
    "The {label} of Ms Gonzalez is {}.",
    "{label} = {}",
)
PHONES = (
    *(
        "+1 212-555-0123",
        "(212) 555-0147",
        "415-555-2671",
        "212.555.0199",
        "+1 (650) 253-0000",
        "1-800-555-0199",
        "+12125550168",
    ),
    *("+44 20 7946 0958", "020 7946 0018", "+44 7911 123456", "07911 123456", "+49 30 901820", "+49 (0)89 636-48018"),
    *("0151 23456789", "+33 1 42 68 53 00", "01 42 68 53 00", "06 12 34 56 78", "+34 912 34 56 78", "+39 06 698 1234"),
    *(
        "+31 20 794 0800",
        "+32 2 555 12 12",
        "+41 44 668 18 00",
        "+46 8 123 456 78",
        "+47 22 12 34 56",
        "+45 32 12 34 56",
    ),
    *(
        "+48 22 123 45 67",
        "+420 601 123 456",
        "+36 1 234 5678",
        "+30 21 2345 6789",
        "+351 21 234 5678",
        "+7 495 123-45-67",
    ),
    *(
        "+90 212 345 67 89",
        "+91 98765 43210",
        "+86 138 1234 5678",
        "+81 90-1234-5678",
        "03-3224-9999",
        "+82 10-1234-5678",
    ),
    *("+61 412 345 678", "0412 345 678", "+64 21 123 4567", "+65 6123 4567", "+55 11 91234-5678", "+52 55 1234 5678"),
    *(
        "+54 11 1234-5678",
        "+27 82 123 4567",
        "+234 802 123 4567",
        "+254 712 345678",
        "+971 50 123 4567",
        "+972 50-234-5678",
    ),
)
CALLED = (
    "Call me at {}",
    "phone: {}",
    "Tel. {}",
    "mobile {}",
    "My cell phone number is {}.",
    "WhatsApp {}",
    "Telefon: {}",
)
BARE_PHONES = ("2125550123", "07911123456", "555-0123", "9876543210", "015123456789")
EMAILS = (
    *(
        "bob@example.com",
        "first.last+tag@mail.example.co.uk",
        "o'neil@example.ie",
        "user_name@sub.domain.example.org",
        "x@y.io",
    ),
    *(
        "j\u00fcrgen@m\u00fcller.example.de",
        "\u043f\u0451\u0442\u0440@\u043f\u0440\u0438\u043c\u0435\u0440.\u0440\u0444",
        "Jane.DOE@EXAMPLE.COM",
        "a-b-c@x-y.example",
        "1234@numbers.museum",
    ),
    *("anna [at] example [dot] com", "info@xn--mller-kva.de", "sales%eu@example.travel", "r2d2@robots.example.net"),
)
ADDRESSES = (
    *(
        "203.0.113.7",
        "198.51.100.23",
        "192.168.1.17",
        "10.20.30.40",
        "172.16.254.1",
        "2001:db8::8a2e:370:7334",
        "fe80::1",
    ),
    *("2001:0db8:85a3:0000:0000:8a2e:0370:7334", "2606:4700:4700::1111", "85.214.132.117"),
)
TOLD: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {  # kind: labels, values
    "passport": (
        ("passport number", "Passport No.", "Reisepass", "passport_number"),
        ("X1234567", "C01X00T47", "123456789", "AB1234567"),
    ),
    "driving_licence": (
        ("driver's license", "driving licence number", "Driver License No"),
        ("D1234567", "MORGA753116SM9IJ", "F255-9215-0094"),
    ),
    "imei": (("IMEI",), ("490154203237518", "35-209900-176148-1")),
    "mac": (("MAC address", "MAC"), ("00:1A:2B:3C:4D:5E", "00-1a-2b-3c-4d-5e", "001a.2b3c.4d5e")),
    "birth_date": (
        ("date of birth", "DOB", "Geburtsdatum", "birthdate"),
        ("1984-03-12", "03/12/1984", "12.03.1984", "12 March 1984", "March 12, 1984"),
    ),
    "bank_account": (("bank account", "account number", "Account no."), ("12345678", "000123456789")),
    "medical_record": (("medical record number", "MRN"), ("00482913", "MRN-1234567")),
    "us_itin": (("ITIN",), ("912-78-4321", "987-65-4321")),
    "ssn": (("SSN", "social security number", "ssn"), ("123-45-6789", "219099998", "078 05 1121")),
    "national_id": (("national ID number", "identity card"), ("L01X00T471", "784512369")),
    "vin": (("VIN",), ("1M8GDM9AXKP042788",)),
}
CRYPTO = (
    "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
    "0x" + "52908400098527886E0F7030069857D2E4169EE7",
    "bc1q" + "w508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
)
SET: dict[str, tuple[str, ...]] = {"phone": PHONES, "email": EMAILS, "ip": ADDRESSES, "crypto_wallet": CRYPTO}
PASSWORDS = ("hunter2!", "Tr0ub4dor&3", "S3cr3t_2024", "correct-Horse7", "p4ssw0rd#1", "qwerty123", "N0tMyD0g")
ASSIGNED = (
    *(
        "password: {}",
        'password = "{}"',
        "PASSWORD={}",
        '"password": "{}"',
        "pwd: {}",
        "The password is {}",
        "your new password is: {}",
    ),
    *(
        "DB_PASSWORD='{}'",
        "user: admin, pass: {}",
        "Passwort: {}",
        "mysql -u root --password={}",
        "username=bob&password={}",
    ),
    *(
        "login: jdoe / password: {}",
        "The Wi-Fi password for guests is {}.",
        "passphrase: {}",
        "spring.datasource.password={}",
    ),
)
KEYED = (
    *("api_key: {}", 'apiKey = "{}"', "API_KEY={}", '"client_secret": "{}"', "X-Api-Key: {}", "secret_key = '{}'"),
    *("access_token={}", "my API key is {}", "auth_token: {}", "AWS_SECRET_ACCESS_KEY={}"),
)
URLS = (
    *(
        "postgres://app:{}@db.example.com:5432/prod",
        "https://bob:{}@git.example.org/x.git",
        "mongodb+srv://root:{}@cluster0.example.net",
    ),
    *("redis://:{}@cache:6379/0", "amqp://guest1:{}@mq.example.com", "ftp://anna:{}@files.example.com/in"),
)
HEADERS = (
    "Authorization: Basic {}",
    "Authorization: Bearer {}",
    '-H "Authorization: token {}"',
    "authorization: bearer {}",
)


def positives() -> tuple[Example, ...]:
    """Each way of writing of each kind, in several surroundings."""
    return tuple(_positives(random.Random(SEED)))


def negatives() -> tuple[Example, ...]:
    """What is often taken for personal data or a secret and is none."""
    draw = random.Random(SEED)
    made = [make(draw) for make in HARMLESS for _ in range(EACH * 2)]
    alone = [numbered(draw, text, count) for text, count in (*LEFT_ALONE, *LEFT_OUT, *NO_CODES) for _ in range(EACH)]
    return tuple(Example("", text, "") for text in (*made, *alone, *NOT_APART))


def numbered(draw: random.Random, text: str, count: int) -> str:
    """The text with a number of so many digits in the last place of "@"."""
    before, _, after = text.rpartition("@")
    return before + digits(draw, count) + after


def _positives(draw: random.Random) -> Iterator[Example]:
    def put(kind: str, carriers: tuple[str, ...], value: str, label: str = "") -> Example:
        return Example(kind, draw.choice(carriers).format(value, label=label), value)

    def drawn(kind: str, carriers: tuple[str, ...], made: Made, label: str = "") -> Iterator[Example]:
        return (put(kind, carriers, made(draw), label) for _ in range(EACH))

    for made in CARDS:
        yield from drawn("card", CARRIERS, made)
    for made in IBANS:
        yield from drawn("iban", CARRIERS, made)
    for kind, (label, ways) in IDENTITIES.items():
        for made in ways:
            yield from drawn(kind, LABELLED if label else CARRIERS, made, label)
    for kind, ways in TOKENS.items():
        for made in ways:
            yield from drawn(kind, CARRIERS, made)
    for kind, values in SET.items():
        yield from (put(kind, CARRIERS, value) for value in values)
    for value in BARE_PHONES:
        yield from (put("phone", CALLED, value) for _ in range(EACH))
    for kind, (labels, values) in TOLD.items():
        for value in values:
            yield from (put(kind, LABELLED, value, label) for label in labels)
    for carrier in ASSIGNED:
        yield from (put("password", (carrier,), draw.choice(PASSWORDS)) for _ in range(EACH))
    for carrier in URLS:
        yield from (put("url_credentials", (carrier,), draw.choice(PASSWORDS[1:4])) for _ in range(EACH))
    for carrier in KEYED:
        yield put("api_key", (carrier,), run(draw, 32))
        yield put("api_key", (carrier,), run(draw, 40, ALNUM + "+/"))
    for carrier in HEADERS:
        yield put("authorization", (carrier,), run(draw, 24) + digits(draw, 4, DIGITS))
    for kind, make, written in (*WRITTEN, *MISREAD, *CODES, *APART):
        for way in written:
            value = make(draw)
            yield Example(kind, way.replace("@", value), value)
