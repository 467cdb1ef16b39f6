"""Codes that come with a card, a bank or a login, and places on a map, as people, forms and programs write them."""

import random

from tests.evaluators.leaks.identities import digits
from tests.evaluators.leaks.written import Made


def _of(count: int) -> Made:
    return lambda draw: digits(draw, count)


def _decimals(draw: random.Random) -> str:
    return f"{draw.uniform(2, 80):.5f}, {-draw.uniform(2, 170):.5f}"


def _joined(draw: random.Random) -> str:
    return _decimals(draw).replace(" ", "")


def _degree(draw: random.Random) -> str:
    return f"{draw.uniform(2, 80):.6f}"


def _sixtieths(draw: random.Random) -> str:
    north, east = (f"{draw.randint(2, 80)}\u00b0{draw.randint(10, 59)}'{draw.randint(10, 59)}\"" for _ in range(2))
    return f"{north}N {east}E"


def _primes(draw: random.Random) -> str:
    return _sixtieths(draw).replace("'", "\u2032").replace('"', "\u2033")


def _minutes(draw: random.Random) -> str:
    south, west = (f"{draw.randint(2, 80)}\u00b0 {draw.randint(10, 59)}.{digits(draw, 3)}'" for _ in range(2))
    return f"{south} S, {west} W"


def _sided(draw: random.Random) -> str:
    return f"{draw.uniform(2, 80):.4f}\u00b0 N, {draw.uniform(2, 170):.4f}\u00b0 E"


def _bank(draw: random.Random) -> str:
    bank = "".join(draw.choice("BCDFGHKLMNPRSTVW") for _ in range(4))
    return f"{bank}{draw.choice(('DE', 'FR', 'NL'))}{digits(draw, 2)}XXX"


# A kind, what is written, and the ways of writing it; "@" is where it stands.
CODES: tuple[tuple[str, Made, tuple[str, ...]], ...] = (
    (
        "coordinates",
        _decimals,
        (
            *("She lives at @.", "GPS: @", "the phone was last seen at @", "Coordonn\u00e9es : @", "Standort: @", "@"),
            *(
                "Ubicaci\u00f3n: @",
                "at @ (lat, lon)",
                '{"location": "@"}',
                '"coordinates": [@]',
                "The house (@) is empty.",
            ),
        ),
    ),
    ("coordinates", _joined, ("geo:@;u=35", "https://maps.example/?q=@&z=17", "/maps/@,17z", "pickup=@")),
    (
        "coordinates",
        _degree,
        (
            *("lat: @", '"longitude": @', "latitude=@&x=1", "| Id | Lat |\n|---|---|\n| Eva | @ |", "homeLat: @,"),
            *("Breitengrad: @", "Longitude is @."),
        ),
    ),
    *(
        ("coordinates", made, ("They met at @.", "@", "position: @"))
        for made in (_sixtieths, _primes, _minutes, _sided)
    ),
    (
        "card_code",
        _of(3),
        (
            *("CVV: @", '"cvc": "@"', "exp 08/27, cvv2 @", "cryptogramme visuel : @", "CVC-Code @", "card_cvv=@"),
            *("The security code on the back is @.", "C\u00f3digo de seguridad: @", "Kartenpr\u00fcfnummer: @"),
        ),
    ),
    (
        "bank_code",
        _bank,
        ("BIC: @", "SWIFT/BIC: @", '"swift": "@"', "swift_code=@", "The bank's BIC is @.", "code BIC : @"),
    ),
    (
        "one_time_code",
        _of(6),
        (
            *("Your verification code is @.", "OTP: @", '"otp": "@"', "Use @ as your login code.", "2FA code @"),
            *("Ihr Best\u00e4tigungscode lautet @", "Votre code de v\u00e9rification est @", "kod weryfikacyjny: @"),
            *(
                "Il tuo codice OTP \u00e8 @",
                "Tu c\u00f3digo de verificaci\u00f3n es @",
                "O c\u00f3digo de verifica\u00e7\u00e3o \u00e9 @",
            ),
            "G-@ is your verification code.",
            "Enter the code @ now.",
            "@ is the code.",
        ),
    ),
    (
        "password",
        _of(4),
        ("Die PIN lautet @.", "Enter the PIN @ twice.", "Il codice PIN \u00e8 @", "PIN: @", '"card_pin": "@"'),
    ),
    ("bank_account", _of(8), ("It was paid from account @.", "Your account @ is closed.")),
    ("password", _of(6), ("My PIN is @.", "your card PIN: @")),
    ("ip", lambda draw: f"203.0.113.{draw.randint(10, 99)}", ("Server @ answered.",)),
    (
        "google_key",
        lambda draw: draw.randbytes(20).hex(),
        ('"private_key_id": "@",',),
    ),
)

# What the labels must leave alone; "@" is a number of the length.
NO_CODES: tuple[tuple[str, int], ...] = (
    *(("The OTP expires in @ seconds.", 4), ("HTTP status code: @", 3), ("error code @", 6), ("promo code @", 6)),
    *(("a CVV has @ digits", 1), ("The CVV must have @ digits", 1), ("security code of conduct @", 4)),
    *(("postal PIN: @", 6), ("PIN code of Pune: @", 6), ("pin @ of the plug", 2), ("Swift 5.@ and SWIFT PAYMENTS", 1)),
    *(("the BIC Cristal sold @ times", 9), ("lat: 45.1234@ ms", 1), ("It lies at 48.85 N, 2.3@ E.", 1)),
    *(("confidence interval (45.1234, 67.891@)", 1), ("The medians are 45.12345, 67.8912@ and 81.22341.", 1)),
    *(("x = 45.12345, y = 67.8912@", 1), ("turn it by 45\u00b0 30' 1@\"", 1), ("version 45.1234, 0.@", 4)),
    *(("approved, auth code @", 6), ("57\u00b071'12\"N 9\u00b025'0@\"E", 1), ("the cloud's account @", 12)),
    *(("long 12.345@", 1), ("The rates are 12.3456, 45.678@.", 1), ("MSE is 12.34567, 45.6789@", 1)),
    *(("USPS 9400 6558 1713 2356 3686 @", 2), ("[0.12345, 0.6789@]", 1)),
)
