"""Numbers of nobody that are formed as people's are; check digits by python-stdnum, not by the code under test."""

import random
from collections.abc import Callable
from importlib import import_module

DIGITS = "0123456789"
Made = Callable[[random.Random], str]


def digits(draw: random.Random, count: int, first: str = "123456789") -> str:
    return draw.choice(first) + "".join(draw.choice(DIGITS) for _ in range(count - 1))


def date(draw: random.Random) -> str:
    """YYMMDD."""
    return f"{draw.randint(40, 99)}{draw.randint(1, 12):02}{draw.randint(1, 28):02}"


def valid(module: str, made: Made) -> Made:
    """Draws until the reference calls it valid."""

    def draw_valid(draw: random.Random) -> str:
        is_valid = import_module(f"stdnum.{module}").is_valid
        while not is_valid(number := made(draw)):
            pass
        return number

    return draw_valid


def grouped(made: Made, *sizes: int, by: str = " ") -> Made:
    """Its characters in groups; `by` is one separator, or one for each joint."""

    def draw_grouped(draw: random.Random) -> str:
        text, parts = made(draw), []
        for size in sizes:
            parts.append(text[:size])
            text = text[size:]
        joints = by if len(by) == len(sizes) - 1 else by[0] * (len(sizes) - 1)
        return "".join(part + joint for part, joint in zip(parts, joints + " ", strict=True)).rstrip() + text

    return draw_grouped


def birth(draw: random.Random, order: str = "ymd") -> str:
    year, month, day = (date(draw)[i : i + 2] for i in (0, 2, 4))
    return "".join({"y": year, "m": month, "d": day}[part] for part in order)


def card(prefix: str, length: int) -> Made:
    return valid("luhn", lambda draw: prefix + digits(draw, length - len(prefix), DIGITS))


def iban(country: str, made: Made) -> Made:
    def draw_iban(draw: random.Random) -> str:
        account = made(draw)
        rest = int("".join(str(int(c, 36)) for c in account + country + "00")) % 97
        return f"{country}{98 - rest:02}{account}"

    return draw_iban


def nuss(draw: random.Random) -> str:
    """Of Spain's social security: two digits check the others."""
    number = digits(draw, 10)
    return f"{number}{int(number) % 97:02}"


def in_fours(made: Made) -> Made:
    def draw_in_fours(draw: random.Random) -> str:
        text = made(draw)
        return " ".join(text[i : i + 4] for i in range(0, len(text), 4))

    return draw_in_fours


def of(count: int, first: str = "123456789") -> Made:
    return lambda draw: digits(draw, count, first)


CARDS: tuple[Made, ...] = (
    card("4", 16),
    grouped(card("4", 16), 4, 4, 4, 4),
    grouped(card("4", 16), 4, 4, 4, 4, by="-"),
    grouped(card("52", 16), 4, 4, 4, 4),
    card("2321", 16),
    grouped(card("37", 15), 4, 6, 5),
    card("34", 15),
    grouped(card("6011", 16), 4, 4, 4, 4, by="-"),
    grouped(card("3530", 16), 4, 4, 4, 4),
    grouped(card("36", 14), 4, 6, 4),
    card("622126", 16),
    grouped(card("2201", 16), 4, 4, 4, 4, by="\u00a0"),
)
IBANS: tuple[Made, ...] = (
    iban("DE", of(18)),
    in_fours(iban("DE", of(18))),
    iban("GB", lambda draw: "NWBK" + digits(draw, 14)),
    in_fours(iban("GB", lambda draw: "BARC" + digits(draw, 14))),
    in_fours(iban("FR", lambda draw: digits(draw, 20) + "M" + digits(draw, 2))),
    iban("ES", of(20)),
    in_fours(iban("NL", lambda draw: "INGB" + digits(draw, 10))),
    iban("IT", lambda draw: "X" + digits(draw, 22)),
    in_fours(iban("CH", of(17))),
    iban("NO", of(11)),
    in_fours(iban("PL", of(24))),
    iban("AT", of(16)),
    grouped(iban("IE", lambda draw: "AIBK" + digits(draw, 14)), 4, 4, 4, 4, 4, by="-"),
)
IDENTITIES: dict[str, tuple[str, tuple[Made, ...]]] = {  # kind: a label (empty: none is needed), how it is written
    "gb_nino": (
        "",
        (lambda draw: "AB" + digits(draw, 6) + "C", grouped(lambda d: "JG" + digits(d, 6) + "A", 2, 2, 2, 2, 1)),
    ),
    "gb_nhs": ("NHS number", (valid("gb.nhs", of(10)), grouped(valid("gb.nhs", of(10)), 3, 3, 4))),
    "de_steuer_id": ("Steuer-ID", (valid("de.idnr", of(11)), grouped(valid("de.idnr", of(11)), 2, 3, 3, 3))),
    "fr_nir": (
        "",
        (valid("fr.nir", lambda d: "1" + f"{d.randint(50, 99)}{d.randint(1, 12):02}" + "75" + digits(d, 8)),),
    ),
    "es_dni": ("", (valid("es.dni", lambda d: digits(d, 8) + d.choice("TRWAGMYFPDXBNJZSQVHLCKE")),)),
    "es_nuss": ("n\u00famero de la Seguridad Social", (nuss, grouped(nuss, 2, 8), grouped(nuss, 2, 8, by="/"))),
    "es_nie": ("", (valid("es.nie", lambda d: d.choice("XYZ") + digits(d, 7) + d.choice("TRWAGMYFPDXBNJZSQVHLCKE")),)),
    "it_codice_fiscale": (
        "",
        (
            valid(
                "it.codicefiscale",
                lambda d: (
                    "RSSMRA"
                    + str(d.randint(50, 99))
                    + f"T{d.randint(10, 28)}H501"
                    + d.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
                ),
            ),
        ),
    ),
    "nl_bsn": ("BSN", (valid("nl.bsn", of(9)), grouped(valid("nl.bsn", of(9)), 3, 3, 3, by="."))),
    "be_national": ("", (grouped(valid("be.nn", lambda d: date(d) + digits(d, 5)), 2, 2, 2, 3, 2, by="..-."),)),
    "pl_pesel": ("PESEL", (valid("pl.pesel", lambda d: date(d) + digits(d, 5)),)),
    "se_personnummer": (
        "",
        (grouped(valid("se.personnummer", lambda d: "19" + date(d) + digits(d, 4)), 8, 4, by="-"),),
    ),
    "fi_hetu": (
        "",
        (
            valid(
                "fi.hetu", lambda d: birth(d, "dmy") + "-" + digits(d, 3) + d.choice("0123456789ABCDEFHJKLMNPRSTUVWXY")
            ),
        ),
    ),
    "no_fodselsnummer": ("fødselsnummer", (valid("no.fodselsnummer", lambda d: birth(d, "dmy") + digits(d, 5)),)),
    "dk_cpr": ("CPR", (grouped(valid("dk.cpr", lambda d: birth(d, "dmy") + digits(d, 4)), 6, 4, by="-"),)),
    "ie_pps": ("PPS number", (valid("ie.pps", lambda d: digits(d, 7) + d.choice("ABCDEFGHIJKLMNOPQRSTUVW")),)),
    "pt_nif": ("NIF", (valid("pt.nif", of(9, "12")), grouped(valid("pt.nif", of(9, "12")), 3, 3, 3))),
    "ch_ahv": ("", (grouped(valid("ch.ssn", lambda d: "756" + digits(d, 10)), 3, 4, 4, 2, by="."),)),
    "cz_rodne_cislo": ("", (grouped(valid("cz.rc", lambda d: date(d) + digits(d, 4)), 6, 4, by="/"),)),
    "ro_cnp": ("CNP", (valid("ro.cnp", lambda d: d.choice("12") + date(d) + digits(d, 6)),)),
    "hr_oib": ("OIB", (valid("hr.oib", of(11)),)),
    "tr_tckn": ("TC Kimlik No", (valid("tr.tckimlik", of(11)),)),
    "ca_sin": (
        "SIN",
        (
            grouped(valid("ca.sin", of(9, "1234567")), 3, 3, 3),
            grouped(valid("ca.sin", of(9, "1234567")), 3, 3, 3, by="-"),
        ),
    ),
    "br_cpf": ("", (grouped(valid("br.cpf", of(11)), 3, 3, 3, 2, by="..-"),)),
    "br_cnpj": (
        "",
        (grouped(valid("br.cnpj", lambda d: digits(d, 8) + "0001" + digits(d, 2)), 2, 3, 3, 4, 2, by="../-"),),
    ),
    "mx_curp": ("", (valid("mx.curp", lambda d: "BOXW" + date(d) + "HNERXN" + digits(d, 2)),)),
    "cl_rut": ("", (grouped(valid("cl.rut", of(9, "12")), 2, 3, 3, 1, by="..-"),)),
    "us_routing": ("routing number", (valid("us.rtn", of(9, "01")),)),
    "in_aadhaar": (
        "Aadhaar",
        (grouped(valid("in_.aadhaar", of(12, "3456789")), 4, 4, 4), valid("in_.aadhaar", of(12, "3456789"))),
    ),
    "in_pan": ("", (lambda d: "AFZP" + d.choice("ABKMRS") + digits(d, 4) + d.choice("ABCDEF"),)),
    "au_tfn": ("TFN", (grouped(valid("au.tfn", of(9)), 3, 3, 3), valid("au.tfn", of(9)))),
    "sg_nric": (
        "",
        (lambda d: d.choice(("S1234567D", "T1234567J", "F1234567N", "G1234567X")),),
    ),  # of its public examples
    "za_id": ("South African ID", (valid("za.idnr", lambda d: date(d) + digits(d, 4) + "08" + digits(d, 1, DIGITS)),)),
    "kr_rrn": ("", (grouped(valid("kr.rrn", lambda d: date(d) + digits(d, 7, "12")), 6, 7, by="-"),)),
    "cn_id": ("", (valid("cn.ric", lambda d: "110105" + "19" + date(d) + digits(d, 4)),)),
    "th_id": ("", (grouped(valid("th.pin", of(13, "1345678")), 1, 4, 5, 2, 1, by="-"),)),
    "my_nric": ("", (grouped(valid("my.nric", lambda d: date(d) + "14" + digits(d, 4)), 6, 2, 4, by="-"),)),
}
