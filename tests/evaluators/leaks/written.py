"""Ways in which people, models and machines write what is personal or secret: markup, command lines, languages."""

import random
import string
from collections.abc import Callable
from hashlib import sha256

from tests.evaluators.leaks.identities import date, digits, grouped, valid

Made = Callable[[random.Random], str]
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_RIPPLE = "rpshnaf39wBUDNEGHJKLM4PQRST7VWXYZ2bcdeCg65jkm8oFqi1tuvAxyz"


def password(draw: random.Random) -> str:
    """A word, a number and signs, in one of several orders."""
    word = "".join(draw.choice(string.ascii_lowercase) for _ in range(5))
    number, sign = str(draw.randint(20, 999)), draw.choice("!?+^")
    return draw.choice(
        (f"{word.title()}{number}{sign}kQ", f"{word}{sign}{number}TzW", f"x{number}{word.upper()}v{sign}7")
    )


def key(draw: random.Random) -> str:
    """Letters of both cases, and digits."""
    return "".join(draw.choice(string.ascii_letters + string.digits) for _ in range(35)) + "a7K"


def based(prefix: bytes, length: int, alphabet: str = _BASE58) -> Made:
    """So many random bytes behind the prefix, in Base58 with a checksum."""

    def made(draw: random.Random) -> str:
        body = prefix + draw.randbytes(length)
        number, text = int.from_bytes(body + sha256(sha256(body).digest()).digest()[:4], "big"), ""
        while number:
            number, rest = divmod(number, 58)
            text = alphabet[rest] + text
        return alphabet[0] * (prefix[:1] == b"\0") + text

    return made


def _of(count: int) -> Made:
    return lambda draw: digits(draw, count)


def _mac(draw: random.Random) -> str:
    return "3c:" + ":".join(f"{byte:02x}" for byte in draw.randbytes(4)) + ":af"


def _day(draw: random.Random) -> str:
    return f"{draw.randint(1940, 2005)}-{draw.randint(10, 12)}-{draw.randint(10, 28)}"


def _host(draw: random.Random) -> str:
    return f"{draw.randint(30, 220)}.{draw.randint(1, 250)}.{draw.randint(1, 250)}.{draw.randint(1, 250)}"


# A kind, what is written, and the ways of writing it; "@" is where it stands.
WRITTEN: tuple[tuple[str, Made, tuple[str, ...]], ...] = (
    (
        "password",
        password,
        (
            *(
                "- **Wi-Fi password:** `@`",
                "**Password**: @",
                "**Temporary passcode:** **@**",
                "The new password \u2192 @",
            ),
            *(
                "Password \u2013 @",
                "Password\n@",
                "User: eva\nPassword:\n      @",
                "<pwd>@</pwd>",
                "<Password>@</Password>",
            ),
            *('<setting name="password" value="@"/>', "<tr><td>Password</td><td>@</td></tr>", "--admin-password @"),
            *("pg_dump --password=@ shop", "mysqldump -u eva -p@ shop", "docker login -u eva -p @ reg.example.net"),
            *(
                "redis-cli -h cache -a @",
                "ENV SMTP_PASSWORD @",
                "requirepass @",
                "machine ftp.example.net login eva password @",
            ),
            *(
                "CREATE USER eva IDENTIFIED BY '@';",
                "I reset the password to @ yesterday.",
                "Sign in with the password @.",
            ),
            *("The password for the guest network is @", "Password of the test account: @", "Pass for staging: @"),
            *(
                "Das Passwort f\u00fcr das Portal lautet @",
                "Il tuo password \u00e8 @",
                "Votre mot de passe est \u00ab@\u00bb",
            ),
            *(
                "L\u00f6senord: @",
                "Adgangskode: @",
                "Salasana: @",
                "Heslo: @",
                "\u015eifre: @",
                "Jelsz\u00f3: @",
                "Parola: @",
            ),
            *(
                "Lozinka: @",
                "Has\u0142o: @",
                "\u041f\u0430\u0440\u043e\u043b\u044c \u2014 @",
                "\u041f\u0430\u0440\u043e\u043b\u044c: @",
            ),
            *(
                "\u03ba\u03c9\u03b4\u03b9\u03ba\u03cc\u03c2: @",
                "\u5bc6\u7801\u662f@",
                "\u30d1\u30b9\u30ef\u30fc\u30c9\u306f@",
                "\ube44\ubc00\ubc88\ud638: @",
            ),
            *(
                "\u0643\u0644\u0645\u0629 \u0627\u0644\u0645\u0631\u0648\u0631: @",
                "\u05e1\u05d9\u05e1\u05de\u05d4: @",
                '{\\"password\\": \\"@\\"}',
            ),
            *("| Login | Password |\n| --- | --- |\n| eva | @ |", "user,password,role\neva,@,admin\n"),
        ),
    ),
    (
        "api_key",
        key,
        (
            *("**API key:** `@`", "API key - @", "<accessKey>@</accessKey>", "--auth-token @", "ENV SERVICE_TOKEN @"),
            *("| Service | API key |\n|:--|:--|\n| maps | @ |", '{\\"client_secret\\": \\"@\\"}', "api_key%3D@"),
            *("AZURE_DEVOPS_PAT=@", "Ocp-Apim-Subscription-Key: @", "Use the key @ for the sandbox.", "Secret key\n@"),
        ),
    ),
    ("authorization", key, ("Authorization: @", '"authorization": "@"')),
    (
        "birth_date",
        _day,
        (
            *(
                "date_of_birth: @",
                '{"dateOfBirth": "@"}',
                "| Name | DOB |\n|---|---|\n| Eva | @ |",
                "Born: @",
                "Geburtstag: @",
            ),
            *(
                "She was born on @ in Graz.",
                "n\u00e9e le @ \u00e0 Nantes",
                "nacido el @",
                "nato il @",
                "geboren am @ in Linz",
            ),
            *(
                "\u0414\u0430\u0442\u0430 \u0440\u043e\u0436\u0434\u0435\u043d\u0438\u044f: @",
                "\u51fa\u751f\u65e5\u671f\uff1a@",
                "Do\u011fum tarihi: @",
                "F\u00f8dselsdato: @",
            ),
        ),
    ),
    (
        "phone",
        grouped(_of(9), 3, 3, 3),
        (
            *(
                "Puede llamar a Andr\u00e9s Pe\u00f1a al @.",
                "Mette kan tr\u00e6ffes p\u00e5 @.",
                "Volejte Petr Mal\u00fd na \u010d\u00edslo @.",
                "\u0417\u0432\u043e\u043d\u0438\u0442\u0435 \u043f\u043e \u043d\u043e\u043c\u0435\u0440\u0443 @",
                "Tel. kom. Zofia Kowalska: @",
            ),
        ),
    ),
    (
        "phone",
        _of(9),
        (
            *(
                "Mobil: @",
                "Telem\u00f3vel: @",
                "Fono: @",
                "t\u00e9l\u00e9phone : @",
                "Tlf.: @",
                "GSM: @",
                "No. HP: @",
                "\u260e tel: @",
            ),
            *(
                "\u041c\u043e\u0431\u0438\u043b\u044c\u043d\u044b\u0439 \u0442\u0435\u043b\u0435\u0444\u043e\u043d: @",
                "\u039a\u03b9\u03bd\u03b7\u03c4\u03cc: @",
                "\u7535\u8bdd\uff1a@",
                "\u643a\u5e2f\u96fb\u8a71: @",
                "\uc804\ud654\ubc88\ud638: @",
            ),
            *(
                "\u0631\u0642\u0645 \u0627\u0644\u062c\u0648\u0627\u0644: @",
                "\u05d8\u05dc\u05e4\u05d5\u05df: @",
                "| Name | Phone |\n|---|---|\n| Eva | @ |",
            ),
        ),
    ),
    ("mac", _mac, ("DHCPACK to @ via eth0", "mac_address: @", "the station @ left", "link/ether @ brd")),
    (
        "ip",
        _host,
        ("After the upgrade, requests from @ failed.", "After the release of version 2 @ was blocked.", "src=@ dst=-"),
    ),
    (
        "passport",
        lambda draw: "E" + digits(draw, 7),
        (
            "\u62a4\u7167\u53f7\u7801 @",
            "\u30d1\u30b9\u30dd\u30fc\u30c8\u756a\u53f7: @",
            "\u041f\u0430\u0441\u043f\u043e\u0440\u0442: @",
            "Passeport n\u00b0 @",
            "Pasaport no: @",
        ),
    ),
    (
        "passport",
        lambda draw: f"{digits(draw, 2)}HA{digits(draw, 5)}",
        ("Passeport n\u00b0 @", "num\u00e9ro de passeport : @"),
    ),
    (
        "driving_licence",
        lambda draw: "B" + digits(draw, 8),
        ("Permiso de conducir @", "Patente di guida n. @", "K\u00f6rkort nr @", "\u9a7e\u9a76\u8bc1\u53f7 @"),
    ),
    (
        "bank_account",
        _of(10),
        (
            "A/C No. @",
            "num\u00e9ro de compte @",
            "\u8d26\u53f7\uff1a@",
            "Numer rachunku: @",
            "N\u00famero de cuenta: @",
        ),
    ),
    ("national_id", _of(12), ("Carte nationale d'identit\u00e9 n\u00b0 @", "Obcansk\u00fd pr\u016fkaz: @")),
    ("ru_inn", valid("ru.inn", lambda draw: "77" + digits(draw, 10)), ("\u0418\u041d\u041d @", "INN: @")),
    ("is_kennitala", valid("is_.kennitala", lambda draw: "120174" + digits(draw, 3) + "9"), ("Kennitala: @",)),
    ("jmbg", valid("si.emso", lambda draw: "010100650" + digits(draw, 4)), ("EM\u0160O: @", "JMBG @")),
    ("bg_egn", valid("bg.egn", lambda draw: date(draw) + digits(draw, 4)), ("\u0415\u0413\u041d: @",)),
    ("gr_amka", valid("gr.amka", lambda draw: "010160" + digits(draw, 5)), ("\u0391\u039c\u039a\u0391: @",)),
    ("gr_afm", valid("gr.vat", lambda draw: digits(draw, 9, "123")), ("\u0391\u03a6\u039c: @",)),
    (
        "il_id",
        valid("il.idnr", lambda draw: digits(draw, 9, "23")),
        ("\u05ea\u05e2\u05d5\u05d3\u05ea \u05d6\u05d4\u05d5\u05ea @",),
    ),
    ("crypto_wallet", based(b"\x41", 20), ("TRON: @", "from=@ value=0")),
    ("crypto_wallet", based(b"\x30", 20), ("LTC @",)),
    ("crypto_wallet", based(b"\x1e", 20), ("https://dogechain.example/address/@",)),
    ("crypto_wallet", based(b"\0", 20, _RIPPLE), ("XRP wallet @",)),
    (
        "crypto_wallet",
        lambda draw: "0x" + draw.randbytes(20).hex(),
        ("from=@ value=0", "https://scan.example/address/@"),
    ),
    ("telegram_token", lambda draw: f"{digits(draw, 10)}:AA{key(draw)[:33]}", ("https://api.telegram.org/bot@/getMe",)),
    (
        "github_token",
        lambda draw: "gh" + "p_" + key(draw)[:36],
        ('"log": "line\\n@"', "GITHUB_@", "\u4ee4\u724c@\u3002"),
    ),
)

# What the wider labels must leave alone; "@" is a number of the length.
LEFT_ALONE: tuple[tuple[str, int], ...] = (
    *(("305 - 427 - 906@ = -5462", 1), ("requires libfoo >= 9.25.189.@, < 10", 2), ("password: !vault_ref app@/db", 2)),
    *(
        (
            "\u30d1\u30b9\u30ef\u30fc\u30c9\u306f@\u6587\u5b57\u4ee5\u4e0a\u306b\u3057\u3066\u304f\u3060\u3055\u3044\u3002",
            2,
        ),
        ("The depot lies at 60.847081, 1.7761@.", 2),
        ("\u767a\u9001\u3055\u308c\u307e\u3057\u305f\u3002\nDie Softwareversion 8.16.35.@ behebt den Fehler.", 2),
    ),
    *(("The driving licence act of @ applies.", 4), ("Her health plan and health insurance cost @ francs.", 5)),
    *(
        ("The passport office handled @ requests.", 8),
        ("Passport fees: @ dollars", 5),
        ("a savings account with @ euros", 6),
    ),
    *(
        ("national identity card programme, @ issued", 8),
        ("Votre num\u00e9ro de commande @ est pr\u00eat.", 10),
        ("num\u00e9ro de s\u00e9rie @", 10),
    ),
    *(
        ("mobile subscribers: @", 8),
        ("phone sales reached @ units", 8),
        ("cell count @ per ml", 7),
        ("call it @ times", 10),
    ),
    *(("fax pages: @", 7), ("the hotline took @ calls", 7), ("phones sold @", 8), ("a bank account of @ francs", 7)),
    *(
        ("The password hash is SHA-@.", 3),
        ("The password is Base@-encoded.", 2),
        ("password: VARCHAR@", 2),
        ("| Pass | @.00% |", 2),
    ),
    *(("The password policy is ISO@.", 4), ("password: !vault @", 1), ("'password' => 'required|string|min:@'", 1)),
    *(
        ("secret: db-credentials-v@", 1),
        ("secret: my-other-secret-@", 4),
        ("api_key: test_key_@", 5),
        ("token: page-token-@-name", 1),
    ),
    *(
        ("postgres://user:password@localhost:@/x", 4),
        ("amqp://guest:guest@localhost:@/", 4),
        ("curl -u username:password https://x/@", 1),
    ),
    *(
        ("xoxb-token-goes-here-@", 3),
        ("-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY----- @", 1),
        ("if line == '-----BEGIN CERTIFICATE-----': @", 1),
    ),
    *(
        ("sk-learn-contrib-project-@-release", 4),
        ("ssh git@gitlab.example.com -p @", 2),
        ("FileVersion 4.29.29.@", 3),
        ("mysql 8.0.36.@", 2),
    ),
    *(
        ("ProductVersion: 10.0.19.@", 1),
        ("EC 3.4.21.@", 1),
        ("kernel-5.10.0.@", 2),
        ("Abschnitt 3.12.4.@", 1),
        ("setup-4.12.0.@.exe", 2),
    ),
    *(
        ("9 223 372 036 854 775 @", 3),
        ("the numbers 06 12 23 34 41 @", 2),
        ("NDC 08293-106-@", 2),
        ("rows 123 45 @", 4),
    ),
    *(("key fingerprint 3c:11:22:33:44:55:66:77:88:99:aa:bb:cc:dd:ee:@", 2), ("The opera was born on 3 May 17@.", 2)),
    *(
        ("Ada Lovelace was born on 10 December 18@.", 2),
        ("He was born on 3 May 1931 and died in 19@.", 2),
        ("pwd: C:\\Users\\eva@", 1),
    ),
    *(
        ("name,phone model,year\nEva,Pixel 8 Pro,20@\n", 2),
        ("| Password policy | Length |\n|---|---|\n| standard | 1@ characters |", 1),
    ),
)
