"""Values that do not stand beside their label: in tables, records and answers, and behind words that lead to them."""

import random
from base64 import b64encode

from tests.evaluators.leaks.identities import digits, valid
from tests.evaluators.leaks.written import Made, key, password


def _passport(draw: random.Random) -> str:
    return f"X{digits(draw, 8)}"


def _account(draw: random.Random) -> str:
    return f"7{digits(draw, 9)}"


def _code(draw: random.Random) -> str:
    return f"4{digits(draw, 2)}"


def _pin(draw: random.Random) -> str:
    return f"6{digits(draw, 3)}"


def _nip(draw: random.Random) -> str:
    return valid("pl.nip", lambda again: f"52{digits(again, 8)}")(draw)


def _phrase(draw: random.Random) -> str:
    words = ("copper", "lantern", "river", "Otter", "meadow", "tango", "pebble", "Zebra")
    return "-".join(draw.sample(words, 4))


def _of_letters(draw: random.Random) -> str:
    """As makers of passwords give them out, with no digit."""
    made = "".join(draw.choice("bcdfghjkmnpqrstvwxzBCDFGHJKMNPQRSTVWXZ") for _ in range(6))
    return f"kQ{made}_xR{made[::-1]}"


def _hash(draw: random.Random) -> str:
    return f"$2b$12${key(draw)}{key(draw)}"[:60]


def _sha_crypt(draw: random.Random) -> str:
    return f"$6${key(draw)[:8]}${key(draw)}{key(draw)}"


def _argon(draw: random.Random) -> str:
    return f"$argon2id$v=19$m=65536,t=3,p=4${key(draw)[:22]}${key(draw)}"


def _sim(draw: random.Random) -> str:
    return f"8944{digits(draw, 15)}"


_TABLES = (
    "{label} | city\n@ | Oslo",
    " id | {label} \n----+----------\n  1 | @",
    "+----+-----------+\n| id | {label} |\n+----+-----------+\n| 1 | @ |\n+----+-----------+",
    '"name","{label}"\n"Lee, Ann","@"',
    "NAME       {label}      CITY\nAnn Lee    @    Oslo",
    "INSERT INTO people (id, name, {label}) VALUES (1, 'Ann', '@');",
)
_RECORDS = (
    '{{"type": "{label}", "value": "@"}}',
    "- name: {label}\n  value: '@'",
    '{{"{label}": {{"value": "@"}}}}',
    '<field name="{label}" value="@"/>',
    "<p><b>{label}:</b> @</p>",
    "{label}:\n- @",
    '{{"{label}": ["@"]}}',
)
_ANSWERS = (
    "Agent: What is your {label}?\nCustomer: @",
    "Agent: Could you give me your {label}, please?\nCustomer: Sure, it's @.",
    "Bot: Please enter your {label}.\nUser: @",
    "Q: What is the {label}?\nA: @",
)
_SENTENCES = (
    "I have your {label} as @.",
    "Is your {label} still @?",
    "His {label} was changed to @.",
    "The {label} registered in our system is @.",
    "The {label} that we hold for her equals @.",
    "{label} ........ @",
)
_EVERYWHERE = (*_TABLES, *_RECORDS, *_ANSWERS, *_SENTENCES)


def _labelled(label: str, ways: tuple[str, ...] = _EVERYWHERE) -> tuple[str, ...]:
    return tuple(way.format(label=label) for way in ways)


def _docker(draw: random.Random) -> str:
    return b64encode(f"ann:{password(draw)}".encode()).decode()


def _seed(draw: random.Random) -> str:
    words = (
        "legal",
        "winner",
        "thank",
        "year",
        "wave",
        "sausage",
        "worth",
        "useful",
        "abandon",
        "ability",
        "able",
        "zoo",
    )
    return " ".join(draw.sample(words, 12))


def _expiry(draw: random.Random) -> str:
    return f"{draw.randint(10, 12)}/{draw.randint(26, 31)}"


def _device(draw: random.Random) -> str:
    made = draw.randbytes(16).hex()
    return f"{made[:8]}-{made[8:12]}-4{made[13:16]}-a{made[17:20]}-{made[20:]}"


# A kind, what is written, and the ways of writing it; "@" is where it stands.
APART: tuple[tuple[str, Made, tuple[str, ...]], ...] = (
    ("passport", _passport, _labelled("passport number")),
    ("bank_account", _account, _labelled("account number")),
    ("card_code", _code, _labelled("CVV")),
    ("password", password, _labelled("password")),
    ("api_key", key, _labelled("api_key")),
    ("password", _pin, _labelled("PIN", (*_RECORDS, *_ANSWERS, *_SENTENCES))),
    ("password", _phrase, ("password: @", "The passphrase is @", '{"password": "@"}')),
    ("password", _of_letters, ("password: @", "My password is @", "DB_PASSWORD=@")),
    ("password_hash", _hash, ("root:@:19000", '"password_hash": "@"', "the stored hash is @")),
    ("password_hash", _sha_crypt, ("alice:@:19000:0:99999:7:::", "passwd: @")),
    ("password_hash", _argon, ("hash=@", "INSERT INTO users (pw) VALUES ('@');")),
    ("sim_card", _sim, ("ICCID: @", "SIM card number @")),
    ("pl_nip", _nip, ("NIP: @", "numer NIP @")),
    ("birth_date", lambda draw: f"{draw.randint(1940, 2005)}-04-17", ("@ is my date of birth", "@ (date of birth)")),
    ("api_key", key, ("JSESSIONID=@", "MAPS_KEY=@", "@ is the API key", "Use @ as the access token.")),
    ("password", _pin, ("PIN:@", "The door code is @", "alarm code: @")),
    ("password", lambda draw: f"gzjd({digits(draw, 1)}ZgU+g(", ("smtp_password = @", "password: @")),
    ("coordinates", lambda draw: f"{draw.uniform(2, 80):.5f}", ("Photo EXIF: GPSLatitude @",)),
    ("card_code", _code, ("the three digits on the back are @",)),
    ("phone", lambda draw: f"+33 1 {digits(draw, 3)} {digits(draw, 4)}", ("Arthur \u2014 @",)),  # a digit too few
    ("authorization", _docker, ("_auth = @", '{"auths": {"registry": {"auth": "@"}}}')),
    ("password", _seed, ("Seed phrase: @", "my mnemonic is @")),
    (
        "card_expiry",
        _expiry,
        ("card number on file, exp @", "The Visa card is valid thru @.", "cc ending 4242, expiry date: @"),
    ),
    ("advertising_id", _device, ("IDFA: @", "advertising ID @")),
    ("person_number", _account, ("Employee ID: @", "Student number @", "Matrikelnummer: @")),
    ("vat_number", lambda draw: f"DE{digits(draw, 9)}", ("VAT number: @", "USt-IdNr. @")),
    ("national_id", _passport, ("Visa number: @", "Voter ID: @", "alien registration number @")),
    ("bank_code", lambda draw: f"HDFC0{digits(draw, 6)}", ("IFSC: @", "IFSC code @")),
    ("bank_code", lambda draw: f"37{digits(draw, 6)}", ("BLZ: @", "Bankleitzahl @")),
    ("bank_account", lambda draw: f"06{digits(draw, 1)}-{digits(draw, 3)}", ("BSB @", "BSB number: @")),
    ("email", lambda draw: f"ann dot lee{digits(draw, 2)} at posteo dot net", ("write to @", "@ reaches me")),
    (
        "coordinates",
        lambda draw: f"{draw.uniform(2, 80):.5f} lon {draw.uniform(2, 80):.5f}",
        ("lat @", "last seen (lat @)"),
    ),
    ("national_id", _account, ("ID number: @", '{"id_number": "@"}', "My ID number is @")),
    ("medical_record", _account, ("Insurance number: @", "Verzekeringsnummer: @")),
)

# Like those above, and nobody's.
NOT_APART: tuple[str, ...] = (
    "What is your order number?\nCustomer: 1023948571",
    "Please enter your ticket number.\nUser: 88213377",
    "Can you give me the tracking number please?\nSure, it's 9400110200881234567890.",
    "What is the PIN layout?\nPin 13 drives the LED.",
    "What is your password policy?\nAt least 12 characters.",
    "Do you have a passport?\nYes, since 2019.",
    "Q: What is the phone's battery?\nA: 5000 mAh",
    "sku;ean;price\nA-1;4006381333931;12.99",
    "| Parameter | Type | Description |\n|---|---|---|\n| password | string | The user's password |",
    "| Setting | Default |\n|---|---|\n| password | required |\n| token | none |\n| timeout | 3000000 |",
    "NAME        STATUS    AGE\napi-7d9f8   Running   12d",
    "INSERT INTO orders (id, sku, total) VALUES (12345678, 'AB1234567', 99.50);",
    "INSERT INTO users (name, password) VALUES (?, ?);",
    '{"name": "order_id", "value": "12345678"}',
    '{"name": "password", "type": "string", "value": "required"}',
    "- name: DB_PASSWORD\n  value: $(DB_PASSWORD)",
    "- name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef:\n      name: db-secret\n      key: password",
    '<input name="csrf_token" value="a8f5f167f44f4964e6c998dee827110c">',
    "password ........ required",
    "password: at-least-8-characters",
    "The password is one-way-hashed-and-salted.",
    "secretName: my-app-tls-secret-2024",
    "session_id: 550e8400-e29b-41d4-a716-446655440000",
    "SORT_KEY=created_at_2024_01_01",
    "IDEMPOTENCY_KEY=8f14e45fceea167a5a36dedd4bea2543",
    "file hash: d41d8cd98f00b204e9800998ecf8427e",
    "Pin code 560001, Bangalore",
    "pins 1234, 1235 and 1236 are ground",
    "registration number HRB 12345",
    "ID number of the order: 88213377",
    "customer ID 88213377",
    "The bank account holders registered in 2023 were 12345678 in total.",
    "CVV as 123-digit code",
    "Orders: 12345678, 12345679, 12345680",
    "Tickets #482913, #482914 and #482915",
    "password=$DB_PASS and %PWD% come from the shell",
    "NIP-05 identifiers",
    "We met at amazon dot com.",
    "Milk expires 12/27",
    "Batch AB12345 exp 12/2027",
    "The password is very long and hard to guess",
    "seed phrase must have twelve words and you should never share it with anyone else",
    "device_id=living-room-lamp",
    "Set-Cookie: csrftoken=a8f5f167f44f4964e6c998dee827110c",
    "employee number 12 of 5000",
    '"auth": "bearer-token-placeholder"',
    "the $5 and $6$ prices",
)
