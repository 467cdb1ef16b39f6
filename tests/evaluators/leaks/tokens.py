"""Keys and tokens of nobody. Put together here, so that no file holds anything that looks like one."""

import base64
import json
import random
import string
from collections.abc import Callable

Made = Callable[[random.Random], str]
ALNUM = string.ascii_letters + string.digits
UPPER = string.ascii_uppercase + string.digits
HEX = "0123456789abcdef"
SAFE = ALNUM + "-_"


def run(draw: random.Random, length: int, of: str = ALNUM) -> str:
    """So many characters, the last a digit."""
    return "".join(draw.choice(of) for _ in range(length - 1)) + draw.choice(string.digits)


def marked(mark: str, length: int, of: str = ALNUM, after: str = "") -> Made:
    return lambda draw: mark + run(draw, length, of) + after


def jwt(draw: random.Random) -> str:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    return f"{part({'alg': 'HS256', 'typ': 'JWT'})}.{part({'sub': run(draw, 8)})}.{run(draw, 43, SAFE)}"


def pem(label: str) -> Made:
    def made(draw: random.Random) -> str:
        lines = "\n".join(run(draw, 64, ALNUM + "+/") for _ in range(6))
        return f"-----{'BEGIN'} {label}-----\n{lines}\n-----{'END'} {label}-----"

    return made


def product_key(draw: random.Random) -> str:
    return "-".join(
        "".join(draw.choice("BCDFGHJKMPQRTVWXY2346789") for _ in range(4)) + draw.choice("23789") for _ in range(5)
    )


TOKENS: dict[str, tuple[Made, ...]] = {
    "aws_key": (marked("AK" + "IA", 16, UPPER), marked("AS" + "IA", 16, UPPER)),
    "google_key": (marked("AI" + "za", 35, SAFE), marked("GOC" + "SPX-", 28, SAFE), marked("ya" + "29.", 60, SAFE)),
    "azure_key": (marked("Account" + "Key=", 86, ALNUM + "+/", "=="),),
    "github_token": (
        *(marked(f"gh{letter}_", 36) for letter in "pousr"),
        lambda draw: "github" + "_pat_" + run(draw, 22) + "_" + run(draw, 59),
    ),
    "gitlab_token": (marked("gl" + "pat-", 20, SAFE), marked("gl" + "rt-", 20, SAFE), marked("gl" + "dt-", 20, SAFE)),
    "slack_token": (
        lambda draw: "xo" + f"xb-{run(draw, 12, string.digits)}-{run(draw, 12, string.digits)}-{run(draw, 24)}",
        lambda draw: "xo" + f"xp-{run(draw, 11, string.digits)}-{run(draw, 11, string.digits)}-{run(draw, 32, HEX)}",
    ),
    "slack_webhook": (
        lambda draw: (
            "https://hooks.slack" + f".com/services/T{run(draw, 8, UPPER)}/B{run(draw, 8, UPPER)}/{run(draw, 24)}"
        ),
    ),
    "stripe_key": (marked("sk" + "_live_", 24), marked("rk" + "_test_", 24), marked("sk" + "_test_", 99)),
    "anthropic_key": (marked("sk-" + "ant-api03-", 93, SAFE, "AA"),),
    "openai_key": (marked("s" + "k-", 48), marked("sk-" + "proj-", 80, SAFE), marked("sk-" + "svcacct-", 60, SAFE)),
    "huggingface_token": (marked("h" + "f_", 34),),
    "npm_token": (marked("np" + "m_", 36),),
    "pypi_token": (marked("py" + "pi-AgEIcHlwaS5vcmc", 70, SAFE),),
    "twilio_key": (marked("S" + "K", 32, HEX),),
    "sendgrid_key": (lambda draw: f"S{'G'}.{run(draw, 22, SAFE)}.{run(draw, 43, SAFE)}",),
    "telegram_token": (lambda draw: f"{run(draw, 9, '123456789')}:AA{run(draw, 33, SAFE)}",),
    "discord_token": (lambda draw: f"M{run(draw, 23)}.{run(draw, 6)}.{run(draw, 27, SAFE)}",),
    "jwt": (jwt,),
    "private_key": tuple(pem(f"{of}PRIVATE KEY") for of in ("RSA ", "EC ", "OPENSSH ", "", "ENCRYPTED ", "DSA ")),
    "certificate": (pem("CERTIFICATE"),),
    "windows_key": (product_key,),
    "api_token": (
        marked("shp" + "at_", 32, HEX),
        marked("da" + "pi", 32, HEX),
        marked("dop" + "_v1_", 64, HEX),
        marked("gs" + "k_", 52),
        marked("NR" + "AK-", 27, UPPER),
        marked("hv" + "s.", 90, SAFE),
        lambda draw: "gl" + f"sa_{run(draw, 32)}_{run(draw, 8, HEX)}",
        marked("dckr" + "_pat_", 27, SAFE),
        marked("key" + "-", 32, HEX),
        marked("shp" + "ss_", 32, HEX),
    ),
}
