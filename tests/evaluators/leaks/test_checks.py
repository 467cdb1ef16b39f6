"""Check digits of national numbers, against python-stdnum on random numbers, right ones among them."""

import random
from collections.abc import Callable
from importlib import import_module

import pytest

from ragtide.evaluators.leaks.personal import americas, asia_africa_pacific, checks, crypto_wallet, europe, vehicle
from ragtide.evaluators.leaks.personal.bank_account import is_iban

DIGITS = "0123456789"
UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
Check = Callable[[str], bool]

# Ours, stdnum's module, and what such a number is made of: "d" a digit, "y" YYMMDD, "a" a letter, others themselves.
CASES: dict[str, tuple[Check, str, str]] = {
    "luhn": (checks.luhn, "luhn", "d" * 16),
    "verhoeff": (checks.verhoeff, "verhoeff", "d" * 12),
    "gb_nhs": (europe._nhs, "gb.nhs", "d" * 10),
    "de_steuer_id": (checks.mod_11_10, "iso7064.mod_11_10", "d" * 11),
    "fr_nir": (europe._nir, "fr.nir", "1850578006084dd"),
    "fr_nir_corsica": (europe._nir, "fr.nir", "185052A006084dd"),
    "es_dni": (europe._dni, "es.dni", "d" * 8 + "a"),
    "es_nie": (europe._nie, "es.nie", "X" + "d" * 7 + "a"),
    "it_codice_fiscale": (europe.codice_fiscale, "it.codicefiscale", "RSSMRA85T10A562a"),
    "nl_bsn": (europe._bsn, "nl.bsn", "d" * 9),
    "be_national": (europe._belgian, "be.nn", "050730033dd"),
    "pl_pesel": (europe._pesel, "pl.pesel", "yddddd"),
    "se_personnummer": (europe._personnummer, "se.personnummer", "19850709dddd"),
    "fi_hetu": (europe._hetu, "fi.hetu", "131052-308a"),
    "no_fodselsnummer": (europe._fodselsnummer, "no.fodselsnummer", "1510860dddd"),
    "ie_pps": (europe._pps, "ie.pps", "dddddddAA"),
    "pt_nif": (europe._nif, "pt.nif", "5dddddddd"),
    "at_social_insurance": (europe._austrian, "at.vnr", "dddd030580"),
    "ch_ahv": (europe._ahv, "ch.ssn", "756" + "d" * 10),
    "cz_rodne_cislo": (europe._rodne_cislo, "cz.rc", "710319dddd"),
    "ro_cnp": (europe._cnp, "ro.cnp", "163061512dddd"),
    "bg_egn": (europe._egn, "bg.egn", "752316dddd"),
    "hr_oib": (checks.mod_11_10, "hr.oib", "d" * 11),
    "gr_amka": (europe._amka, "gr.amka", "010139ddddd"),
    "tr_tckn": (europe._tckn, "tr.tckimlik", "172914602dd"),
    "ee_isikukood": (europe._isikukood, "ee.ik", "36805280ddd"),
    "ru_inn": (europe._inn, "ru.inn", "77" + "d" * 10),
    "gr_afm": (europe._afm, "gr.vat", "d" * 9),
    "is_kennitala": (europe._kennitala, "is_.kennitala", "120174ddd9"),
    "jmbg": (europe._jmbg, "si.emso", "010100650dddd"),
    "ca_sin": (americas._sin, "ca.sin", "4dddddddd"),
    "br_cpf": (americas._cpf, "br.cpf", "d" * 11),
    "br_cnpj": (americas._cnpj, "br.cnpj", "160077230001dd"),
    "mx_curp": (americas._curp, "mx.curp", "BOXW310820HNERXNdd"),
    "ar_cuit": (americas._cuit, "ar.cuit", "20ddddddddd"),
    "cl_rut": (americas._rut, "cl.rut", "d" * 9),
    "us_routing": (americas.routing, "us.rtn", "1110000dd"),
    "in_aadhaar": (asia_africa_pacific._aadhaar, "in_.aadhaar", "2" + "d" * 11),
    "au_tfn": (asia_africa_pacific._tfn, "au.tfn", "d" * 9),
    "nz_ird": (asia_africa_pacific._ird, "nz.ird", "049dddddd"),
    "th_id": (asia_africa_pacific._thai, "th.pin", "1101700230dd" + "d"),
    "cn_id": (asia_africa_pacific._chinese, "cn.ric", "36042619910101dddd"),
    "za_id": (asia_africa_pacific._za_id, "za.idnr", "7503305044dd" + "d"),
    "il_id": (asia_africa_pacific._israeli, "il.idnr", "39337423d"),
    "iban": (is_iban, "iban", "GBddWEST12345698765432"),
}


def numbers(made_of: str, count: int, seed: str) -> list[str]:
    draw = random.Random(seed)
    choices = {"d": DIGITS, "a": UPPER}
    drawn = []
    for _ in range(count):
        shape = made_of.replace("y", f"{draw.randrange(100):02}{draw.randint(1, 12):02}{draw.randint(1, 28):02}")
        drawn.append("".join(draw.choice(choices.get(each, each)) for each in shape))
    return drawn


@pytest.mark.parametrize("name", CASES)
def test_check_digits_are_those_of_python_stdnum(name: str) -> None:
    check, module, made_of = CASES[name]
    reference = import_module(f"stdnum.{module}").is_valid
    drawn = numbers(made_of, 3_000, name)
    expected = [bool(reference(number)) for number in drawn]
    assert any(expected)
    disagreed = [number for number, right in zip(drawn, expected, strict=True) if check(number) != right]
    assert not disagreed[:5]


def test_a_vehicles_number() -> None:
    """49 CFR 565's own worked example, and one wrong in each place of its sum."""
    assert vehicle.vin("1M8GDM9AXKP042788")
    assert not vehicle.vin("1M8GDM9A1KP042788")
    assert not vehicle.vin("1M8GDM9AXKP042789")


def test_a_bitcoin_address_with_a_letter_changed_is_none() -> None:
    first = "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"  # of the first block ever
    changed = [first[:place] + ("2" if first[place] != "2" else "3") + first[place + 1 :] for place in range(1, 34)]
    assert crypto_wallet.base58check(first)
    assert not any(map(crypto_wallet.base58check, changed))
