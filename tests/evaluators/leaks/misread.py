"""Ways of writing that were misread once, each for its class of error, and texts beside them that give nothing away."""

import random
import string

from tests.evaluators.leaks.identities import digits, valid
from tests.evaluators.leaks.written import Made, key, password

_CONSONANTS = "BCDFGHJKLMNPQRSTVWXYZ"


def _with_slash(draw: random.Random) -> str:
    """As base64 has it where the first six bits are all set: no path."""
    return draw.choice("/+") + key(draw)


def _low_address(draw: random.Random) -> str:
    """With a first octet as versions have, too."""
    return f"{draw.randint(11, 24)}.{draw.randint(101, 250)}.{draw.randint(50, 250)}.{draw.randint(2, 250)}"


def _grouped(draw: random.Random) -> str:
    return f"6{digits(draw, 2)} {digits(draw, 2)} {digits(draw, 2)} {digits(draw, 2)}"


def _letters(draw: random.Random, count: int) -> str:
    return "".join(draw.choice(_CONSONANTS) for _ in range(count))


def _tax_code(draw: random.Random) -> str:
    body = "".join(draw.choice(_CONSONANTS) for _ in range(6))
    made = valid(
        "it.codicefiscale", lambda again: f"{body}71P22F{digits(again, 3)}{again.choice(string.ascii_uppercase)}"
    )
    return made(draw)


def _mistyped(make: Made) -> Made:
    """With another last digit."""

    def made(draw: random.Random) -> str:
        number = make(draw)
        return number[:-1] + str((int(number[-1]) + 1) % 10)

    return made


# A kind, what is written, and the ways of writing it; "@" is where it stands.
MISREAD: tuple[tuple[str, Made, tuple[str, ...]], ...] = (
    (
        "password",
        password,
        (
            *("define('DB_PASSWORD', '@');", 'config.set("password", "@")', 'setProperty("db.password", "@");'),
            *("user/pass: admin / @", "username & password: eva / @", "user eva, pass @", "u: eva p: @"),
            *("the wifi pw is @", "SetEnv DB_PASS @"),
            *("net use Z: \\\\files\\shared /user:eva @", "The door's password used to be @ until May."),
            *("The admin password was changed to @", "Enter '@' as the password", "@ is your new passcode"),
        ),
    ),
    ("api_key", key, ("os.environ.setdefault('SECRET_KEY', '@')", 'headers.put("x-api-key", "@")')),
    ("api_key", lambda draw: f"{key(draw)[:30]}!(^-=x+_{key(draw)[:8]}", ("DJANGO_SECRET_KEY='@'",)),
    ("api_key", _with_slash, ("AWS_SECRET_ACCESS_KEY=@", "auth_token: @", "aws_secret_access_key = @")),
    (
        "ip",
        _low_address,
        (
            *("Block @ in the firewall.", "The abuse report mentions @ twice.", "traceroute shows @ behind two hops"),
            *("whois @ names a provider", "@ was dropped by the firewall"),
        ),
    ),
    ("ip", lambda draw: f"2a02:8108:{draw.randint(1000, 9999)}::{draw.randint(1000, 9999)}", ("Failed login from @.",)),
    (
        "phone",
        _grouped,
        (
            *("Emergency contact: Paul, @", "phone: Maria Lopez @", "callback for Mrs Adler: @"),
            *(
                "She left @ as a callback number.",
                "@ is my mobile number",
                "@ es mi m\u00f3vil",
                "Llama al m\u00f3vil @ los lunes",
            ),
            *('{"homePhone": "@"}',),
        ),
    ),
    ("phone", lambda draw: f"4915112{digits(draw, 6)}", ("GET /sms?to=%2B@&text=hi",)),
    ("phone", lambda draw: f"98{digits(draw, 8)}", ("contact_no: @", "emergency_contact: @")),
    ("email", lambda draw: f"eva{digits(draw, 3)}%40posteo.de", ("/reset?mail=@&step=2",)),
    ("email", lambda draw: f"eva{digits(draw, 2)} (at) posteo (punkt) de", ("Schreib an @!",)),
    ("it_codice_fiscale", _tax_code, ("tax code @", "The contractor gave code @ on the form", "Ref code @")),
    (
        "nl_bsn",
        valid("nl.bsn", lambda draw: digits(draw, 9, "12")),
        ("her citizen service number is @", "employeeBsn: @", "@ is mijn BSN"),
    ),
    (
        "se_personnummer",
        valid("se.personnummer", lambda draw: f"19{draw.randint(50, 99)}0{draw.randint(1, 9)}1{digits(draw, 5)}"),
        ("personnummer @ saknas i registret", "pnr=@"),
    ),
    (
        "pl_pesel",
        valid("pl.pesel", lambda draw: f"7{draw.randrange(10)}0512{digits(draw, 5)}"),
        ("@ to m\u00f3j PESEL",),
    ),
    (
        "in_aadhaar",
        valid("in_.aadhaar", lambda draw: digits(draw, 12, "23456789")),
        ("@ is my Aadhaar number", "Please link @ to my Aadhaar account"),
    ),
    ("br_cpf", valid("br.cpf", lambda draw: digits(draw, 11)), ("@ \u00e9 o meu CPF", '{"customerCpf": "@"}')),
    ("id_nik", lambda draw: f"3273010302{digits(draw, 6)}", ("NIK @ atas nama Budi",)),
    (
        "ssn",
        lambda draw: f"219 0{draw.randint(1, 9)} {digits(draw, 4)}",
        ("Taxpayer (SSN) @ on the form", "customerSsn: @"),
    ),
    ("tr_tckn", valid("tr.tckimlik", lambda draw: digits(draw, 11)), ("T.C. No @",)),
    ("birth_date", lambda draw: f"1991-0{draw.randint(1, 9)}-14", ('{"patientDob": "@"}',)),
    (
        "bank_account",
        lambda draw: digits(draw, 9),
        ("routing 991234567 account @", "Routing/account: 991234567 / @", "ABA 991234567, @"),
    ),
    ("bank_account", lambda draw: digits(draw, 8), ("sort code 20-00-00 account @",)),
    ("passport", lambda draw: f"AAE{digits(draw, 6)}", ("pasaporte espa\u00f1ol @",)),
    (
        "be_national",
        valid("be.nn", lambda draw: f"8{draw.randrange(10)}0512{digits(draw, 5)}"),
        ("num\u00e9ro national @",),
    ),
    (
        "passport",
        lambda draw: f"C0{draw.randint(1, 9)}X00T{draw.randint(10, 99)}",
        ("Mein Reisepass hat die Nummer @.", '{"passport": {"number": "@"}}', "passport:\n  number: @\n"),
    ),
    (
        "passport",
        lambda draw: f"{digits(draw, 2)} {digits(draw, 7)}",
        ("\u041f\u0430\u0441\u043f\u043e\u0440\u0442: @",),
    ),
    ("passport", lambda draw: f"P<UTO{_letters(draw, 8)}<<{_letters(draw, 5)}<{'<' * 20}", ("Scanned:\n@\n",)),
    # Labels within names, with points, in brackets, in the line above; cells under heads with hyphens.
    ("nl_bsn", valid("nl.bsn", lambda draw: f"4{digits(draw, 8)}"), ("customer_bsn: @", "@ (Dutch BSN)", "BSN\n@\n")),
    (
        "nl_bsn",
        valid("nl.bsn", lambda draw: f"4{digits(draw, 8)}"),
        ("naam,BSN-nummer\nAnn,@", "Het nummer is @ (nr. BSN)."),
    ),
    ("imei", valid("imei", lambda draw: f"35{digits(draw, 13)}"), ("device_imei=@", "user.imei=@", "I.M.E.I. @")),
    (
        "pt_nif",
        valid("pt.nif", lambda draw: f"2{digits(draw, 8)}"),
        ("N.I.F. @", "contribuinte @ Gracias.", "cliente_nif=@"),
    ),
    (
        "ar_cuit",
        valid("ar.cuit", lambda draw: f"20{digits(draw, 9)}"),
        ("El CUIT es @.", "cuit_empleado: @"),
    ),
    ("mac", lambda draw: f"e1{digits(draw, 2)}.4a{digits(draw, 2)}.69fc", ("DHCPACK to @ via eth0",)),
    ("licence_plate", lambda draw: f"WA {digits(draw, 4)}7", ("Numer rejestracyjny: @", "Kenteken: @")),
    ("bank_account", lambda draw: f"12-3{digits(draw, 3)}-0{digits(draw, 6)}-00", ("Bank account: @ (ASB)",)),
    ("medical_record", lambda draw: f"2023-{digits(draw, 6)}", ("Patient ID: @, ward B", "hospital_no: @")),
    ("birth_date", lambda draw: f"198{digits(draw, 1)}-02-1{digits(draw, 1)}", ("D.O.B.\n@\n", "born - @")),
    (
        "api_key",
        key,
        (
            *(
                "Der API-Schl\u00fcssel lautet @",
                "Voici la cl\u00e9 API : @",
                "clave de API: @",
                "token d'acc\u00e8s : @",
            ),
            *("API-\u043a\u043b\u044e\u0447: @", "klucz API: @"),
        ),
    ),
    ("api_token", lambda draw: f"django-insecure-{key(draw)}#(b&", ("SECRET_KEY = '@'",)),
    ("password", password, ("mdp: @", "kodeord: @", "WLAN-Schl\u00fcssel: @", "mot_de_passe=@")),
    # Labels of more languages, "#" before another sign, a label's genitive.
    (
        "passport",
        lambda draw: f"K{digits(draw, 7)}",
        (*("pasnummer: @", "\xfatlev\xe9l sz\xe1ma: @", "broj putovnice: @", "nomor paspor @", "passport # = @"),),
    ),
    (
        "driving_licence",
        lambda draw: f"H{digits(draw, 7)}",
        (
            *(
                "DL: @",
                "Florida DL @",
                "DVLA licence: @",
                "Die Nummer ihres F\xfchrerscheins ist @.",
                "\u0159idi\u010dsk\xfd pr\u016fkaz \u010d. @",
                "vozni\u0161ko dovoljenje: @",
                "b\u1eb1ng l\xe1i xe s\u1ed1 @",
            ),
        ),
    ),
    (
        "bank_account",
        lambda draw: digits(draw, 11),
        (
            *(
                "bankgiro: @",
                "sz\xe1mlasz\xe1m: @",
                "tilinumero: @",
                "bankovn\xed \xfa\u010det: @",
            ),
        ),
    ),
    (
        "medical_record",
        lambda draw: digits(draw, 8),
        (
            *(
                "tessera sanitaria: @",
                "numer karty pacjenta: @",
                "\u60a3\u8005\u756a\u53f7: @",
                "patient #@",
                "prontu\xe1rio: @",
            ),
        ),
    ),
    (
        "birth_date",
        lambda draw: f"{draw.randint(10, 28)}.03.19{draw.randint(50, 99)}",
        (
            *(
                "F\xf6delsedatum: @",
                "sz\xfcletett: @",
                "ro\u0111en @",
                "rojen: @",
                "syntynyt @",
                "do\u011fum g\xfcn\xfc: @",
                "\u51fa\u751f\u4e8e@",
                "<td>n\xe9 le</td><td>@</td>",
                "born_on: @",
            ),
        ),
    ),
    (
        "phone",
        lambda draw: f"612 {digits(draw, 3)} {digits(draw, 3)}",
        (
            *(
                "Ll\xe1mame al @ cuando llegues.",
                "bel mij op @",
                "R\xfcckruf unter @",
                "t\u0101lrunis: @",
                "nomor WA: @",
                "WhatsApp me at @",
                "Numer telefonu klienta to @.",
            ),
        ),
    ),
    (
        "licence_plate",
        lambda draw: f"LK{draw.randint(51, 75)} {_letters(draw, 3)}",
        (*("Registration: @", "rendsz\xe1m: @", "\u8f66\u724c\u53f7: @", "registarska oznaka: @", "nopol @"),),
    ),
    ("password", lambda draw: digits(draw, 4), ("PIN: @", "Your PIN is @.", '"pin_code": "@"', "Der PIN-Code ist @")),
    ("url_credentials", lambda draw: f"eva:P@ss{digits(draw, 3)}kQ@mq", ("amqp://@:5672//",)),
    # Identity numbers with a wrong check digit, behind their own names.
    (
        "national_id",
        _mistyped(valid("pl.pesel", lambda draw: f"8{draw.randrange(10)}0323{digits(draw, 5)}")),
        ("PESEL: @",),
    ),
    ("national_id", _mistyped(valid("nl.bsn", lambda draw: f"4{digits(draw, 8)}")), ("BSN @",)),
    ("national_id", _mistyped(valid("ca.sin", lambda draw: f"4{digits(draw, 8)}")), ("Canadian SIN: @",)),
)

# "@" is a number of the length.
LEFT_OUT: tuple[tuple[str, int], ...] = (
    *(("phone model 8305-@", 4), ("SKU 0049-2210-@", 4), ("phoneModel: 8305-@", 4), ("call it @ times", 10)),
    *(("Write to name [at] company [dot] com, form @.", 1), ("user (at) example (punkt) de @", 1)),
    *(("define('DB_PASSWORD', 'your_password_here'); // @", 2), ("define('DB_PASSWORD', getenv('DB_PASSWORD_@'));", 1)),
    *(('login("password", "email", "first_name", @)', 1), ('get("password", "confirm_password", @)', 2)),
    *(("secret_file=/run/secrets/token@", 1), ("token: /var/run/secrets/kubernetes.io/serviceaccount@", 1)),
    *(
        ("private_key: ~/Keys/Project@/id_rsa", 4),
        ("Login from web-3:@ refused", 4),
        ("New login at 2024-03-11T10:22:@", 2),
    ),
    *(
        ("Block 3.2.1.@ of the specification", 1),
        ("Firmware 12.4.3.@ was released", 1),
        ('{"nextPageToken": "CAUQAA@"}', 6),
    ),
    *(
        ("@ to the passport office", 8),
        ("article @ is a phone case", 9),
        ("phoneCallsTotal: @", 7),
        ("callback id @", 9),
    ),
    *(
        ("info [at] yoursite [dot] org, form @", 2),
        ("passwordMinLength: @", 2),
        ("secret = '{{ lookup(env)-x_y=z!w#(12)+@ }}'", 2),
        ("The password was changed on 2024-05-@", 2),
        ("width=100%40px is no address @", 2),
        ("WhatsApp 2.24.10.@ update", 2),
    ),
    *(
        ("@ passport applications", 8),
        ("phone calls: @ minutes", 8),
        ("orderNumber: @", 10),
        ("pages 100 to @ is the SSN form", 3),
        ("Health plan 2024-2025, page @", 2),
        ("https://deploy@git.acme.io/infra-@.git", 2),
        ("plate: @ A", 2),
    ),
    *(
        ("Ligue 1 2023-2024, day @", 1),
        ("NIR spectroscopy at @ nm", 4),
        ("CPF, ISSN 1234-@", 4),
        ("CPR @:2 compressions", 2),
        ("Wine (DL) @ vintage", 4),
        ("birth rate 1984-@", 2),
        ("El total de la cuenta: @ euros", 3),
        ("registration fee @", 4),
        ("PIN code: @", 6),
        ("pin @ of the connector", 4),
        ("PIN is @ characters", 1),
    ),
)
