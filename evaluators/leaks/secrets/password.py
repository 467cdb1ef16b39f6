"""Passwords identified by a name: `password = ...`, `"pwd": "..."`, "the password is ..."."""

import re
from collections.abc import Iterator

from ragtide.evaluators.leaks.byte_text import ByteText, Span
from ragtide.evaluators.leaks.detector import Detector
from ragtide.evaluators.leaks.folding import PASSWORD
from ragtide.evaluators.leaks.patterns import compile_pattern
from ragtide.evaluators.leaks.secrets.assignments import (
    ARGUMENT,
    BARE,
    CALL,
    IS,
    OF,
    QUOTED,
    SIGN,
    Assignment,
    assignments,
)
from ragtide.evaluators.leaks.secrets.placeholder import is_code, is_name, is_slot

_SHORTEST, _LONGEST = 6, 128
_PIN = 4  # digits
_SPELT_OUT = 6  # letters: "password: 120463" is one, "pass: 120" counts
_STRONG = 8  # characters of one that stands in prose with nothing but "password" before it
_THREE, _FOUR = 3, 4

# As spelt without accents: English, German, Spanish, French, Portuguese, Dutch, Polish, Danish and Norwegian, Swedish,
# Finnish, Turkish, Italian and Romanian, Russian and Ukrainian, Czech, Hungarian, Croatian, Greek, Indonesian.
_WORD = (
    r"pass(?:word|code|phrase)|passwort|kennwort|contrasen(?:y)?a|mot[ _-]de[ _-]passe|\bmdp\b|palavra[ _-]passe|"
    r"senha|wachtwoord|hasl[oa]|zugangscode|"
    r"adgangskoden?|kodeord(?:et)?|parola d.ordine|(?:wi-?fi|wlan|wpa2?)[ _-](?:key|schlussel|code)|passord(?:et)?|"
    r"losenord(?:et)?|salasana|"
    r"sifre|parola|parol[ia']|heslo|jelszo|lozinka|zaporka|geslo|slaptazodis|"
    r"kodikos(?: prosbashs)?|kata sandi|mat khau|\bclave(?: de acceso)?"
)
_NAME = rf"{_WORD}|passwd|\bpwd|_pwd|\bpass|[_-]pass|\bpw|_pw|(?-i:[a-z]Pass\b)"
_MARKED = rf"{PASSWORD}{{2,20}}[^0-9A-Za-z\n]{{0,4}}\n?"
_ASSIGNED = rf"(?:(?i:({_NAME})[0-9]?(?:{OF})?(?:{SIGN}))|({_MARKED}))(?:{QUOTED}|{BARE})"
_KEY_OF_API = r"(?i)^clave de api\b"
_CALLED = rf"(?i){CALL}(?:{_NAME}){ARGUMENT}"
_SAID = rf"(?i)(?:\b|_)(?:{_WORD}|passwd|pwd|pw|credentials?){IS}"
_BESIDE = r"(?i)\b(?:pass(?:word|code|phrase)|identified by) (?:\"([^\"\s]{6,64})\"|'([^'\s]{6,64})')"
_PROSE_BESIDE = (
    rf"(?i)(?:(?:_|\b)(?:{_WORD}|requirepass|passwd|pwd|credentials?)|_pass|_pwd)(?: number| no\.?)?"
    rf"[*:,\])]{{0,3}}\s{{1,8}}[(\[<#]{{0,2}} ?{BARE}"
)
_SHORT_BESIDE = r"(?i)\b(?:pw|pass|secret)(?: is|,|:)? {1,8}[(\[#]?([^\s\"'`<>,;|]{0,64}[0-9][^\s\"'`<>,;|]{0,64})"
_WITH = rf"(?i)\b(?:with|using|use|and|enter|try) (?:the |this )?(?:{_WORD})[*:]{{0,3}}\s{{1,2}}{BARE}"
_BEHIND = (
    rf"(?i)(?:{QUOTED}|\b([^\s\"'`<>,;|]{{8,64}})) (?:as|is) (?:the|your|my|our|his|her|their|an?)"
    rf"(?: [a-z-]{{2,12}}){{0,2}} (?:{_WORD}|pwd?)\b|\b([^\s\"'`<>,;|()]{{8,64}}) \((?:{_WORD}|pwd?)\)"
)
_OPTION = rf"(?i)(?:^|\s)--[a-z-]{{0,24}}(?:password|passwd|passphrase|pass|pwd)[ =](?:{QUOTED}|{BARE})"
_OF_A_COMMAND = (
    r"\b(?:(?:mysql|mariadb)[a-z]*\b[^\n|]{0,80}? -p|(?:docker|podman|helm registry|az acr) login\b[^\n|]{0,80}? -p ?|"
    r"(?:mongo[a-z]*|twine|htpasswd|smbclient|sshpass|rabbitmqadmin)\b[^\n|]{0,80}? -p ?|redis-cli\b[^\n|]{0,60}? -a ?|"
    r"net use\b[^\n|]{0,80}? /user:[^\s]{1,64} |net user [^\s]{1,64} |"
    rf"ldap[a-z]+\b[^\n|]{{0,80}}? -w ?)(?:{QUOTED}|{BARE})"
)
_PROSE = (
    *("password", "passwd", "secret", "token", "string", "none", "null", "true", "false", "required", "optional"),
    *("undefined", "input", "text", "hidden", "bearer", "basic", "incorrect", "correct", "invalid", "expired", "wrong"),
    *("encrypted", "hashed", "stored", "case-sensitive", "empty", "unset", "username", "user/password"),
)
# Of names of secrets and of rules for passwords, not of phrases made up to be remembered.
_NAMING = frozenset(
    (
        *("my", "db", "app", "api", "key", "keys", "name", "prod", "dev", "test", "staging", "user", "admin", "secret"),
        *("secrets", "password", "passwords", "credential", "credentials", "token", "vault", "store", "service", "id"),
        *("string", "required", "optional", "value", "default", "config", "ref", "env", "file", "path", "must", "be"),
        *("to", "of", "the", "from", "for", "is", "not", "and", "or", "in", "at", "least", "reset", "enter", "length"),
        *(
            "sensitive",
            "characters",
            "minimum",
            "long",
            "mindestens",
            "acht",
            "zeichen",
            "lang",
            "caracteres",
            "tekens",
        ),
    )
)
_COMMON = frozenset(  # of letters alone, as most people have them
    ("letmein", "qwerty", "qwertyuiop", "iloveyou", "opensesame", "asdfgh", "asdfghjkl", "qazwsx", "swordfish")
)
_FILLERS = ("your", "<", "${", "{{", "xxxx", "****", "....", "placeholder", "redacted")
_VARIABLES = ("passw", "passphrase", "token", "credential", "secret", "param", "string", "field")
# Algorithms, types, rules, amounts: SHA-256, varchar2, min:8, required|string, 90days, 100.0%, 12/15, C:\Users, !vault.
_NO_VALUE = re.compile(
    r"(?i)(?:sha|md|aes|rsa|base|argon|pbkdf|utf|nist|iso|fips|n?varchar|oauth|saml|tls|ssl|ntlm|wpa|string|text|"
    r"char|min|max|"
    r"length|minlength|maxlength)[-_@=:.]{0,2}v?[0-9=.:-]*[a-z]?(?:[-_][a-z]+)*|"
    r"[a-z_]+(?::[\w,.]+)?(?:\|[a-z_]+(?::[\w,.]+)?)+|"
    r"[0-9]{1,4}[-+]?(?:[0-9]{1,4}[-+]?)?(?:characters?|chars?|words?|letters?|digits?|symbols?|days?|hours?|months?|"
    r"weeks?|"
    r"minutes?|years?|zeichen|tage|bits?)|[0-9.,/%+()-]+|[a-z]:\\.*|![a-z]+"
)
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_RUNS = re.compile(r"[A-Z]+|[a-z]+")
_VOWELS = frozenset("aeiouyAEIOUY")
_OF_WORDS = 4  # lower-case letters in a row, as identifiers have them and random letters seldom
_MANY_WORDS, _SHORT_WORD = 5, 2.8  # letters a word: fewer on average than an identifier's have


def opens(value: str, quoted: bool) -> bool:
    """Whether it may be a password: no word of prose, of code or of a form."""
    if not _SHORTEST <= len(value) <= _LONGEST or any(map(str.isspace, value)) or is_code(value) or _is_word(value):
        return False
    return quoted or _is_mixed(value)


def _is_word(value: str) -> bool:
    low = value.lower()
    if low.strip(".:!") in _PROSE or len(set(value)) == 1 or any(filler in low for filler in _FILLERS):
        return True
    if is_slot(value):
        return True
    if _NO_VALUE.fullmatch(value.rstrip(".!?")) or (
        is_name(value) and not value[-1].isdigit() and not _is_phrase(value)
    ):
        return True
    return value.replace("_", "").isalpha() and any(word in low for word in _VARIABLES)


def _is_phrase(value: str) -> bool:
    """Whether it is of four words or more (three with capitals), none of which names a secret or a rule for it."""
    parts = re.split("[-_.]", value)
    capitals = sum(part[:1].isupper() for part in parts)
    enough = len(parts) >= _FOUR or (len(parts) == _THREE and capitals == _THREE)
    return enough and all(map(str.isalnum, parts)) and _NAMING.isdisjoint(map(str.lower, parts))


def _is_mixed(value: str) -> bool:
    """Whether it has two of letters, digits and signs, the end of a sentence aside, or letters in no word's order."""
    core = value.rstrip(".!?")
    common = core.lower() in _COMMON
    return len(_classes(value) & {"letter", "digit", "sign"}) > 1 or _is_random(value) or _is_phrase(core) or common


def _classes(value: str) -> set[str]:
    core = value.rstrip(".!?")
    found = {"letter" for c in core if c.isalpha()} | {"digit" for c in core if c.isdigit()}
    found |= {"sign" for c in core if c in "!@#$%^&*?+"}
    return found | {"upper" for c in core if c.isupper()} | {"lower" for c in core if c.islower()}


def _is_random(value: str) -> bool:
    value = value.replace("_", "")
    runs = _RUNS.findall(value)
    words = [run for run in runs if len(run) >= _OF_WORDS and not _VOWELS.isdisjoint(run)]
    parts = len(_PARTS.findall(value))
    changing = parts >= _MANY_WORDS and len(value) <= _SHORT_WORD * parts
    return len(value) >= _STRONG and value.isalpha() and (changing or (len(runs) > _THREE and not words))


def is_strong(value: str) -> bool:
    """Whether it is no word even of technical prose: three of digits, signs, capitals and small letters."""
    classes = _classes(value)
    return _is_random(value) or (
        len(value) >= _STRONG
        and "letter" in classes
        and (len(classes & {"digit", "sign", "upper", "lower"}) >= _THREE or {"digit", "sign"} <= classes)
    )


def _find_assigned(shape: ByteText) -> Iterator[Span]:
    for found in assignments(shape, _ASSIGNED):
        name = found.match[1] or found.match[2] or b""
        spelt_out = len(name) >= _SPELT_OUT or name.lower() == b"pwd"
        is_pin = found.value.isdigit() and spelt_out and len(found.value) >= _PIN
        if (is_pin or opens(found.value, found.quoted or _is_parameter(shape, found))) and not _is_anothers(
            shape, found
        ):
            yield Span(found.start, found.end)


def _is_parameter(shape: ByteText, found: Assignment) -> bool:
    """Whether it stands in a URL's query or a connection string (";Pwd=..."), where no words do."""
    start = found.match.start()
    return shape.data[start - 1 : start] in (b"&", b"?", b";") and shape.data[found.start - 1 : found.start] == b"="


def _find_called(shape: ByteText) -> Iterator[Span]:
    """In a call: lists of the fields of a form are written so, too, and seldom mix letters with digits and signs."""
    for found in assignments(shape, _CALLED):
        if opens(found.value, quoted=False):
            yield Span(found.start, found.end)


def _is_anothers(shape: ByteText, found: Assignment) -> bool:
    """Whether it is a word of a sentence ("user123's choice"), what follows a form's field (<password>@host) or a key's
    name ("clave de API").
    """
    if compile_pattern(_KEY_OF_API).search(shape.data[found.match.start() : found.start]):
        return True
    if found.quoted:
        return False
    return (
        shape.data[found.end : found.end + 2].lower() == b"'s" or shape.data[found.start - 1 : found.start + 1] == b">@"
    )


def _find_said(shape: ByteText) -> Iterator[Span]:
    for pattern in (_SAID, _BESIDE, _WITH):
        for found in assignments(shape, pattern):
            is_pin = found.value.isdigit() and len(found.value) >= _PIN
            if is_pin or opens(found.value, found.quoted and pattern is _SAID):
                yield Span(found.start, found.end)
    for pattern in (_PROSE_BESIDE, _SHORT_BESIDE, _BEHIND):
        for found in assignments(shape, pattern):
            if is_strong(found.value) and opens(found.value, quoted=False):
                yield Span(found.start, found.end)


def _find_option(shape: ByteText) -> Iterator[Span]:
    """On a command line."""
    for pattern in (_OPTION, _OF_A_COMMAND):
        for found in assignments(shape, pattern):
            if opens(found.value, found.quoted):
                yield Span(found.start, found.end)


DETECTORS: tuple[Detector, ...] = (
    Detector("password", "a password", (rf"(?i)(?:{_NAME})", PASSWORD), _find_assigned),
    Detector("password", "a password", (rf"(?i)(?:{_NAME})[A-Za-z0-9_]{{0,12}}[\"'`]\s{{0,4}},",), _find_called),
    Detector(
        "password",
        "a password",
        (rf"(?i)(?:{_WORD}|passwd|\bpwd?\b|_pass|_pwd|credential|requirepass|identified by)", _SHORT_BESIDE),
        _find_said,
    ),
    Detector(
        "password", "a password", (r"(?i)--[a-z-]{0,24}pass|--[a-z-]{0,24}pwd", r" -[paw]|net user? "), _find_option
    ),
)
