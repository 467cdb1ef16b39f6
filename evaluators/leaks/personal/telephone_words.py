"""Telephone numbers as a country writes them, beside words of its languages: "my number is", "reach me at"."""

from collections.abc import Iterator, Sequence

from ragtide.evaluators.leaks.byte_text import ByteText, Span, stands_alone
from ragtide.evaluators.leaks.folding import CALL, PHONE
from ragtide.evaluators.leaks.labels import is_counted, is_something_else
from ragtide.evaluators.leaks.patterns import compile_pattern
from ragtide.evaluators.leaks.personal.numbering import NumberingPlans, reads_as_date

_NUMBER = r"\(?[0-9][0-9 ()./-]{5,18}[0-9]"
_DIGITS = range(7, 16)
_GAP = r"[^0-9\n.;!(]{0,20}?"
_MARK_GAP, _BEHIND_GAP = r"[^0-9A-Za-z\n]{0,12}?", r"[^0-9A-Za-z\n]{0,5}?"

# The countries of each language, and words that lead to a number, as spelt without accents (see `fold`).
_BEFORE: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("DE", "AT", "CH"),
        r"meine (?:neue |private )?(?:handy)?nummer|erreich(?:en|bar|t|st)|ruf(?:en|t)? (?:sie|mich|uns)|anruf(?:en)?|"
        r"melden sie sich|handy",
    ),
    (("DE", "AT", "CH", "SE", "DK", "NO", "CZ", "SK", "HU"), r"mobil(?:nummer|telefon)?"),
    (("FR", "BE", "CH"), r"appel(?:ez|er|le)|joindre|joignable|mon (?:numero|portable|telephone)|contact(?:ez|er)"),
    (
        ("ES", "MX", "AR", "CO", "CL", "PE"),
        r"llam(?:a|e|en|ar)(?:me|nos)|contact(?:ar|e|a|en)(?:me|nos)|mi (?:numero|movil|celular|telefono)|"
        r"(?:me|nos) (?:encontras|encuentras?|localizas?)|escrib(?:a|e|ir)(?:me|nos)",
    ),
    (
        ("IT",),
        r"chiam(?:ami|ateci|atemi|aci|are)|mi trovi|contatt(?:ami|atemi|aci|are)|mio (?:numero|cellulare|telefono)",
    ),
    (
        ("PT", "BR"),
        r"lig(?:ue|uem|ar|a)|contact[ae](?:r|m)?-?(?:me|nos)|fal[ae]r? (?:comigo|conosco)|"
        r"meu (?:numero|celular|telefone|telemovel)|chame",
    ),
    (("NL", "BE"), r"bel(?:len|t)? (?:me|mij|ons)|bereik(?:baar|en)|mijn (?:nummer|mobiele|telefoon)[a-z]*|mobiel"),
    (("PL",), r"(?:za)?dzwon(?:ic|cie)?|moj (?:numer|telefon)|kontakt(?:owac)?|komork[a-z]{1,2}"),
    (
        ("SE", "DK", "NO"),
        r"ring (?:mig|meg|oss|os|til|pa|gerne|gjerne|garna)|"
        r"nar (?:mig|meg|oss)|fange (?:mig|os)|mitt? (?:nummer|telefonnummer)|nummeret mitt|mobilen min|min mobil",
    ),
    (("FI",), r"soit(?:a|taa|akaa)|numeroni|tavoit(?:at|taa|atte)|puhelinnumeroni"),
    (("CZ", "SK"), r"(?:za)?vol(?:ejte|at|ajte)|moje cislo|zastizeni|muj (?:mobil|telefon)|moj mobil"),
    (("HU",), r"hiv(?:jon|jatok|j)|(?:mobil|telefon)?szamom|elerheto"),
    (("RO", "MD"), r"sunat?i|numarul meu|ma gasit?i|telefonul meu|contactat?i"),
    (("GR", "CY"), r"kaleste|aritmos mou|(?:tha|ta) me breite|(?:to )?kinhto(?: mou)?|thlefono"),
    (("RU", "KZ", "BY"), r"(?:po)?zvon(?:i|ite)|moj (?:nomer|telefon)|nabirajte|svazat's?a"),
    (("UA",), r"(?:za)?telefonujte|dzvonit'|mij (?:nomer|telefon)"),
    (("TR",), r"numaram|\bcep(?: telefonum)?|arayin|telefonum"),
    (("ID", "MY"), r"hubungi|nomor (?:saya|hp)|telepon|\bhp\b"),
    (("VN",), r"goi(?: cho)?|so (?:dien thoai )?cua toi|lien he|\bsdt\b"),
)
_AFTER: tuple[tuple[tuple[str, ...], str], ...] = (
    (("TR",), r"numara(?:sin|li|yi|m)[a-z]*|'?(?:i|yi|den|dan) ara"),
    (("HU",), r"(?:-?[aeo]s )?(?:telefon)?szam(?:on|om|a)"),
)
# The countries of scripts whose words have one mark each.
_SCRIPTS: tuple[tuple[range, tuple[str, ...]], ...] = (
    (range(0x590, 0x600), ("IL",)),
    (range(0x600, 0x780), ("EG", "SA", "AE", "MA", "JO", "KW", "IR", "PK")),
    (range(0x900, 0x980), ("IN", "NP")),
    (range(0xE00, 0xE80), ("TH",)),
    (range(0x3040, 0x3100), ("JP",)),
    (range(0x3400, 0xA000), ("CN", "TW", "HK", "JP")),
    (range(0xAC00, 0xD7B0), ("KR",)),
)


def _alternatives(words: tuple[tuple[tuple[str, ...], str], ...]) -> str:
    """One group for each language."""
    return "|".join(f"({pattern})" for _, pattern in words)


_LED = rf"(?i:\b(?:{_alternatives(_BEFORE)})\b{_GAP})({_NUMBER})"
_FOLLOWED = rf"\b({_NUMBER}) ?(?i:{_alternatives(_AFTER)})"
_MARKED = rf"{CALL}{_MARK_GAP}({_NUMBER})"
_MARK_BEHIND = rf"({_NUMBER}){_BEHIND_GAP}[{CALL}{PHONE}]"


def find_by_words(shape: ByteText, plans: NumberingPlans) -> Iterator[Span]:
    """Find numbers that are valid in a country of the language whose words stand beside them."""
    for match in compile_pattern(_LED).finditer(shape.data):
        *named, _ = match.groups()
        yield from _if_valid(shape, Span(*match.span(match.lastindex)), _regions_of_words(_BEFORE, named), plans)
    for match in compile_pattern(_FOLLOWED).finditer(shape.data):
        _, *named = match.groups()
        yield from _if_valid(shape, Span(*match.span(1)), _regions_of_words(_AFTER, named), plans)
    if shape.text.isascii():
        return
    for pattern in (_MARKED, _MARK_BEHIND):
        for match in compile_pattern(pattern).finditer(shape.data):
            place = match.start() if pattern is _MARKED else match.end() - 1
            yield from _if_valid(shape, Span(*match.span(1)), _regions_of_script(shape.text[place]), plans, "/")


def _regions_of_words(words: Sequence[tuple[tuple[str, ...], str]], named: Sequence[bytes | None]) -> tuple[str, ...]:
    return next(regions for (regions, _), word in zip(words, named, strict=True) if word is not None)


def _regions_of_script(character: str) -> tuple[str, ...]:
    return next((regions for script, regions in _SCRIPTS if ord(character) in script), ())


def _if_valid(
    shape: ByteText, place: Span, regions: tuple[str, ...], plans: NumberingPlans, joints: str = "-/"
) -> Iterator[Span]:
    number = shape.text[place.start : place.end]
    if sum(map(str.isdigit, number)) not in _DIGITS or not stands_alone(shape.text, *place, joints):
        return
    if reads_as_date(shape.data[place.start : place.end]) or is_counted(shape, *place):
        return
    if not is_something_else(shape, place.start) and plans.written_in(number, regions):
        yield place
