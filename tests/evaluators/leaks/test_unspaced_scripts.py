"""Values in texts of scripts that write no blanks between words: each ends where its own script does."""

import pytest

from ragtide.evaluators.leaks import scanner
from tests.evaluators.builtin.scoring import scored

scan = scanner()

AROUND = {
    "Chinese": ("请联系", "谢谢您。"),
    "Chinese, punctuated": ("资料\uff1a", "\uff0c请查收。"),
    "Japanese": ("連絡先は", "です。"),
    "Korean": ("연락처는", "입니다."),
    "Thai": ("ติดต่อ", "ครับ"),
    "Lao": ("ຕິດຕໍ່", "ຂອບໃຈ"),
    "Burmese": ("ဆက်သွယ်ရန်", "ကျေးဇူးတင်ပါတယ်"),
    "Khmer": ("ទំនាក់ទំនង", "អរគុណ"),
}
VALUES = {
    "email": ("bob@example.com", "first.last+tag@mail.example.co.uk", "j\u00fcrgen@m\u00fcller.example.de"),
    "card": ("4111 1111 1111 1111", "4111111111111111"),
    "iban": ("GB82 WEST 1234 5698 7654 32", "DE89370400440532013000"),
    "phone": ("+49 30 901820", "(212) 555-0147", "+86 138 1234 5678", "020 7946 0018"),
    "ip": ("203.0.113.7", "2001:db8::8a2e:370:7334"),
    "ssn": ("219-09-9998",),
    "es_dni": ("12345678Z",),
    "it_codice_fiscale": ("RSSMRA85T10A562S",),
    "crypto_wallet": ("1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",),
    "github_token": ("ghp_" + "a1B2c3D4e5F6" * 3,),
}
CASES = [(name, kind, value) for name in AROUND for kind, values in VALUES.items() for value in values]


@pytest.mark.parametrize(("name", "kind", "value"), CASES)
def test_a_value_ends_where_its_script_does(name: str, kind: str, value: str) -> None:
    before, after = AROUND[name]
    text = f"{before}{value}{after}"
    assert [(hit.kind, text[hit.start : hit.end]) for hit in scan(text).hits] == [(kind, value)]


@pytest.mark.parametrize("name", AROUND)
@pytest.mark.parametrize(
    "label", ["密码是", "パスワード\uff1a", "비밀번호: ", "รหัสผ่าน ", "password: ", "login: admin / "]
)
def test_a_bare_password_ends_where_its_script_does(name: str, label: str) -> None:
    text = f"{label}Tr0ub4dor&3{AROUND[name][1]}"
    assert [(hit.kind, text[hit.start : hit.end]) for hit in scan(text).hits] == [("password", "Tr0ub4dor&3")]


@pytest.mark.parametrize("name", AROUND)
def test_an_allowed_address_is_allowed_there_too(name: str) -> None:
    before, after = AROUND[name]
    allow = {"allow": {"*": ["help@shop.example"]}}
    given = scored("pii_leakage", allow, answer=f"{before}help@shop.example{after}")
    assert given.metrics["passes"] == 1.0
    given = scored("pii_leakage", {"allow": {"*": ["@shop.example"]}}, answer=f"{before}help@shop.example{after}")
    assert given.metrics["passes"] == 1.0


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("用户@例子.中国", "用户@例子.中国"),
        ("mail 用户@例子.中国 now", "用户@例子.中国"),
        ("bob@例子.example", "bob@例子.example"),
        ("пётр@пример.рф", "пётр@пример.рф"),
        ("邮箱bob@例子.中国", "bob@例子.中国"),
    ],
)
def test_addresses_of_other_scripts_stay_whole(text: str, value: str) -> None:
    assert [text[hit.start : hit.end] for hit in scan(text).hits] == [value]
