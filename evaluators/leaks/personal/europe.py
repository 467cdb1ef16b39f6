"""National numbers of European countries. Rules of their check digits as the issuing offices publish them."""

from ragtide.evaluators.leaks.detector import Detector
from ragtide.evaluators.leaks.personal.checks import has_date, is_date, luhn, mod_11_10, weighted
from ragtide.evaluators.leaks.personal.number_detectors import (
    any_number,
    number_beside_label,
    number_by_shape,
    number_near_label,
)

_DNI = "TRWAGMYFPDXBNJZSQVHLCKE"
_NOBODYS_NINO = {"BG", "GB", "KN", "NK", "NT", "TN", "ZZ"}
_ELEVEN = r"[0-9]{2}[ -]?[0-9]{3}[ -]?[0-9]{3}[ -]?[0-9]{3}"
_NINE = r"[0-9]{3}[ .-]?[0-9]{3}[ .-]?[0-9]{3}|[0-9]{4}[. ][0-9]{2}[. ][0-9]{3}"
# Values of the characters of a codice fiscale in odd places; in even ones letters and digits count from 0.
_ODD = dict(
    zip(
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        (
            *(1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6),
            *(8, 12, 14, 16, 10, 22, 25, 24, 23),
        ),
        strict=True,
    )
)


def _nino(text: str) -> bool:
    return text[:2] not in _NOBODYS_NINO


def _nhs(digits: str) -> bool:
    return len(set(digits)) > 1 and weighted(digits, range(10, 0, -1)) % 11 == 0


def _steuer_id(digits: str) -> bool:
    return digits[0] != "0" and mod_11_10(digits)


def _nir(text: str) -> bool:
    number = text[:13].replace("2A", "19").replace("2B", "18") if text[5] == "2" else text[:13]
    return number.isdigit() and 97 - int(number) % 97 == int(text[13:])


def _dni(text: str) -> bool:
    return _DNI[int(text[:8]) % 23] == text[8]


def _nie(text: str) -> bool:
    return _DNI[int(str("XYZ".index(text[0])) + text[1:8]) % 23] == text[8]


def codice_fiscale(text: str) -> bool:
    """Whether the last letter checks the others (decree of 23 December 1976)."""
    odd = sum(_ODD[character] for character in text[:15:2])
    even = sum(int(c) if c.isdigit() else ord(c) - 65 for c in text[1:15:2])
    return chr(65 + (odd + even) % 26) == text[15]


def _nuss(digits: str) -> bool:
    province, number, check = digits[:2], digits[2:-2], digits[-2:]
    return int(province + number.lstrip("0").zfill(7)) % 97 == int(check)


def _bsn(digits: str) -> bool:
    return int(digits) > 0 and (weighted(digits, range(9, 1, -1)) - int(digits[8])) % 11 == 0


def _belgian(digits: str) -> bool:
    return any(97 - int(century + digits[:9]) % 97 == int(digits[9:]) for century in ("", "2"))


def _pesel(digits: str) -> bool:
    dated = is_date(int(digits[2:4]) % 20, int(digits[4:6]))
    return dated and weighted(digits, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1)) % 10 == 0


def _nip(digits: str) -> bool:
    return len(digits) == 10 and weighted(digits, (6, 5, 7, 2, 3, 4, 5, 6, 7)) % 11 == int(digits[9])


def _personnummer(digits: str) -> bool:
    return is_date(int(digits[-8:-6]), int(digits[-6:-4]) % 60) and luhn(digits[-10:])


def _hetu(text: str) -> bool:
    number = int(text[:6] + text[-4:-1])
    return is_date(int(text[2:4]), int(text[:2])) and "0123456789ABCDEFHJKLMNPRSTUVWXY"[number % 31] == text[-1]


def _fodselsnummer(digits: str) -> bool:
    first = weighted(digits, (3, 7, 6, 1, 8, 9, 4, 5, 2, 1)) % 11
    return first == 0 and weighted(digits, (5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1)) % 11 == 0


def _cpr(digits: str) -> bool:
    return is_date(int(digits[2:4]), int(digits[:2]))  # no check digit since 2007


def _checked_cpr(digits: str) -> bool:
    return _cpr(digits) and weighted(digits, (4, 3, 2, 7, 6, 5, 4, 3, 2, 1)) % 11 == 0


def _pps(text: str) -> bool:
    extra = (ord(text[8]) - 64) * 9 if len(text) > 8 and text[8] != "W" else 0
    return "WABCDEFGHIJKLMNOPQRSTUV"[(weighted(text[:7], range(8, 1, -1)) + extra) % 23] == text[7]


def _nif(digits: str) -> bool:
    check = 11 - weighted(digits[:8], range(9, 1, -1)) % 11
    return digits[0] in "1235689" and int(digits[8]) == (check if check < 10 else 0)


def _austrian(digits: str) -> bool:
    return digits[0] != "0" and weighted(digits[:3] + digits[4:], (3, 7, 9, 5, 8, 4, 2, 1, 6)) % 11 == int(digits[3])


def _ahv(digits: str) -> bool:
    return (weighted(digits, (1, 3) * 6) + int(digits[12])) % 10 == 0


def _rodne_cislo(digits: str) -> bool:
    month = int(digits[2:4]) % 50
    dated = is_date(month - 20 if month > 20 else month, int(digits[4:6]))
    return dated and (int(digits) % 11 == 0 or int(digits[:9]) % 11 == int(digits[9]) + 10)


def _cnp(digits: str) -> bool:
    check = weighted(digits, (2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9)) % 11
    return has_date(digits[1:]) and int(digits[12]) == (1 if check == 10 else check)


def _egn(digits: str) -> bool:
    dated = is_date(int(digits[2:4]) % 20, int(digits[4:6]))
    return dated and weighted(digits, (2, 4, 8, 5, 10, 9, 7, 3, 6)) % 11 % 10 == int(digits[9])


def _amka(digits: str) -> bool:
    return is_date(int(digits[2:4]), int(digits[:2])) and luhn(digits)


def _tckn(digits: str) -> bool:
    odd, even = sum(map(int, digits[:9:2])), sum(map(int, digits[1:8:2]))
    tenth = (odd * 7 - even) % 10
    return int(digits[9]) == tenth and int(digits[10]) == sum(map(int, digits[:10])) % 10


def _isikukood(digits: str) -> bool:
    check = weighted(digits, (1, 2, 3, 4, 5, 6, 7, 8, 9, 1)) % 11
    if check == 10:
        check = weighted(digits, (3, 4, 5, 6, 7, 8, 9, 1, 2, 3)) % 11 % 10
    return has_date(digits[1:]) and int(digits[10]) == check


def _afm(digits: str) -> bool:
    return int(digits) > 0 and weighted(digits[:8], [2**power for power in range(8, 0, -1)]) % 11 % 10 == int(digits[8])


def _inn(digits: str) -> bool:
    tenth, eleventh = (7, 2, 4, 10, 3, 5, 9, 4, 6, 8), (3, 7, 2, 4, 10, 3, 5, 9, 4, 6, 8)
    right = [weighted(digits, weights) % 11 % 10 for weights in (tenth, eleventh)]
    return right == [int(digits[10]), int(digits[11])]


def _latvian(digits: str) -> bool:
    return digits.startswith("32") or is_date(int(digits[2:4]), int(digits[:2]))  # no check digit since 2017


def _taj(digits: str) -> bool:
    return int(digits) > 0 and weighted(digits[:8], (3, 7) * 4) % 10 == int(digits[8])


def _hungarian_tax(digits: str) -> bool:
    return digits[0] == "8" and weighted(digits[:9], range(1, 10)) % 11 == int(digits[9])


def _kennitala(digits: str) -> bool:
    dated = is_date(int(digits[2:4]), int(digits[:2]) % 40)
    return dated and weighted(digits, (3, 2, 7, 6, 5, 4, 3, 2, 1)) % 11 == 0


def _jmbg(digits: str) -> bool:
    check = -weighted(digits, (7, 6, 5, 4, 3, 2) * 2) % 11 % 10
    return is_date(int(digits[2:4]), int(digits[:2])) and check == int(digits[12])


def _snils(digits: str) -> bool:
    return weighted(digits, range(9, 0, -1)) % 101 % 100 == int(digits[9:])


DETECTORS: tuple[Detector, ...] = (
    number_by_shape(
        *("gb_nino", "a British National Insurance number"),
        *(r"[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?[0-9]{2}[ -]?[0-9]{2}[ -]?[0-9]{2} ?[A-D]", _nino),
    ),
    number_beside_label(
        *("gb_nino", "a British National Insurance number", r"national insurance|\bnino\b|\bNI (?:no|num)"),
        r"[A-Z]{2} ?[0-9]{2}[ -]?[0-9]{2}[ -]?[0-9]{2} ?[A-Z]?",
    ),
    number_near_label("gb_nhs", "an NHS number", r"\bnhs", r"[0-9]{3}[ -]?[0-9]{3}[ -]?[0-9]{4}", _nhs),
    number_near_label(
        *("de_steuer_id", "a German tax number"),
        r"steuer id|steuerliche identi|identifikationsnummer|steuernummer|idnr|tax (?:id|number)|\btin\b",
        *(_ELEVEN, _steuer_id),
    ),
    number_near_label(
        *(
            "de_social_insurance",
            "a German social insurance number",
            r"sozialversicherung|rentenversicherung|\brvnr|\brv num|\bsv n|versicherungsn|social (?:security|"
            r"insurance)",
        ),
        *(r"[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[A-Z] ?[0-9]{2} ?[0-9]", any_number),
    ),
    number_by_shape(
        *("fr_nir", "a French social security number"),
        r"[12][0-9]{2}(?:0[1-9]|1[0-2])(?:[0-9]{2}|2[ABab])[0-9]{8}|"
        r"[12][ .][0-9]{2}[ .](?:0[1-9]|1[0-2]|[2-9][0-9])[ .](?:[0-9]{2}|2[ABab])[ .][0-9]{3}[ .][0-9]{3}"
        r"[ .-][0-9]{2}",
        _nir,
    ),
    number_by_shape(
        "es_dni",
        "a Spanish identity number",
        r"[0-9]{8}[ -]?[A-HJ-NP-TV-Z]|[0-9]{2}\.[0-9]{3}\.[0-9]{3}[ -]?[A-HJ-NP-TV-Z]",
        _dni,
    ),
    number_by_shape("es_nie", "a Spanish foreigner's number", r"[XYZ][ -]?[0-9]{7}[ -]?[A-HJ-NP-TV-Z]", _nie),
    number_near_label(
        *(
            "es_nuss",
            "a Spanish social security number",
            r"seguridad social|\bnuss\b|\bnaf\b|afiliacion|seguretat social",
        ),
        *(r"[0-9]{2}[ /-]?[0-9]{7,8}[ /-]?[0-9]{2}", _nuss),
    ),
    number_by_shape(
        *("it_codice_fiscale", "an Italian tax code"),
        r"(?i:[A-Z]{3} ?[A-Z]{3} ?[0-9LMNPQRSTUV]{2}[ABCDEHLMPRST][0-9LMNPQRSTUV]{2} ?[A-Z][0-9LMNPQRSTUV]{3}[A-Z])",
        codice_fiscale,
        unlike=True,
    ),
    number_near_label(
        "nl_bsn", "a Dutch citizen service number", r"\bbsn|burger service|citizen service|sofi n", _NINE, _bsn
    ),
    number_by_shape(
        "be_national", "a Belgian national number", r"[0-9]{2}\.[0-9]{2}\.[0-9]{2}-[0-9]{3}\.[0-9]{2}", _belgian
    ),
    number_near_label(
        "be_national",
        "a Belgian national number",
        r"rijksregister|registre national|numero national|national (?:register|number)|\bniss\b|\binsz\b",
        r"[0-9]{2}[ .-]?[0-9]{2}[ .-]?[0-9]{2}[ .-]?[0-9]{3}[ .-]?[0-9]{2}",
        _belgian,
    ),
    number_near_label("pl_pesel", "a Polish identity number", r"pesel", r"[0-9]{11}", _pesel),
    number_near_label("pl_nip", "a Polish tax number", r"\bnip\b", r"[0-9]{3}-?[0-9]{2,3}-?[0-9]{2}-?[0-9]{2,3}", _nip),
    number_by_shape("se_personnummer", "a Swedish identity number", r"(?:19|20)?[0-9]{6}[-+][0-9]{4}", _personnummer),
    number_near_label(
        "se_personnummer",
        "a Swedish identity number",
        r"person(?:al identity |al )?n|\bpers\.? ?n|\bpnr\b|samordningsn|swedish",
        r"(?:19|20)?[0-9]{6}[-+]?[0-9]{4}",
        _personnummer,
    ),
    number_by_shape("fi_hetu", "a Finnish identity code", r"[0-9]{6}[-+A-FU-Y][0-9]{3}[0-9A-FHJ-NPR-Y]", _hetu),
    number_near_label(
        "no_fodselsnummer",
        "a Norwegian identity number",
        r"f.{1,2}dselsn|\bfnr\b|person n|personal n|national id|norwegian|\bd nummer",
        r"[0-9]{6} ?[0-9]{5}",
        _fodselsnummer,
    ),
    number_by_shape("dk_cpr", "a Danish identity number", r"[0-9]{6}-[0-9]{4}", _checked_cpr),
    number_near_label(
        "dk_cpr",
        "a Danish identity number",
        r"\bcpr|person n|personal identification n|danish",
        r"[0-9]{6}-?[0-9]{4}",
        _cpr,
    ),
    number_near_label(
        "ie_pps", "an Irish public service number", r"\bpps|personal public service", r"[0-9]{7}[A-W][A-IW]?", _pps
    ),
    number_near_label(
        "pt_nif",
        "a Portuguese tax number",
        r"\bnif\b|contribuinte|identificacao fiscal|numero fiscal|tax (?:id|number)|portuguese",
        _NINE,
        _nif,
    ),
    number_near_label(
        "at_social_insurance",
        "an Austrian insurance number",
        r"sozialversicherung|\bsv n|versicherungsn|social (?:security|insurance)",
        r"[0-9]{4}[ /-]?[0-9]{2}[ .]?[0-9]{2}[ .]?[0-9]{2}",
        _austrian,
    ),
    number_by_shape("ch_ahv", "a Swiss insurance number", r"756\.?[0-9]{4}\.?[0-9]{4}\.?[0-9]{2}", _ahv),
    number_by_shape("cz_rodne_cislo", "a Czech or Slovak birth number", r"[0-9]{6}/[0-9]{4}", _rodne_cislo),
    number_near_label(
        "cz_rodne_cislo",
        "a Czech or Slovak birth number",
        r"rodne(?:ho|mu|m)? c|\br\. ?c\b|\brc\b|birth number",
        r"[0-9]{6} ?/? ?[0-9]{4}",
        _rodne_cislo,
    ),
    number_near_label("ro_cnp", "a Romanian identity number", r"\bcnp|cod(?:ul)? numeric", r"[1-9][0-9]{12}", _cnp),
    number_near_label(
        "bg_egn", "a Bulgarian identity number", r"\begn\b|unified civil|edinen grazdanski", r"[0-9]{10}", _egn
    ),
    number_near_label(
        "hr_oib", "a Croatian identity number", r"\boib\b|osobni identifikacijski", r"[0-9]{11}", mod_11_10
    ),
    number_near_label("gr_amka", "a Greek insurance number", r"\bamka\b", r"[0-9]{11}", _amka),
    number_near_label(
        "tr_tckn",
        "a Turkish identity number",
        r"\btckn?\b|\bt\.?c\.? ?(?:no|num|id)|kimlik|turkish id",
        r"[1-9][0-9]{10}",
        _tckn,
    ),
    number_near_label(
        "ee_isikukood",
        "an Estonian or Lithuanian identity code",
        r"isikukood|asmens kod|\ba\. ?k\b|personal (?:id(?:entification)? )?code|id code|estonian|lithuanian",
        r"[1-6][0-9]{10}",
        _isikukood,
    ),
    number_by_shape("ru_snils", "a Russian insurance number", r"[0-9]{3}-[0-9]{3}-[0-9]{3}[ -][0-9]{2}", _snils),
    number_near_label(
        "ru_snils", "a Russian insurance number", r"snils", r"[0-9]{3}[ -]?[0-9]{3}[ -]?[0-9]{3}[ -]?[0-9]{2}", _snils
    ),
    number_near_label("ru_inn", "a Russian taxpayer number", r"\binn\b|taxpayer", r"[0-9]{12}", _inn),
    number_near_label("gr_afm", "a Greek tax number", r"\bafm\b|greek tax", r"[0-9]{9}", _afm),
    number_near_label(
        "lv_personas_kods",
        "a Latvian identity code",
        r"personas kod|latvian|\bp\. ?k\b",
        r"[0-9]{6}-?[0-9]{5}",
        _latvian,
    ),
    number_near_label(
        "hu_taj", "a Hungarian insurance number", r"\btaj\b", r"[0-9]{3}[ .-]?[0-9]{3}[ .-]?[0-9]{3}", _taj
    ),
    number_near_label("hu_tax", "a Hungarian tax number", r"adoazonosito|hungarian tax", r"[0-9]{10}", _hungarian_tax),
    number_near_label(
        "is_kennitala",
        "an Icelandic identity number",
        r"kennital[au]|icelandic|\bkt\b",
        r"[0-9]{6}-?[0-9]{4}",
        _kennitala,
    ),
    number_near_label(
        "jmbg",
        "an identity number of former Yugoslavia",
        r"\bemso\b|\bu?jmbg\b|\bembg\b|matic(?:ni|en) broj",
        r"[0-9]{13}",
        _jmbg,
    ),
    number_beside_label(
        "ua_rnokpp", "a Ukrainian taxpayer number", r"\brnokpp\b|\bipn\b|identifikacijnij kod|ukrainian", r"[0-9]{10}"
    ),
)
