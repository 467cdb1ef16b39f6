"""Labels beside a number: many numbers are personal data only because of their label."""

import re
from collections.abc import Callable, Iterator

from ragtide.evaluators.leaks.byte_text import ByteText, Span
from ragtide.evaluators.leaks.patterns import compile_pattern

_BEFORE = 32  # characters that a label of something else and its number take
_AFTER = 20

# Of what is counted or made in a shop, a build or a book, none is a person's.
_OTHER = (
    r"(?i)(?:\b|_|#)(tax |fiscal |personal |identity |insurance |national )?(?:order|invoice|tracking|ticket|case|"
    r"part|sku|isbn|issn|doi|serial|model|version|release|build|"
    r"rev|"
    r"revision|commit|reference|ref|item|product|catalog(?:ue)?|article|lot|batch|barcode|upc|ean|gtin|asin|job|"
    r"session|"
    r"transaction|request|message|event|trace|page|chapter|section|figure|table|issue|shipment|parcel|kit|ndc|nsn|"
    r"drug|cep|zip|plz|post(?:al|code)|scores?|votes?|rows?|points|ranking|values|samples|lottery|codes?|"
    r"commande|serie|facture|dossier|pedido|factura|bestell(?:ung)?|rechnung|auftrag|ordine|fattura|zamowienia|zakaz|"
    r"(?:order|user|item|tweet|post|video|channel|row|call|callback|phone|mobile)[_ -]?id|[\"']id)s?(?:nummer|nr)?"
    r"(?:[ _-]?(?:id|no|nr|num|number|code|is|was|key)\b\.?){0,2}[\"']?[ :#=\"'(-]*$"
)

# "passport number of the second traveller: ", and a form's field with the value in the line below.
SOMEWHERE = r"(?:[^0-9\n]{0,40}?|[^0-9\n]{0,16}\n\s{0,12}(?:[-*?] )?[\"']?)"
# "number", "no.", "card", "document" in the languages of the labels.
_NUMBER = (
    # Also as the field of what the label names: "passport": {"number": ...
    r"(?:(?:[ _.,/*'\"-]{0,3}|[\"']?:? ?(?:\{\s{0,8}|\n\s{1,8})[\"']?)"
    r"(?:#|(?:number|num(?:ero|mer|eri?s?|urs|ri|bers?|bri|ara[a-z]{0,4})?|no|nr|n\.?o?|nomor|nomer[a-z]{0,2}|"
    r"cislo|c|szama?|broj|stevilka|"
    r"so|id|code|card|document|account|seria|series|i|and|ref|value|field)(?:\b|_)[.:]?))"
)
_HAS = r"(?: (?:has|with|hat|mit|heeft|met|har|med|tiene|con|tem|com|a|avec|ha|ma|z) (?:the|die|der|el|le|il|o|het)?)"
# Whose or which it is, up to a sign: "for Ms X is", "registered in our system is".
_OF = (
    r",? (?:of|for|from|in|on|del|de|des|der|do|da|di|du|van|von|fur|pour|para|per|till|dla|which|that|we|i|you|"
    r"they|he|she|"
    r"registered|recorded|stored|listed|saved|provided|given|used|assigned|issued|linked|associated|attached|belonging|"
    r"printed|shown|displayed|entered|submitted|supplied|holder)\b[^0-9\n:=]{0,40}?"
)
_VERB = (
    r"(?:(?:(?:has been|have been|was|is|to be|be) )?(?:set|reset|changed|updated|corrected|switched) (?:to|from)|"
    r"is|was|are|reads?|shows?|says|being|as|equals|still|remains|es|ist|lautet|est|sono|e|to|on|ar|er|jest|este|"
    r"adalah|la)"
)
TAGS = r"(?:</?[a-z][^<>\n]{0,40}>\s{0,4}){1,4}"
_SIGN = (
    rf"(?:[\"'`*_\])\\]{{0,5}}\s{{0,2}}(?:(?::=|=>|==|::|[:=#|>;~]|-[ >])(?:\s?{TAGS})?|\.{{2,40}}|'s\b:?|"
    rf"\b{_VERB}\b:?(?: (?:el|le|la|the|o))?|{TAGS})[*_]{{0,3}}(?:\s{{1,8}}[-*?] )?)"
)
# Right before the number, but for what may stand between a label and its value: a plural has a sign behind it.
_PARTS = rf"\.?{_HAS}?{_NUMBER}{{0,3}}(?:\*\*)?(?: ?\([^()0-9\n]{{0,24}}\))?"
_LED, _OPENED = rf"(?:{_OF})?{_SIGN}", r"[\s\"'`*_(\[)\]<>\\#,:{}]{0,12}"
LED = rf"[a-z]{{0,12}}{_PARTS}{_LED}{_OPENED}"
BESIDE = rf"(?:(?:[a-z]{{0,11}}[a-rt-z])?{_PARTS}(?:{_LED})?{_OPENED}|{LED})"
# What may stand between a mark and its value.
BESIDE_MARK = rf"(?:[^0-9A-Za-z\n]{{0,12}}?|\s?(?:\n\s{{0,8}}|{TAGS}))"

# What a number counts: "12345678 applications", "250000 dollars", "1234567 GB".
_COUNTED = (
    r"(?i)^[ -]?(?:([a-z]{3,}s)(?:[^a-z0-9_=:]|$)|people|percent|%|million|billion|[kmgt]b\b|k[gmw]\b|"
    r"euro?\b|per\b|or more|times)"
)
# As quantities are written: whole, or with their thousands apart. "070..." is none, nor is "612 84 93 27".
_QUANTITY = r"[1-9][0-9]{0,14}|[1-9][0-9]{0,2}(?:[ ,.][0-9]{3})+"
_MOST_COUNTED = 9  # digits of a whole number, but for what machines count
_MACHINES = r"(?i)bytes|bits|rows|records|tokens|users|requests|events|messages|lines|seconds|dollars|euros|times"
# Words in -s that nothing is counted in: verbs and others of English; of German, Dutch and the Nordic languages; of
# Spanish, Portuguese, French and Indonesian, as spelt without accents.
_NO_NOUNS = (
    r"(?i)is|was|has|does|expires|belongs|ends|starts|begins|appears|matches|exists|needs|works|remains|this|his|its|"
    r"yes|plus|across|versus|lists|stays|holds|turns|reads|shows|wants|uses|asks|gives|lies|pays|please|thanks|always|"
    r"perhaps|unless|as|gracias|saludos|regards|cheers|greetings|"
    r"als|aus|bis|das|des|dies|dieses|eens|iets|niets|thuis|finns|saknas|behovs|anvands|fanns|ges|hos|"
    r"los|las|les|mis|tus|sus|nos|vos|tras|pues|mas|desde|despues|entonces|dos|nas|aos|pelos|pelas|apos|vous|nous|"
    r"elles|ils|dans|sans|sous|vers|chez|pas|puis|depuis|mais|tous|mes|ses|tes|leurs|atas"
)


# From a number to the label behind it: "... is my PESEL", "... e o meu CPF", "link ... to her Aadhaar account", and
# what shows that the label is the end of it: no "... is the passport office".
_POSSESSIVE = (
    r"(?:my|his|her|our|your|their|meine?|ihre?|seine?|mijn|haar|zijn|min|mitt|hans|hennes|mi|tu|su|mon|ma|votre|son|"
    r"sa|mio|mia|suo|sua|meu|minha|seu|moj|moja|jego|jej)"
)
# Before a label in brackets: "(nr PESEL)", "(Dutch BSN)".
_NUMBERED = (
    r"(?:n[ro]?\.?|num(?:ero?|ber)|nomor|so|cislo|cod(?:e|ul)?|d[aeiou]|del|the|my|his|her|[a-z]{2,9}(?:an|ch|sh|se))"
)
_COPULA = r"(?:is|was|as|are|es|ist|est|e|sono|ar|er|jest|este|adalah)"
_TO_LABEL = (
    rf" (?:(?:{_COPULA} (?:(?:el|la|le|il|o|a) )?(?:{_POSSESSIVE}|an?|the|de|het|der|die|das|el|la|le|il|o)|"
    rf"to {_POSSESSIVE})(?: [a-z]{{2,10}})?) "
)
_ENDED = (
    r"(?:[^A-Za-z0-9 ]|$| (?:and|but|or|for|from|in|on|at|if|so|please|pls|thanks|thx|und|aber|bitte|et|y|e|i|en|og)\b)"
)


_EDGE = r"(?:\b|_)"
_ACRONYM = re.compile(r"\\b([a-z]{3,5})(?=\\b|[|]|$)")
_LEADING = re.compile(r"(^|\||\(\?-i:)\\b")


def label_pattern(labels: str) -> str:
    """A pattern of the labels (RE2 alternatives, any case) as names too: a blank may be "_", "-" or none.

    A label begins and ends where a name's part does: `\\bnif\\b` is in "nif_cliente" and "cliente_nif", or "N.I.F.".
    """
    pointed = _ACRONYM.sub(lambda letters: r"\b" + r"\.?".join(letters[1]), labels)
    within = _LEADING.sub(r"\1", pointed).replace(r"\b", _EDGE)
    return f"{_EDGE}(?:{within})".replace(" ", "[ _-]?")


def search_by_label(
    labels: str, value: str, gap: str = SOMEWHERE, mark: str = ""
) -> Callable[[ByteText], Iterator[Span]]:
    """Find `value` after one of the `labels` (see `label_pattern`) or the `mark` of a script, or right before a label.

    `gap` is the pattern allowed between them.
    """
    names = label_pattern(labels)
    beside = rf"(?i:{names}(?:{gap}))"
    ahead = rf"(?:{beside}|{mark}{BESIDE_MARK})" if mark else beside
    before = rf"{ahead}\b({value})(?:\b|_|$)"
    after = rf"\b({value})(?i:{label_behind_pattern(names)})"

    def find(shape: ByteText) -> Iterator[Span]:
        seen = -1
        for pattern in (before, after):
            for match in compile_pattern(pattern).finditer(shape.data):
                start, end = match.span(1)
                if start != seen and not is_counted(shape, start, end):
                    yield Span(start, end)
                seen = start

    return find


def label_behind_pattern(names: str) -> str:
    """Make a pattern of a label after a number: "(IBAN", ", IBAN", " is my IBAN."."""
    bracketed = rf" ?[(\[,-]{{1,2}} ?(?:{names})| ?[(\[](?:{_NUMBERED} ){{1,2}}(?:{names})"
    return rf"{bracketed}|{_TO_LABEL}(?:{names})[a-z]{{0,11}}{_NUMBER}{{0,2}}{_ENDED}"


def is_counted(shape: ByteText, start: int, end: int) -> bool:
    """Whether the number is a quantity, with its unit behind it."""
    number = shape.data[start:end]
    if number.isdigit() and compile_pattern(r"^-[A-Za-z]{3}").search(shape.data[end : end + _AFTER]):
        return True  # "8-digit"
    if not compile_pattern(_QUANTITY).fullmatch(number):
        return False
    match = compile_pattern(_COUNTED).search(shape.data[end : end + _AFTER])
    if match is None or match[1] is None:
        return match is not None
    if number.isdigit() and len(number) > _MOST_COUNTED:
        return compile_pattern(_MACHINES).fullmatch(match[1]) is not None
    return compile_pattern(_NO_NOUNS).fullmatch(match[1]) is None


def is_something_else(shape: ByteText, start: int) -> bool:
    """Whether the words before say that it is the number of an order, a part or a book."""
    match = compile_pattern(_OTHER).search(shape.data[max(start - _BEFORE, 0) : start])
    return match is not None and match[1] is None
