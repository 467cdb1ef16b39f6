"""Numbers of documents, accounts and devices, and dates of birth: a label beside them tells."""

from collections.abc import Iterator

from evaluators.leaks.detector import Detector
from evaluators.leaks.folded import ACCOUNT, BIRTH, DRIVING, IDENTITY, PASSPORT
from evaluators.leaks.formatted import Formatted, Span
from evaluators.leaks.labels import BESIDE_MARK, SOMEWHERE, called
from evaluators.leaks.patterns import compiled
from evaluators.leaks.personal.checks import luhn
from evaluators.leaks.personal.numbered import named, told

_MONTHS = (
    r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|ene|abr|ago|dic|janv|f.{1,2}v|avr|mai|juin|juil|ao|d.{1,2}c|"
    r"m.{1,2}r|okt|dez|gen|mag|giu|lug|set|ott|maj|mei|mrt|sty|lut|kwi|cze|lip|sie|wrz|paz|lis|gru|anv|fevr|apr|iun|"
    r"iul|avg|sent|noa|dek|sat|ocak|sub|nis|haz|tem|agu|eyl|eki|kas|ara)[a-z]{0,9}\.?"
)
_DATE = (
    r"[0-9]{4}[-/.] ?[0-9]{1,2}[-/.] ?[0-9]{1,2}|[0-9]{1,2}[-/.] ?[0-9]{1,2}[-/.] ?(?:[0-9]{4}|[0-9]{2})|"
    rf"(?i:[0-9]{{1,2}}(?:st|nd|rd|th|o|er|\.)?(?: of| de)?[ -]{_MONTHS}(?: de)?,?[ -][0-9]{{4}}|"
    rf"{_MONTHS} [0-9]{{1,2}}(?:st|nd|rd|th)?,? [0-9]{{4}})|(?:19|20)[0-9]{{2}}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|"
    rf"3[01])"
)
_BIRTH = (
    r"(?:date|day) of birth|birth ?da(?:te|y)|\bd\.?o\.?b\b\.?|geburts(?:datum|tag)|\bgeb\.|date de naissance|"
    r"fecha de nac|f\. ?nac|data (?:di|de) nasci|geboortedatum|verjaardag|data urodzenia|f.{1,2}delse(?:sdato|sdatum|"
    r"sdag)|"
    r"f.{1,2}dselsda|fodt|\bfodd|syntym|datum narozeni|datum narodenia|narozen|datum rodenja|szuletesi|data nasterii|"
    r"nascut|"
    r"dogum tarihi|data rozdenia|data narodzenna|data na razdane|den' rozdenia|hmerom?hnia gennhshs|tanggal lahir|"
    r"tarikh lahir|ngay sinh|sunnimisaeg|gimimo data|dzimsanas|\bd\.r\b"
)
# Encyclopaedias are full of them: they count where who was born may be alive.
_BORN = (
    r"\bborn\b(?: (?:on|in [a-z]{2,20}(?: on)?))?|\bgeboren\b(?: am| op)?|\bne(?:e|\(e\))?(?: le\b)|"
    r"\bnacid[oa](?: el)?|"
    r"\bnat[oa]\b(?: a [a-z]{2,20})?(?: il)?|\bnascid[oa](?: em| a)?|\bur(?:odzon[ya])?\b\.?|\brodilsa\b|\brodilas'"
)
_LIVING_SINCE = 1915
_DIED = r"(?i)\b(?:died|dead|death|gestorben|mort|morte|morto|fallecid|murio|overleden|zm\.)"
_BEFORE_DEATH = 40  # characters


def _birth(shape: Formatted) -> Iterator[Span]:
    pattern = rf"(?:(?i:{called(_BIRTH)}){SOMEWHERE}|{BIRTH}{BESIDE_MARK})\b({_DATE})(?:\b|T)"
    for match in compiled(pattern).finditer(shape.data):
        yield Span(*match.span(1))


def _born(shape: Formatted) -> Iterator[Span]:
    """Of people who may be alive: no year before 1915, and no death behind it."""
    for match in compiled(rf"(?i:{_BORN})[\s:,\"'*|-]{{1,6}}({_DATE})\b").finditer(shape.data):
        year = compiled(r"[0-9]{4}").search(match[1])
        after = shape.data[match.end() : match.end() + _BEFORE_DEATH]
        if (not year or int(year[0]) >= _LIVING_SINCE) and not compiled(_DIED).search(after):
            yield Span(*match.span(1))


_LICENCE = (
    r"driv(?:er|ing)(?:'?s)? (?:licen[cs]e|permit)|f.{1,2}hrerschein|permis de conduire|(?:licencia|permiso|carnet) de "
    r"conducir|licencia de manejo|carteira de motorista|carta de conducao|patente di guida|numero (?:di )?patente|"
    r"\bcnh\b|prawa jazdy|"
    r"rijbewijs|\bdvla\b|"
    r"\bDL ?(?:no|num|#)|"
    r"prawo jazdy|korkort|kor?ekort|forerkort|ajokort|ridicsky prukaz|vodicsky preukaz|permis de conducere|ehliyet|"
    r"voditel'skoe udostoverenie|jogositvany"
)
_IDENTITY = (
    r"national id(?:entity|entification)?|identity (?:card|number|document)|\bid (?:card|document)|personalausweis|"
    r"carte (?:nationale )?d.identite|\bcni\b|documento d.identita|carta d.identita|ausweisn|\bperso n|dowodu|"
    r"cislo op|obcanskeho prukaz|"
    r"documento de identidad|citizen id|residence permit|"
    r"social security n|dowod osobisty|dowodu osobistego|licna karta|lichna karta|obcansky prukaz|identiteitskaart|"
    r"szemelyi igazolvany|titre de sejour|aufenthaltstitel|cartao d[eo] cidadao|bilhete de identidade|tautothtas?|"
    r"carte de identitate|buletin(?:ul)? de identitate|henkilokort|identitetskort|karta pobytu|nufus|"
    r"asmens tapatybes|isikutunnistus"
)
_ACCOUNT = (
    r"(?:bank|checking|savings|deposit|current) (?:account|acct)|"
    r"(?:bank|giro|spar|lone?|privat)konto|"
    # "Routing 021000021, account ..."
    r"(?:routing|\baba|\brtn)\b[^0-9\n]{0,24}[0-9]{9}[\s,;/|&]{1,4}(?:and\s)?(?:accounts?|acct?)?\b|"
    r"account (?:no\b|nr|num|#)|\bacct|\ba/c\b|"
    r"konto|sort code|(?:numero de |n.{1,2} de )compte|cuenta (?:bancaria|corriente|de ahorros?)|numero de cuenta|"
    r"conta (?:corrente|bancaria|poupanca)|conto corrente|numero (?:di )?conto|n(?:ume)?r konta|beneficiary account|"
    r"bankrekening|rekeningnummer|numer rachunku|rachunek|"
    r"(?:bankovni|cislo) uct|hesap n|rascetnyj scet|tai khoan|rekening"
)
_MEDICAL = (
    r"medical record|\bmrn\b|(?:patient|hospital|chart|member|subscriber) (?:id|no|nr|num)|"
    r"health (?:card|insurance|plan)|insurance (?:id|policy|member)|\bdea (?:no|num|reg)|\bnpi\b|"
    r"krankenversicher(?:ten|ungs)?|versichertenn|kvnr|patientenn|patienten (?:id|nr|akte)|"
    r"(?:dossier|numero) (?:medical|patient)|historia clinica|cartella clinica|"
    r"numero (?:de |di )?(?:paciente|paziente)|patientnummer|journalnummer|patientnr|karta pacjenta|"
    r"numer pacjenta|fallnummer|medicaid id"
)

DETECTORS: tuple[Detector, ...] = (
    named(
        "passport",
        "a passport number",
        r"passport|reisepass|(?:passeport|pasaporte|passaporto|passaporte)(?: [a-z]{4,14})?|paszport|"
        r"pasaport(?: rf| grazdanina)?|"
        r"pasport(?: rf| grazdanina)?|paspoort|\bpass (?:no|nr|num)|"
        r"passnummer|cestovni pas|cislo pasu|utlevel|diabathrio|ho chieu",
        r"[A-Z]{1,3} ?[0-9]{6,9}|[0-9]{2}[A-Z]{2}[0-9]{5}|[A-Z0-9]{2}[0-9]{6,7}|[A-Z][0-9A-Z]{8}|"
        r"[0-9]{2} ?[0-9]{2} [0-9]{6}|[0-9]{2} [0-9]{7}",
        mark=PASSPORT,
    ),
    named(
        *("driving_licence", "a driving licence number", _LICENCE),
        r"[A-Z0-9]{1,5}(?:[ -]?[A-Z0-9]{2,6}){1,4}",
        mark=DRIVING,
    ),
    named(
        *("bank_account", "a bank account number", _ACCOUNT),
        r"[0-9]{6,17}|"
        r"[0-9]{2}-[0-9]{2}-[0-9]{2}(?:[ ,/]{1,2}(?i:(?:and )?(?:account|acct?|a/c)[a-z .:]{0,10} )?[0-9]{8})?|"
        r"[0-9]{2,4}(?:[ -][0-9]{3,4}){2,3}|[0-9]{3,4}(?: [0-9]{2,4}){2,4}|"
        # New Zealand, Norway, Czechia, Brazil, Sweden
        r"[0-9]{2}-[0-9]{4}-[0-9]{7}-[0-9]{2,3}|[0-9]{4}[. ][0-9]{2}[. ][0-9]{5}|(?:[0-9]{2,6}-)?[0-9]{6,10}/[0-9]{4}|"
        r"[0-9]{5,12}-[0-9Xx]|[0-9]{4}(?:-[0-9])?[ ,-][0-9]{2,3}(?:[ -][0-9]{1,4}){1,4}",
        mark=ACCOUNT,
    ),
    named(
        "medical_record",
        "a medical record number",
        _MEDICAL,
        r"[A-Z]{0,3}-?[0-9]{5,12}|[0-9]{3,4}(?:[ -][0-9]{3,4}){2}|[0-9]{2}(?:[ -][0-9]{3}){2}|"
        r"[A-Z]{1,3}-[0-9]{2,6}[-/][0-9]{4,8}|[0-9]{4,6}[-/][0-9]{5,8}|[03-9][0-9]{3}-[0-9]{4}|"
        r"[A-Z]{1,4}[0-9]{2,4}[A-Z][0-9A-Z]{3,8}",
    ),
    told("imei", "a device's IMEI", r"\bimei", r"[0-9]{15}|[0-9]{2}[ -][0-9]{6}[ -][0-9]{6}[ -][0-9]", luhn),
    Detector("birth_date", "a date of birth", (rf"(?i:{called(_BIRTH)})", BIRTH), _birth),
    Detector("birth_date", "a date of birth", (rf"(?i:{_BORN})",), _born),
    named(
        *("national_id", "an identity number", _IDENTITY),
        r"[0-9]{8} ?[0-9] ?[A-Z0-9]{2}[0-9]|[A-Z]{0,3} ?[0-9]{6,14}[A-Z]?|[0-9]{2,4}(?:[ .-][0-9]{2,6}){2,3}|"
        r"[A-Z0-9]{2}[A-Z0-9]{6,10}",
        mark=IDENTITY,
    ),
)
