"""Telephone numbers, addresses of machines, versions and placeholders beside the words of many languages."""

import pytest
from phonenumbers import PhoneNumberFormat, PhoneNumberType, example_number_for_type, format_number

from ragtide.evaluators.leaks import SECRETS, scanner

scan = scanner()

# A country, and ways to give somebody a number there.
WAYS = {
    "DE": ("Meine Nummer ist {}.", "Sie erreichen uns unter {}.", "Rufen Sie mich unter {} an.", "mobil {}"),
    "FR": ("Mon numéro est le {}.", "Vous pouvez me joindre au {}.", "Appelez-moi au {}."),
    "ES": ("Mi número es {}.", "Puede contactarme en el {}.", "Llámame al {}."),
    "MX": ("Mi celular es el {}.", "Puede contactarme en el {}."),
    "IT": ("Il mio numero è {}.", "Mi trovi al {}.", "Il mio cellulare è il {}."),
    "PT": ("O meu número é {}.", "Contacte-me pelo {}.", "Ligue para {}."),
    "BR": ("Meu celular é {}.", "Fale comigo no {}."),
    "NL": ("Mijn nummer is {}.", "Ik ben bereikbaar op {}."),
    "PL": ("Mój numer to {}.", "Zadzwoń pod {}.", "Proszę dzwonić na {}."),
    "SE": ("Mitt nummer är {}.", "Du når mig på {}.", "Ring mig på {}."),
    "DK": ("Mit nummer er {}.", "Du kan fange mig på {}.", "Ring til mig på {}.", "mobil {}"),
    "NO": ("Nummeret mitt er {}.", "Du når meg på {}.", "Mobilen min er {}."),
    "FI": ("Numeroni on {}.", "Tavoitat minut numerosta {}."),
    "CZ": ("Moje číslo je {}.", "Zavolejte mi na {}.", "Můj mobil je {}."),
    "HU": ("A számom {}.", "Hívjon a {} számon."),
    "RO": ("Numărul meu este {}.", "Sunați-mă la {}.", "Mă găsiți la {}."),
    "GR": ("\u039f αριθμός μου είναι {}.", "Καλέστε με στο {}.", "\u03a4\u03bf κινητό μου είναι {}."),
    "RU": ("Мой номер {}.", "Позвоните мне по номеру {}."),
    "UA": ("Мій номер {}.", "Зателефонуйте мені за номером {}."),
    "TR": ("Numaram {}.", "Beni {} numaras\u0131ndan aray\u0131n.", "Cep telefonum {}."),
    "ID": ("Nomor saya {}.", "Hubungi saya di {}."),
    "VN": ("Số của tôi là {}.", "Liên hệ {}."),
    "CN": ("我的号码是{}。", "请拨打{}联系我。", "可以打{}找我。"),
    "TW": ("我的號碼是{}。", "請撥打{}聯絡我。"),
    "JP": ("私の番号は{}です。", "{}にお電話ください。", "{}までご連絡ください。"),
    "KR": ("제 번호는 {}입니다.", "{}로 전화해 주세요.", "{}로 연락 주세요."),
    "TH": ("เบอร์ของฉันคือ {}", "ติดต่อ {}"),
    "IN": ("मेरा नंबर {} है।", "मुझे {} पर कॉल करें।"),
    "EG": ("رقمي هو {}.", "اتصل بي على {}."),
    "IL": ("המספר שלי הוא {}.", "התקשר אליי ל-{}."),
}
KINDS = (PhoneNumberType.MOBILE, PhoneNumberType.FIXED_LINE)


def national_forms(region: str) -> tuple[str, ...]:
    """Numbers of the country as people there group them, and in one piece."""
    grouped = [
        format_number(example, PhoneNumberFormat.NATIONAL)
        for example in (example_number_for_type(region, kind) for kind in KINDS)
        if example is not None
    ]
    return (*grouped, *("".join(filter(str.isdigit, number)) for number in grouped))


@pytest.mark.parametrize("region", WAYS)
def test_a_national_number_is_found_beside_its_countrys_words(region: str) -> None:
    for way in WAYS[region]:
        for number in national_forms(region):
            text = way.format(number)
            found = [(hit.kind, text[hit.start : hit.end]) for hit in scan(text).hits]
            assert [kind for kind, _ in found] == ["phone"], text
            assert number in found[0][1] or found[0][1] in number, text


@pytest.mark.parametrize(
    "text",
    [
        "Rufen Sie uns an: Bestellnummer 12345678",
        "Sunați-mă, comanda 4400112233",
        "Bel ons over factuur 1234567",
        "a handy 1234567 guide",
        "Das Handy hat 12345678 Pixel",
        "Handy 12345678 Stück verkauft",
        "ring binder 40612345 in stock",
        "Anruf am 03.04.2024 um 12:30",
        "appeler avant le 12 03 2024",
        "请联系我 2024-03-12 12:30",
        "请联系我\uff0c订单号是20240312001。",
        "Llámame, el pedido 4455667788 no llegó",
        "Hívjon! A számla 4400112233",
    ],
)
def test_numbers_that_no_one_can_dial_there_are_none(text: str) -> None:
    assert [hit for hit in scan(text).hits if hit.kind == "phone"] == []


def test_regions_are_several() -> None:
    text = "030 901820, 06 12 34 56 78 12, 212-555-0123"
    assert [text[hit.start : hit.end] for hit in scanner(("DE", "US"))(text).hits] == ["030 901820", "212-555-0123"]
    assert [text[hit.start : hit.end] for hit in scanner(())(text).hits] == ["212-555-0123"]


@pytest.mark.parametrize(
    "text",
    [
        *("my laptop 10.0.0.12 is offline", "The printer 10.1.20.5 is out of paper", "Printer 10.0.0.5 is offline"),
        *("Anna's computer 10.0.0.7", "our NAS 10.0.0.20", "PC 10.3.4.5", "please check 10.0.0.8", "visit 10.0.0.1"),
        *("Drucker 10.0.0.5", "mein Rechner 10.0.0.9", "mon ordinateur 10.0.0.14", "la impresora 10.0.0.5"),
        *("stampante 10.0.0.5", "drukarka 10.0.0.5", "Принтер 10.0.0.5", "打印机10.0.0.5脱机", "プリンター10.0.0.5"),
    ],
)
def test_a_private_address_is_found_beside_everyday_words(text: str) -> None:
    assert [hit.kind for hit in scan(text).hits] == ["ip"]


VERSIONS = (
    *("Versión", "versione", "versie", "versão", "wersja", "wersji", "verze", "versio", "versjon", "verzió", "verzija"),
    *("версия", "версии", "версію", "sürüm", "versi", "phiên bản", "έκδοση", "versiunea", "Ausgabe", "прошивка"),
    *("actualizado a", "aktualisiert auf", "mise à jour", "zaktualizowano do", "обновлено до"),
    *("版本", "版本号\uff1a", "バージョン", "버전", "الإصدار", "גרסה", "เวอร์ชัน", "संस्करण", "固件", "升级到", "펌웨어"),
    *("Die Version lautet", "La versione è la", "バージョンは", "版本为", "the tableau", "the oracle", "iOS"),
)


@pytest.mark.parametrize("words", VERSIONS)
def test_a_version_is_no_address_in_any_language(words: str) -> None:
    after = " release" if words == "the tableau" else ""
    assert scan(f"{words} 10.2.3.45{after}").hits == ()
    assert scan(f"{words} 12.1.0.2{after}").hits == ()


@pytest.mark.parametrize("words", ["Version", "Versión", "versione", "wersja", "версия", "版本", "バージョン", "버전"])
def test_nor_is_one_with_a_large_number(words: str) -> None:
    assert scan(f"{words} 120.0.6.71").hits == ()


PLACEHOLDERS = (
    *("your-password-here", "my-password", "tu-contraseña", "tu_contraseña_aquí", "su-contraseña", "contraseña-aqui"),
    *("votre-mot-de-passe", "ton_mot_de_passe", "mot-de-passe-ici", "ihr-passwort", "dein_passwort", "IhrPasswort"),
    *("passwort-hier", "la-tua-password", "sua-senha", "sua_senha_aqui", "uw-wachtwoord", "jouw_wachtwoord"),
    *("twoje-haslo", "twoje_hasło", "ditt-lösenord", "din-adgangskode", "salasanasi", "şifreniz", "sizin_şifreniz"),
    *(
        "ваш-пароль",
        "ваш_пароль",
        "пароль_здесь",
        "введите_пароль",
        "你的密码",
        "您的密码",
        "此处填写密码",
        "请输入密码",
    ),
    *(
        "あなたのパスワード",
        "パスワードを入力",
        "비밀번호를-입력",
        "आपका_पासवर्ड",
        "mat-khau-cua-ban",
        "kata-sandi-anda",
    ),
)


@pytest.mark.parametrize("value", PLACEHOLDERS)
@pytest.mark.parametrize("way", ["password: {}", 'password = "{}"', "DB_PASSWORD={}", 'contraseña: "{}"', "пароль: {}"])
def test_a_placeholder_in_any_language_is_no_password(value: str, way: str) -> None:
    assert [hit.kind for hit in scan(way.format(value)).hits if hit.kind in SECRETS] == []


@pytest.mark.parametrize("value", ["tu-contraseña", "ihr_passwort", "votre-mot-de-passe", "ваш-пароль", "你的密码"])
def test_nor_is_it_one_in_a_url(value: str) -> None:
    assert scan(f"postgres://user:{value}@db.example.com/x").hits == ()


@pytest.mark.parametrize(
    "value", ["tu-contraseña-77", "passwort2024", "Tr0ub4dor&3", "ihr-passwort!9x", "密码hunter2!"]
)
def test_a_password_that_says_more_is_one(value: str) -> None:
    assert [hit.kind for hit in scan(f'password = "{value}"').hits] == ["password"]
