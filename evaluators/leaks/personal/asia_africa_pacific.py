"""National numbers of Asia, Africa and the Pacific. Rules of their check digits as the issuing offices publish them."""

from ragtide.evaluators.leaks.detector import Detector
from ragtide.evaluators.leaks.folding import IDENTITY
from ragtide.evaluators.leaks.personal.checks import has_date, is_date, luhn, verhoeff, weighted
from ragtide.evaluators.leaks.personal.number_detectors import (
    any_number,
    number_beside_label,
    number_by_shape,
    number_near_label,
)

_NRIC = {"S": "JZIHGFEDCBA", "T": "GFEDCBAJZIH", "F": "XWUTRQPNMLK", "G": "RQPNMLKXWUT", "M": "XWUTRQPNJLK"}
_THAI = r"[1-8][ -]?[0-9]{4}[ -]?[0-9]{5}[ -]?[0-9]{2}[ -]?[0-9]"
_TAIWAN = "ABCDEFGHJKLMNPQRSTUVXYWZIO"  # in the order of their values, from 10 on


def _aadhaar(digits: str) -> bool:
    return digits[0] not in "01" and verhoeff(digits)


def _tfn(digits: str) -> bool:
    return weighted(digits, (1, 4, 3, 7, 5, 8, 6, 9, 10)) % 11 == 0 and int(digits) > 0


def _australian_medicare(digits: str) -> bool:
    return digits[0] in "23456" and weighted(digits, (1, 3, 7, 9, 1, 3, 7, 9)) % 10 == int(digits[8])


def _ird(digits: str) -> bool:
    digits = digits.zfill(9)
    check = -weighted(digits, (3, 2, 7, 6, 5, 4, 3, 2)) % 11
    if check == 10:
        check = -weighted(digits, (7, 4, 3, 2, 5, 2, 7, 6)) % 11
    return check == int(digits[8])


def _nric(text: str) -> bool:
    total = weighted(text[1:8], (2, 7, 6, 5, 4, 3, 2)) + (3 if text[0] == "M" else 0)
    return _NRIC[text[0]][total % 11] == text[8]


def _hkid(text: str) -> bool:
    letters = text[:-7]
    values = [36] * (2 - len(letters)) + [ord(letter) - 55 for letter in letters]
    values += [int(digit) for digit in text[-7:-1]] + [10 if text[-1] == "A" else int(text[-1])]
    return sum(value * weight for value, weight in zip(values, range(9, 0, -1), strict=True)) % 11 == 0


def _taiwanese(text: str) -> bool:
    value = 10 + _TAIWAN.index(text[0])
    return (value // 10 + value % 10 * 9 + weighted(text[1:], (8, 7, 6, 5, 4, 3, 2, 1, 1))) % 10 == 0


def _thai(digits: str) -> bool:
    return (11 - weighted(digits, range(13, 1, -1)) % 11) % 10 == int(digits[12])


def _mykad(digits: str) -> bool:
    return has_date(digits) and digits[6:8] not in {"00", "17", "18", "19", "20", "69", "70", "73", "80", "81"}


def _rrn(digits: str) -> bool:
    return has_date(digits) and digits[6] in "12345678"  # no check digit since 2020


def _chinese(text: str) -> bool:
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    return has_date(text[8:14]) and "10X98765432"[weighted(text, weights) % 11] == text[17]


def _my_number(digits: str) -> bool:
    rest = weighted(digits, (6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11
    return (11 - rest if rest > 1 else 0) == int(digits[11])


def _nik(digits: str) -> bool:
    return is_date(int(digits[8:10]), int(digits[6:8]) % 40)


def _za_id(digits: str) -> bool:
    return has_date(digits) and digits[10] in "01" and luhn(digits)


def _egyptian(digits: str) -> bool:
    return has_date(digits[1:]) and 1 <= int(digits[7:9]) <= 88


def _lankan(text: str) -> bool:
    day = int(text[2:5] if len(text) == 10 else text[4:7]) % 500  # women's are counted from 500 on
    return 1 <= day <= 366


def _israeli(digits: str) -> bool:
    return int(digits) > 0 and luhn(digits.zfill(9))


DETECTORS: tuple[Detector, ...] = (
    number_near_label(
        "in_aadhaar",
        "an Indian Aadhaar number",
        r"a+dha+r|\buidai",
        r"[2-9][0-9]{3}[ -]?[0-9]{4}[ -]?[0-9]{4}",
        _aadhaar,
        IDENTITY,
    ),
    number_by_shape("in_pan", "an Indian tax number", r"[A-Z]{3}P[A-Z][0-9]{4}[A-Z]", any_number),
    number_near_label(
        "in_pan",
        "an Indian tax number",
        r"(?-i:\bPAN\b)|pan (?:card|no|num)|permanent account",
        r"[A-Z]{5}[0-9]{4}[A-Z]",
        any_number,
    ),
    number_near_label(
        "au_tfn", "an Australian tax file number", r"\btfn|tax file", r"[0-9]{3}[ -]?[0-9]{3}[ -]?[0-9]{3}", _tfn
    ),
    number_near_label(
        "au_medicare",
        "an Australian Medicare number",
        r"medicare",
        r"[2-6][0-9]{3}[ -]?[0-9]{5}[ -]?[0-9](?:[ /-]?[0-9])?",
        _australian_medicare,
    ),
    number_near_label(
        "nz_ird", "a New Zealand tax number", r"\bird\b|inland revenue", r"[0-9]{2,3}[ -]?[0-9]{3}[ -]?[0-9]{3}", _ird
    ),
    number_by_shape("sg_nric", "a Singaporean identity number", r"[STFGM][0-9]{7}[A-Z]", _nric),
    number_by_shape("hk_hkid", "a Hong Kong identity number", r"[A-Z]{1,2}[0-9]{6} ?\([0-9A]\)", _hkid),
    number_near_label(
        "hk_hkid", "a Hong Kong identity number", r"hkid|hong kong id", r"[A-Z]{1,2}[0-9]{6}-?[0-9A]", _hkid
    ),
    number_near_label(
        "tw_id",
        "a Taiwanese identity number",
        r"taiwan|national id|identity (?:card|number)|\bid (?:card|no|num)",
        r"[A-Z][1289][0-9]{8}",
        _taiwanese,
        IDENTITY,
    ),
    number_by_shape("th_id", "a Thai identity number", r"[1-8]-[0-9]{4}-[0-9]{5}-[0-9]{2}-[0-9]", _thai),
    number_near_label("th_id", "a Thai identity number", r"thai|national id|citizen id", _THAI, _thai, IDENTITY),
    number_by_shape("my_nric", "a Malaysian identity number", r"[0-9]{6}-[0-9]{2}-[0-9]{4}", _mykad),
    number_near_label(
        "my_nric",
        "a Malaysian identity number",
        r"mykad|\bnric|\bic (?:no|num)|kad pengenalan",
        r"[0-9]{6}[ -]?[0-9]{2}[ -]?[0-9]{4}",
        _mykad,
    ),
    number_by_shape("kr_rrn", "a Korean resident number", r"[0-9]{6}-[1-8][0-9]{6}", _rrn),
    number_near_label(
        "kr_rrn", "a Korean resident number", r"\brrn\b|resident registration", r"[0-9]{6}-?[1-8][0-9]{6}", any_number
    ),
    number_by_shape("cn_id", "a Chinese identity number", r"[1-9][0-9]{5}(?:19|20)[0-9]{9}[0-9Xx]", _chinese),
    number_near_label(
        "jp_my_number",
        "a Japanese individual number",
        r"my number|individual number|kojin bang",
        r"[0-9]{4}[ -]?[0-9]{4}[ -]?[0-9]{4}",
        _my_number,
        IDENTITY,
    ),
    number_near_label(
        "id_nik", "an Indonesian identity number", r"\bnik\b|\bktp\b|kependudukan", r"[1-9][0-9]{15}", _nik
    ),
    number_near_label(
        "il_id",
        "an Israeli identity number",
        r"teudat|israeli id|\bt\.?z\.? ?n|mispar zehut",
        r"[0-9]{8}-?[0-9]",
        _israeli,
        IDENTITY,
    ),
    number_by_shape("za_id", "a South African identity number", r"[0-9]{6} [0-9]{4} [01][0-9]{2}", _za_id),
    number_near_label(
        "za_id",
        "a South African identity number",
        r"south africa|\b(?:sa|rsa) id|\bid(?:entity)? (?:no|num)",
        r"[0-9]{10}[01][0-9]{2}",
        _za_id,
    ),
    number_by_shape("ae_emirates_id", "an Emirates identity number", r"784-[0-9]{4}-[0-9]{7}-[0-9]", luhn),
    number_near_label(
        "ae_emirates_id",
        "an Emirates identity number",
        r"emirates id|\beid\b|\buae id",
        r"784[ -]?[0-9]{4}[ -]?[0-9]{7}[ -]?[0-9]",
        luhn,
        IDENTITY,
    ),
    number_by_shape("pk_cnic", "a Pakistani identity number", r"[1-7][0-9]{4}-[0-9]{7}-[0-9]", any_number),
    number_beside_label("pk_cnic", "a Pakistani identity number", r"cnic|national id", r"[1-8][0-9]{12}"),
    number_beside_label(
        "vn_cccd", "a Vietnamese identity number", r"cccd|cmnd|can cuoc(?: cong dan)?", r"0[0-9]{11}|[0-9]{9}"
    ),
    number_beside_label(
        *(
            "ng_nin",
            "a Nigerian identity number",
            r"(?-i:\bNIN\b)|\bnin\b[\"']?\s?[:=>]|nigerian? (?:national )?id(?:entity)?",
        ),
        r"[0-9]{11}",
    ),
    number_beside_label("ng_bvn", "a Nigerian bank verification number", r"\bbvn\b|bank verification", r"22[0-9]{9}"),
    number_near_label("sa_id", "a Saudi identity number", r"iqama|saudi|national id", r"[12][0-9]{9}", luhn, IDENTITY),
    number_near_label(
        "eg_id", "an Egyptian identity number", r"egypt|national id", r"[23][0-9]{13}", _egyptian, IDENTITY
    ),
    number_beside_label(
        *(
            "bd_nid",
            "a Bangladeshi identity number",
            r"(?-i:\bNID\b)|\bnid(?: n(?:o|um(?:ber)?))?\b[\"']?\s?[:=>]|bangladesh(?:i)?(?: national)? id",
        ),
        *(r"[0-9]{10}|[0-9]{13}|[0-9]{17}", None, IDENTITY),
    ),
    number_near_label(
        "lk_nic", "a Sri Lankan identity number", r"\bnic\b|sri lanka", r"[0-9]{9}[VvXx]|[12][0-9]{11}", _lankan
    ),
    number_beside_label(
        "ph_philsys",
        "a Philippine identity number",
        r"philsys|philid|umid|\bpsn\b",
        r"[0-9]{4}[ -]?[0-9]{4}[ -]?[0-9]{4}(?:[ -]?[0-9]{4})?",
    ),
)
