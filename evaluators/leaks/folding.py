"""Folds texts so that patterns find labels in many languages: no accents, Cyrillic and Greek transliterated, and one
byte per character for labels in other scripts.
"""

import re
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from typing import Final
from unicodedata import normalize

from ragtide.evaluators.leaks.byte_text import ByteText, to_byte_text

# Patterns of the byte that stands for each character of a label of another script, and for nothing else.
PASSWORD: Final = r"\x81"
PHONE: Final = r"\x82"
BIRTH: Final = r"\x83"
PASSPORT: Final = r"\x84"
IDENTITY: Final = r"\x85"
ACCOUNT: Final = r"\x86"
CARD: Final = r"\x87"
DRIVING: Final = r"\x88"
KEY: Final = r"\x89"
MEDICAL: Final = r"\x8a"
PLATE: Final = r"\x8b"
CALL: Final = r"\x8c"
VERSION: Final = r"\x8d"

# Chinese in both spellings, Japanese, Korean, Arabic, Persian, Hebrew, Thai, Hindi.
_WORDS: Mapping[str, str] = {
    PASSWORD: "密码,密碼,口令,パスワード,暗証番号,비밀번호,암호,كلمة المرور,كلمة السر,رمز عبور,סיסמה,"
    "סיסמא,รหัสผ่าน,पासवर्ड",
    PHONE: "电话号码,電話號碼,電話番号,手机号码,手機號碼,手机号,电话,電話,手机,手機,携帯電話,携帯番号,"
    "携帯,联系方式,聯絡電話,전화번호,전화,휴대폰,핸드폰,연락처,رقم الهاتف,رقم الجوال,الجوال,"
    "الهاتف,هاتف,جوال,موبايل,تلفن,טלפון,נייד,เบอร์โทรศัพท์,เบอร์โทร,โทรศัพท์,โทร,มือถือ,फ़ोन,"
    "फोन,मोबाइल",
    BIRTH: "出生日期,出生年月日,出生年月,生年月日,誕生日,生日,생년월일,생일,تاريخ الميلاد,تاریخ تولد,"
    "תאריך לידה,วันเกิด,जन्मतिथि,जन्म तिथि,जन्म दिनांक,出生于,出生於,生于",
    PASSPORT: "护照号码,護照號碼,护照号,护照,護照,パスポート番号,パスポート,旅券番号,여권번호,여권,"
    "جواز السفر,رقم الجواز,דרכון,หนังสือเดินทาง,पासपोर्ट",
    IDENTITY: "身份证号码,身份证号,身份证,身分證字號,身分證號碼,身分證,身份證號碼,身份證,公民身份号码,"
    "マイナンバー,個人番号,주민등록번호,주민번호,외국인등록번호,رقم الهوية,الرقم القومي,"
    "رقم الإقامة,الرقم الوطني,کد ملی,תעודת זהות,מספר זהות,ת.ז,ת״ז,เลขประจำตัวประชาชน,เลขบัตรประชาชน,บัตรประชาชน,"
    "在留カード番号,पहचान पत्र,आधार,জাতীয় পরিচয়পত্র",
    ACCOUNT: "银行账号,銀行帳號,银行账户,账号,账户,帳號,帳戶,口座番号,계좌번호,رقم الحساب,חשבון בנק,"
    "מספר חשבון,เลขที่บัญชี,เลขบัญชี,खाता संख्या,खाता नंबर",
    CARD: "银行卡号,信用卡号,信用卡號,卡号,卡號,信用卡,银行卡,クレジットカード番号,クレジットカード,"
    "カード番号,카드번호,신용카드,رقم البطاقة,بطاقة الائتمان,מספר כרטיס,כרטיס אשראי,บัตรเครดิต",
    DRIVING: "驾驶证号,驾驶证,駕駛執照,駕照,驾照,運転免許証番号,運転免許証,運転免許,운전면허번호,"
    "운전면허,رخصة القيادة,רישיון נהיגה,ใบขับขี่,ड्राइविंग लाइसेंस",
    MEDICAL: "診察券番号,患者番号,カルテ番号,환자번호,病历号,病歷號碼,病歷號,住院号,医保卡号,健保卡號,"
    "रोगी संख्या,मरीज संख्या,رقم المريض,رقم الملف الطبي",
    PLATE: "ナンバープレート,車両番号,차량번호,번호판,车牌号码,车牌号,车牌,車牌號碼,車牌,गाड़ी नंबर,वाहन संख्या,"
    "رقم اللوحة,ทะเบียนรถ,לוחית רישוי",
    CALL: "拨打,撥打,致电,致電,我的号码是,我的號碼是,我的号码,我的號碼,联系我,聯絡我,找我,可以打,私の番号は,"
    "私の番号,ご連絡,お電話,제 번호는,제 번호,내 번호는,내 번호,전화해,연락,اتصل,رقمي,التواصل,תתקשר,"
    "התקשר,המספר שלי,להשיג אותי,โทรหา,เบอร์ของฉัน,เบอร์ฉัน,ติดต่อ,मेरा नंबर,कॉल",
    VERSION: "版本号,版本號,版本,バージョン,버전,الإصدار,نسخة,גרסה,גירסה,เวอร์ชัน,รุ่น,संस्करण,"
    "升级,升級,更新到,更新至,アップデート,업데이트,업그레이드,固件,韌體,ファームウェア,펌웨어",
    KEY: "密钥,密鑰,访问令牌,令牌,アクセスキー,APIキー,トークン,토큰,رمز الوصول",
}
_MARKS: Mapping[str, str] = {
    word: chr(int(mark[2:], base=16)) for mark, words in _WORDS.items() for word in words.split(",")
}

_CYRILLIC = dict(
    zip(
        "абвгґдеёєжзиіїйклмнопрстуўфхцчшщъыьэюяђјљњћџ",
        "abvggdeeezziiijklmnoprstuufhccss'y'euadjlnhd",
        strict=True,
    )
)
_GREEK = dict(zip("αβγδεζηθικλμνξοπρστυφχψως", "abgdezhtiklmnxoprstufhpos", strict=True))
_LATIN = dict(zip("łøđðþßæœıħ", "lodhtsaoih", strict=True))
_SIGNS = {
    **dict.fromkeys("\u00ba\u00b0", "o"),  # n.º, n°
    "\u2116": "#",
    **dict.fromkeys("\u2192\u21d2\u279c\u27a1\u2794", ">"),
    **dict.fromkeys("\u00ab\u00bb\u300c\u300d\u300e\u300f", '"'),
    **dict.fromkeys("年月년월", "-"),
    **dict.fromkeys("日일", " "),
    **dict.fromkeys("是はは为為은는", ":"),
}
_LETTERS = (range(0xC0, 0x250), range(0x370, 0x530), range(0x1E00, 0x2000))  # Latin, Greek, Cyrillic


def fold(text: str) -> ByteText:
    """Convert like `to_byte_text`, with `data` for the patterns of labels."""
    plain = to_byte_text(text)
    if plain.text.isascii():
        return plain
    text = _MARK.sub("?", plain.text)
    marked = _words().sub(lambda word: _MARKS[word[0]] * len(word[0]), text)
    return ByteText(plain.text, marked.translate(_table()).encode("latin-1", "replace"))


_MARK = re.compile("[\x80-\x9f]")


@cache
def _words() -> re.Pattern[str]:
    """Match the words, longest first, by their first character: one branch to enter for each."""
    endings: defaultdict[str, list[str]] = defaultdict(list)
    for word in sorted(_MARKS, key=len, reverse=True):
        endings[word[0]].append(re.escape(word[1:]))
    return re.compile("|".join(f"{re.escape(first)}(?:{'|'.join(rest)})" for first, rest in endings.items()))


@cache
def _table() -> dict[int, str]:
    """Map letters to plain letters, and signs to plain signs."""
    table = {ord(sign): plain for sign, plain in _SIGNS.items()}
    known = _LATIN | _CYRILLIC | _GREEK
    for code in (code for codes in _LETTERS for code in codes):
        letter = chr(code)
        base = normalize("NFD", letter.lower())[0]
        plain = known.get(letter.lower(), known.get(base, base))
        if plain.isascii():
            table[code] = plain.upper() if letter.isupper() else plain
    return table
