"""Placeholders that documentation, forms and programs put in place of a secret."""

import re
from functools import lru_cache

from ragtide.evaluators.leaks.folding import KEY, PASSWORD, fold

_FEW = 5  # different characters; fewer are a filler such as 0123 or xxxx
_FILLERS = ("your", "placeholder", "changeme", "change_me", "change-me", "redacted", "insert", "replace", "dummy")
_MARKS = ("xxxx", "****", "....", "<", "${", "{{", "not-a-real", "todo", "_here", "-here")
_CODE = (
    *(
        "os.",
        "env.",
        "process.",
        "config.",
        "settings.",
        "self.",
        "this.",
        "getenv",
        "secrets.",
        "vault:",
        "var.",
        "env:",
    ),
    *("props.", "args.", "params.", "data.", "local.", "module."),
)
# $DB_PASS, ${pass}, $(pass show), $row['pass'], %PASS%, &password, !vault: what a program or a shell puts there.
_VARIABLE = re.compile(
    r"\$(?:[({].*|[A-Z_][A-Z0-9_]*|[a-z_]+[0-9]{0,2}|[A-Za-z_]+(?:->|\[|\.|::).*|[a-z]+(?:[A-Z][a-z]+)+)|%.*%|"
    r"%[({s].*|&\w+|[<{].*|![a-z]+(?:[_/-][a-z]+)*"
)
# get_secret(name, keys[0], (str, ...; passwords have brackets, too.
_CALL = re.compile(r"[A-Za-z_][\w.:>-]*[(\[](?![0-9]+[A-Za-z])|[(\[](?:$|[A-Za-z_]{2}|[)\]])")
_ROWS = ("abcdefgh", "0123456")

_LONGEST_NAME = 100  # characters
_SHORTEST_PART, _SHORTEST_OF_PARTS = 8, 12  # of what is no path: alone, and between other signs "/"
_WORD = r"(?:[A-Za-z]?[a-z]{1,15}|[A-Z]{1,15})"
# Words and short numbers with signs between them: my-secret-name-2024, Alt+Shift+F12.
_NAME = re.compile(rf"{_WORD}(?:[-_./+:]+(?:{_WORD}|[A-Za-z]?[0-9]{{1,6}}[a-z]?)){{2,}}[-_./+]*")

# What a slot says of itself, as spelt without accents: your-password-here, tu-contrasena, ihr_api_schluessel.
_SLOT = frozenset(
    word
    for words in (
        "your my the a an here put enter insert secret own new",
        "tu tus su vuestra mi la el aqui introduce introduzca secreta secreto de nueva",
        "votre vos ton ta mon le ici saisir saisissez entrez secret du nouveau",
        "ihr ihre dein deine mein das der die hier eingeben geheimes geheimer neues",
        "tua tuo vostra il qui inserisci inserire segreta di",
        "sua seu teu o a aqui insira digite da do",
        "uw jouw je mijn het hier in vul",
        "twoje twoj moje tutaj wpisz podaj",
        "ditt din dit mitt deres har ange indtast skriv angi",
        "sizin senin buraya burada girin cua ban toi nhap anda saya masukkan di sini",
        "vas vase vasa tvoj moj zdes' vvedite ukazite sekretnyj tajnyj zde zadejte sem az on te ide irja",
    )
    for word in words.split()
)
_LABELS = frozenset(
    word
    for words in (
        "password passwd passwort kennwort contrasena contrasenya clave mot passe mdp senha palavra",
        "wachtwoord haslo hasla adgangskode kodeord passord passordet losenord losenordet salasana sifre",
        "parola heslo jelszo lozinka zaporka geslo parol parol' mat khau kata sandi key keys api token jeton",
        "cle chave chiave sleutel klucz schlussel klic avain nyckel nokkel anahtar kluc",
    )
    for word in words.split()
)
# With an ending that says whose it is.
_OWN_LABELS = frozenset(
    ("salasanasi", "salasananne", "sifreniz", "sifrenizi", "parolaniz", "parolanizi", "jelszava", "jelszavad")
)
_SLOT_WORD = re.compile(r"[A-Z]?[a-z']+|[A-Z']+")
_SLOT_BYTES = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ' ")
_MARKED = re.compile(f"[{PASSWORD}{KEY}]".encode("latin-1"))

_NOBODYS = frozenset(
    (
        *("password", "passwd", "pass", "pwd", "secret", "guest", "anonymous", "username", "user", "example", "token"),
        *("mypassword", "changeme", "test", "string", "passw0rd", "pw", "contrasena", "passwort", "senha"),
    )
)


def is_made_up(value: str) -> bool:
    """Whether it is a filler such as xxxxxxxx, or says that it is one."""
    low = value.lower()
    return len(set(value)) < _FEW or any(word in low for word in (*_FILLERS, *_MARKS))


def is_row(value: str) -> bool:
    """Whether the alphabet or the digits stand in it in their order."""
    return any(row in value.lower() for row in _ROWS)


def is_name(value: str) -> bool:
    """Whether it is made of words and short numbers, as what a key is called, and not the key: db-credentials-v2."""
    return len(value) <= _LONGEST_NAME and _NAME.fullmatch(value) is not None


def is_slot(value: str) -> bool:
    """Whether it says in words of some language what belongs there: your-password-here, tu-contrasena."""
    return not any(map(str.isdigit, value)) and _is_slot(value)


@lru_cache(4_096)
def _is_slot(value: str) -> bool:
    data = fold(re.sub("[-_.]", " ", value)).data
    words = [word.lower() for word in _SLOT_WORD.findall(data.decode("latin-1"))]
    if _MARKED.search(data):
        return all(word in _SLOT or word in _LABELS for word in words)
    labels = sum(word in _LABELS for word in words)
    known = all(word in _SLOT or word in _LABELS or word in _OWN_LABELS for word in words)
    whose = labels < len(words) and (labels > 0 or not _OWN_LABELS.isdisjoint(words))
    return known and whose and _SLOT_BYTES.issuperset(data)


def is_nobodys(user: str, password: str) -> bool:
    """Whether documentation would write so: user:password, guest:guest; root:password may open something."""
    low = password.lower()
    filled = len(set(low)) == 1 or any(word in low for word in (*_FILLERS, *_MARKS))
    name = user.lower()
    return filled or is_slot(password) or low == name or (low in _NOBODYS and (not name or name in _NOBODYS))


def is_code(value: str) -> bool:
    """Whether a program or a template would put the secret there when it runs."""
    if value[0] in "/~":
        return is_path(value)
    return (
        _VARIABLE.fullmatch(value) is not None
        or "://" in value
        or value.lower().startswith(_CODE)
        or _CALL.match(value) is not None
    )


def is_path(value: str) -> bool:
    """Whether what begins with "/" leads to a file: base64 has few such signs, and random letters between them."""
    parts = value[1:].split("/")
    longest = max(parts, key=len)
    least = _SHORTEST_PART if len(parts) == 1 else _SHORTEST_OF_PARTS
    random = any(map(str.islower, longest)) and any(map(str.isupper, longest)) and any(map(str.isdigit, longest))
    return "." in value or len(longest) < least or not random or is_name(longest)
