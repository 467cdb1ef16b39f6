"""What is often taken for personal data or a secret: numbers of orders and articles, hashes, versions, code, dates."""

import base64
import hashlib
import random
import uuid
from collections.abc import Callable

Made = Callable[[random.Random], str]


def _digits(draw: random.Random, count: int) -> str:
    return str(draw.randint(1, 9)) + "".join(str(draw.randrange(10)) for _ in range(count - 1))


def _hash(name: str) -> Made:
    return lambda draw: f"{name}: {hashlib.new(name, draw.randbytes(8)).hexdigest()}"


def _isbn13(draw: random.Random) -> str:
    body = "978" + _digits(draw, 9)
    check = -sum(int(d) * (1 if i % 2 == 0 else 3) for i, d in enumerate(body)) % 10
    return f"ISBN {body[:3]}-{body[3]}-{body[4:7]}-{body[7:]}-{check}"


def _ean(draw: random.Random) -> str:
    body = draw.choice(("400", "501", "87", "30")) + _digits(draw, 9)
    body = body[:12].ljust(12, "7")
    return f"EAN {body}{-sum(int(d) * (1 if i % 2 == 0 else 3) for i, d in enumerate(body)) % 10}"


def _image(draw: random.Random) -> str:
    return f"![logo](data:image/png;base64,{base64.b64encode(b'x89PNG' + bytes(30) + draw.randbytes(400)).decode()})"


def _of(template: str, *makers: Made) -> Made:
    return lambda draw: template.format(*(made(draw) for made in makers))


def _n(count: int) -> Made:
    return lambda draw: _digits(draw, count)


def _up_to(least: int, most: int) -> Made:
    return lambda draw: str(draw.randint(least, most))


def _one(*choices: str) -> Made:
    return lambda draw: draw.choice(choices)


def _point(low: int, high: int) -> Made:
    return lambda draw: f"{draw.uniform(low, high):.6f}"


def _uuid(draw: random.Random) -> str:
    return str(uuid.UUID(bytes=draw.randbytes(16), version=4))


HARMLESS: tuple[Made, ...] = (
    _of("Your order {} has been shipped.", _n(10)),
    _of("Order no. {}-{}-{} was delivered.", _n(3), _n(7), _n(7)),
    _of("order #{} total {}.{}", _n(8), _n(3), _n(2)),
    _of("Order number: {}", _n(16)),
    _of("Invoice INV-{}-{} is due.", _up_to(2019, 2026), _n(6)),
    _of("Tracking number 1Z{}E{}", _n(3), _n(12)),
    _of("tracking: {}", _n(20)),
    _of("Ticket {} was closed on 2024-03-{}.", _n(7), _up_to(10, 28)),
    _of("Part number {}-{}-{}", _n(4), _n(3), _n(2)),
    _of("SKU: {}-{}", _one("AB", "XK", "ZT"), _n(8)),
    _isbn13,
    _of("ISBN-10 0-{}-{}-X", _n(3), _n(5)),
    _of("ISSN {}-{}", _n(4), _n(4)),
    _of("doi:10.{}/j.cell.{}.{}.{}", _n(4), _up_to(1990, 2024), _n(2), _n(3)),
    _ean,
    *(_hash(name) for name in ("md5", "sha1", "sha256", "sha512")),
    _of("commit {}", lambda draw: draw.randbytes(20).hex()),
    _of("docker pull app@sha256:{}", lambda draw: draw.randbytes(32).hex()),
    _of("integrity sha512-{}==", lambda draw: base64.b64encode(draw.randbytes(63)).decode()),
    _of("request id {}", _uuid),
    _of('{{"id": "{}", "parent": "{}"}}', _uuid, _uuid),
    _of('etag: W/"{}"', lambda draw: draw.randbytes(16).hex()),
    _image,
    _of("Version {}.{}.{}.{} was released.", _up_to(1, 20), _up_to(0, 30), _up_to(0, 99), _up_to(1, 250)),
    _of("upgrade from v{}.{}.{} to v{}.{}.{}", *(_up_to(0, 40) for _ in range(6))),
    _of("Mozilla/5.0 Chrome/{}.0.{}.{} Safari/537.36", _up_to(90, 130), _up_to(100, 250), _up_to(10, 200)),
    _of("numpy=={}.{}.{} and react@{}.{}.{}-rc.1", *(_up_to(0, 30) for _ in range(6))),
    _of("kernel {}.{}.{}-{}-generic", _up_to(4, 6), _up_to(0, 19), _up_to(0, 200), _up_to(10, 120)),
    _of("See section {}.{}.{}.{} of the manual.", *(_up_to(1, 12) for _ in range(4))),
    _of("It costs ${},{}.{} or {} EUR.", _up_to(1, 999), _n(3), _n(2), _n(5)),
    _of("Revenue rose to {} {} {} dollars.", _up_to(1, 999), _n(3), _n(3)),
    _of("The population was {},{},{} in {}.", _up_to(1, 90), _n(3), _n(3), _up_to(1900, 2024)),
    _of("between {}-{}-{} and {}-{}-{}", *(2 * (_up_to(1990, 2024), _up_to(10, 12), _up_to(10, 28)))),
    _of(
        "on {}/{}/{} at {}:{}:{}", _up_to(1, 12), _up_to(1, 28), _up_to(1990, 2024), *(_up_to(10, 23) for _ in range(3))
    ),
    _of(
        "{}T{}:{}:{}.{}Z",
        lambda draw: f"2024-0{draw.randint(1, 9)}-{draw.randint(10, 28)}",
        *(_up_to(10, 23) for _ in range(3)),
        _n(6),
    ),
    _of("Napoleon was born on {} August {} and died in {}.", _up_to(1, 28), _up_to(1700, 1790), _up_to(1800, 1830)),
    _of("The means are {}, {} and the medians {}, {}.", *(_point(10, 90) for _ in range(4))),
    _of("x = {}, y = {}", _point(-90, 90), _point(-90, 90)),
    _of("timestamp {}", _up_to(1_600_000_000, 1_760_000_000)),
    _of("ts={} ms", _up_to(1_600_000_000_000, 1_760_000_000_000)),
    _of("snowflake id {}", _n(18)),
    _of('"id": {}, "parent_id": {}', _n(16), _n(15)),
    _of("tweet {} got {} likes", _n(19), _n(5)),
    _of("The IP stack uses port {} and mask 255.255.255.0; localhost is 127.0.0.1.", _up_to(1024, 65535)),
    _of("bind to 0.0.0.0:{}", _up_to(1024, 65535)),
    _of("x = {} + {} * {}", _n(9), _n(7), _n(4)),
    _of("for i in range({}, {}): total += table[i::{}]", _n(4), _n(10), _n(1)),
    _of(
        "color: #{}; background: rgb({}, {}, {})",
        lambda draw: draw.randbytes(3).hex(),
        *(_up_to(0, 255) for _ in range(3)),
    ),
    _of("0x{} is {} in decimal", lambda draw: draw.randbytes(8).hex(), _n(19)),
    _of("CAS {}-{}-{} melts at {} K", _n(4), _n(2), _n(1), _n(4)),
    _of("pi is 3.14159265358979{}", _n(8)),
    _of("[{}, {}, {}, {}]", *(_point(-1, 1) for _ in range(4))),
    _of("p = 0.{}, n = {}, F({}, {}) = {}.{}", _n(4), _n(5), _n(1), _n(3), _n(2), _n(2)),
    _of("U.S. Pat. No. {},{},{}", _up_to(5, 11), _n(3), _n(3)),
    _of("flight {}{} leaves at {}:{}", _one("LH", "BA", "UA"), _n(4), _up_to(10, 23), _up_to(10, 59)),
    _of("room {}, seats {}-{}, rows {} to {}", _n(3), _n(2), _n(2), _n(2), _n(2)),
    _of("score 3-1, 2-0 and {}-{}; odds {}/{}", _n(1), _n(1), _n(2), _n(1)),
    _of("The password must have {} characters and one digit.", _up_to(8, 20)),
    lambda draw: draw.choice(
        (
            "password: required",
            "Forgot your password? Click the link.",
            "password = getpass.getpass()",
            "password: str = None",
        )
    ),
    lambda draw: draw.choice(
        ('api_key = os.environ["API_KEY"]', "api_key=${API_KEY}", "api_key: <your-api-key>", "api_key = 'YOUR_API_KEY'")
    ),
    lambda draw: draw.choice(
        ("token_type: bearer", "max_tokens=4096", "next_page_token = CAUQAA", "The token is expired.")
    ),
    lambda draw: draw.choice(
        (
            "Authorization: Bearer <token>",
            "Authorization: Bearer ${TOKEN}",
            "the bearer of this letter",
            "basic understanding of it",
        )
    ),
    lambda draw: draw.choice(
        ("postgres://${USER}:${PASSWORD}@db/x", "http://example.com:8080/@handle", "https://user:<password>@host/x")
    ),
    lambda draw: draw.choice(
        ("git@github.com:org/repo.git", "lodash@4.17.21", "icon@2x.png", "user@localhost", "getty@tty1.service")
    ),
    lambda draw: draw.choice(
        ("@dataclass(frozen=True)", "@app.route('/x')", "follow @example on social media", "A @ B.T", "meet @ noon")
    ),
    lambda draw: draw.choice(
        (
            "sk-learn-compatible-estimators-and-more",
            "task-management-for-beginners-2",
            "pk_test is public",
            "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        )
    ),
    lambda draw: draw.choice(
        (
            "-----BEGIN PUBLIC KEY-----",
            "Keep your private key secret.",
            "A certificate is signed by an authority.",
            "XXXXX-XXXXX-XXXXX-XXXXX-XXXXX",
        )
    ),
    lambda draw: draw.choice(
        (
            "Call 911 in an emergency.",
            "call foo(1234567)",
            "text 2 columns wide",
            "contact us within 14 days",
            "phone home in 1982",
        )
    ),
    lambda draw: draw.choice(
        (
            "passport control opens at 08:00",
            "a driving licence costs 43.50 pounds",
            "Your SSN has nine digits.",
            "IBAN stands for International Bank Account Number",
        )
    ),
    lambda draw: draw.choice(
        ("mac and cheese for 12", "MAC 10.15.7 or later", "the VIN has 17 characters", "an IMEI has 15 digits")
    ),
    lambda draw: draw.choice(
        (
            "base64 aGVsbG8gd29ybGQ=",
            "Lorem ipsum dolor sit amet 12345",
            "a1b2c3d4e5f6",
            "deadbeef:cafebabe",
            "AAAA-BBBB-CCCC-DDDD",
        )
    ),
)
