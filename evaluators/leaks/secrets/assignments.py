"""Values after a name: `name = value`, `"name": "value"`, "the name is value"."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from ragtide.evaluators.leaks.byte_text import ByteText, spaced_length
from ragtide.evaluators.leaks.patterns import compile_pattern

_TAGS = r"(?:</?[a-zA-Z][^<>\n]{0,40}>\s{0,4}){1,4}"
_ATTRIBUTE = r"[\"']\s{1,4}(?:value|content)\s?="
# What closes a name (quotes, as they are or escaped; bold; a bracket), the sign, what opens bold.
SIGN = (
    rf"(?:[\"'`*_\])\\]{{0,5}}\s{{0,4}}(?::=|=>|->|==?|::?|\||>|~|\.{{3,40}}|%3[dD]|- )[*_]{{0,3}}(?:\s?{_TAGS})?"
    rf"|{_ATTRIBUTE}|[*_]{{0,3}}{_TAGS})\s{{0,12}}(?:[-*?] |\[\s?|[*_]{{2}})?\\?"
)
QUOTED = r"\"([^\"\n]+)\"|'([^'\n]+)'|`([^`\n]+)`"
# define('DB_PASSWORD', '...'), config.set("password", "..."): what may stand before the name in quotes, and behind it.
CALL = r"\(\s{0,4}[\"'`][A-Za-z0-9_.-]{0,40}"
ARGUMENT = rf"[A-Za-z0-9_]{{0,12}}[\"'`]\s{{0,4}},\s{{0,4}}(?:{QUOTED})"
BARE = r"([^\s\"'`<>,;|]{4,})"
# Between a name and its sign or verb: nothing that makes it the name of something else ("password policy is").
OF = (
    r"(?: (?:wi-?fi|wlan|vpn|ssh|ftp|admin|root|login|e-?mail|di accesso|d'accesso|d'acces|de acceso|temporaire|"
    r"provisoire|temporal|temporanea|provvisori[ao]|provisori[ao]|tymczasowe|jednorazowe|nuov[ao]|nuev[ao]|nov[ao]|nowe|attuale|"
    r"actual|atual|inicial|iniziale))?"
    r"(?:\s?\([^()\n]{0,32}\))?(?: (?:for|of|to|on|in|at|del|de|der|des|do|da|du|di|van|von|fur|pour|para|per|"
    r"til|ot|dla|k|"
    r"till|which|that|we|i|you|they|he|she|registered|recorded|stored|saved|provided|given|used|assigned|issued|shown|"
    r"shared|generated)\b[^\n.,:;=?!]{0,48}?)?"
)
VERB = (  # the longest first: of "was set to" more than "was" belongs to it
    r"\b(?:(?:(?:has|have) been |was |is )?(?:set|reset|changed) to|(?:used to|will|shall) be|"
    r"is|was|are|as|equals|still|remains|becomes|ist|lautet|est|es|e|sono|on|ar|er|to|jest|este|adalah|la)(?: now)?\b:?"
)
IS = rf"{OF}[\"'*_]{{0,3}}(?:'s| {VERB}) {{1,2}}[*_]{{0,3}}(?:{QUOTED}|{BARE})"
_QUOTES = "\"'`"
_CLOSING = ".:)]}\\*"  # of the sentence, the call or the bold around a bare value


class Assignment(NamedTuple):
    """A value, its place, whether it is in quotes, and the match."""

    value: str
    start: int
    end: int
    quoted: bool
    match: Any


def assignments(shape: ByteText, pattern: str) -> Iterator[Assignment]:
    """Yield each match of the pattern. Its last groups are those of the value. A bare value ends where a script
    without blanks between words begins.
    """
    text = shape.text
    for match in compile_pattern(pattern).finditer(shape.data):
        start, end = match.span(match.lastindex)
        quoted = chr(shape.data[start - 1]) in _QUOTES
        if not quoted:
            end = start + spaced_length(text[start:end])
        while end > start and text[end - 1] in ("\\" if quoted else _CLOSING):
            end -= 1
        if end > start:
            yield Assignment(text[start:end], start, end, quoted, match)
