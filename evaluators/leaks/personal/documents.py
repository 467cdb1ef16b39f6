"""Numbers of documents, accounts and devices, and dates of birth, identified by labels."""

from collections.abc import Iterator

from ragtide.evaluators.leaks.byte_text import ByteText, Span
from ragtide.evaluators.leaks.detector import Detector
from ragtide.evaluators.leaks.folding import ACCOUNT, BIRTH, DRIVING, IDENTITY, MEDICAL, PASSPORT
from ragtide.evaluators.leaks.labels import (
    BESIDE,
    BESIDE_MARK,
    SOMEWHERE,
    TAGS,
    is_something_else,
    label_behind_pattern,
    label_pattern,
)
from ragtide.evaluators.leaks.patterns import compile_pattern
from ragtide.evaluators.leaks.personal.checks import luhn
from ragtide.evaluators.leaks.personal.number_detectors import (
    any_number,
    compact,
    number_beside_label,
    number_near_label,
)

_MONTHS = (
    r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|ene|abr|ago|dic|janv|f.{1,2}v|avr|mai|juin|juil|ao|d.{1,2}c|"
    r"m.{1,2}r|okt|dez|gen|mag|giu|lug|set|ott|maj|mei|mrt|sty|lut|kwi|cze|lip|sie|wrz|paz|lis|gru|anv|fevr|apr|iun|"
    r"iul|avg|sent|noa|dek|sat|ocak|sub|nis|haz|tem|agu|eyl|eki|kas|ara)[a-z]{0,9}\.?"
)
_DATE = (
    r"[0-9]{4}[-/.] ?[0-9]{1,2}[-/.] ?[0-9]{1,2}|[0-9]{1,2}[-/.] ?[0-9]{1,2}[-/.] ?(?:[0-9]{4}|[0-9]{2})|"
    rf"(?i:[0-9]{{1,2}}(?:st|nd|rd|th|o|er|\.)?(?: of| de)?[ -]{_MONTHS}(?: de)?,?[ -][0-9]{{4}}|"
    rf"{_MONTHS} [0-9]{{1,2}}(?:st|nd|rd|th)?,? [0-9]{{4}}|[0-9]{{1,2}}-?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|"
    rf"nov|dec)-?[0-9]{{4}})|(?:19|20)[0-9]{{2}}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|"
    rf"3[01])"
)
_BIRTH = (
    r"(?:date|day) of birth|birth ?da(?:te|y)|\bd\.?o\.?b\b\.?|geburts(?:datum|tag)|\bgeb\.|date de naissance|"
    r"fecha de nac|f\. ?nac|data (?:di|de) nasci|geboortedatum|verjaardag|data urodzenia|f.{1,2}delses?(?:dato|datum|"
    r"dag)|"
    r"f.{1,2}dselsda|fodt|\bfodd|syntym|datum narozeni|datum narodenia|narozen|datum rodenja|szuletesi|data nasterii|"
    r"nascut|"
    r"dogum tarihi|data rozdenia|data narodzenna|data na razdane|den' rozdenia|hmerom?hnia gennhshs|tanggal lahir|"
    r"tarikh lahir|ngay sinh|sunnimisaeg|gimimo data|dzimsanas|\bd\.r\b|\bbday\b|"
    r"sunniaeg|sunnikuupaev|datum rojstva|data breithe|data tat.twelid|dogum gunu|tgl\.? lahir"
)
# Encyclopaedias are full of them: they count where who was born may be alive.
_BORN = (
    r"\bborn\b(?: (?:on|in [a-z]{2,20}(?: on)?))?|\bgeboren\b(?: am| op)?|\bne(?:e|\(e\))?(?: le\b)|"
    r"\bnacid[oa](?: el)?|"
    r"\bnat[oa]\b(?: a [a-z]{2,20})?(?: il)?|\bnascid[oa](?: em| a)?|\bur(?:odzon[ya])?\b\.?|\brodilsa\b|\brodilas'|"
    r"\bbirth\b|\bnaissance\b|\bnacimiento\b|\bnascimento\b|\bcumpleanos\b|\bsyntynyt\b|\bsundinud\b|"
    r"\bdzim(?:is|usi)\b|\bgim(?:e|es|usi)\b|\bnar\.|\bnaroden[ya]\b|\bszuletett\b|\bszul\.|\bro[dj]ena?\b(?: na|"
    r" dne)?|"
    r"\bg\.r\.|\bb\.|\bgennhthke\b(?: stis)?|\bsinh ngay\b"
)
_BORN_ON = rf"(?i:{label_pattern(_BORN)})(?:[\s:,=\"'*|-]{{1,6}}|\"?{TAGS})({_DATE})\b"
_LIVING_SINCE = 1915
_DIED = r"(?i)\b(?:died|dead|death|gestorben|mort|morte|morto|fallecid|murio|overleden|zm\.)"
_BEFORE_DEATH = 40  # characters


def _birth(shape: ByteText) -> Iterator[Span]:
    before = rf"(?:(?i:{label_pattern(_BIRTH)}){SOMEWHERE}|{BIRTH}{BESIDE_MARK})\b({_DATE})(?:\b|T)"
    after = rf"\b({_DATE})(?i:{label_behind_pattern(label_pattern(_BIRTH))})"
    for pattern in (before, after):
        for match in compile_pattern(pattern).finditer(shape.data):
            yield Span(*match.span(1))


def _born(shape: ByteText) -> Iterator[Span]:
    """Of people who may be alive: no year before 1915, and no death behind it."""
    for match in compile_pattern(_BORN_ON).finditer(shape.data):
        year = compile_pattern(r"[0-9]{4}").search(match[1])
        after = shape.data[match.end() : match.end() + _BEFORE_DEATH]
        if (not year or int(year[0]) >= _LIVING_SINCE) and not compile_pattern(_DIED).search(after):
            yield Span(*match.span(1))


_LICENCE = (
    r"driv(?:er|ing)(?:'?s)? (?:licen[cs]e|permit)|f.{1,2}hrerscheins?|(?-i:\bDLN?\b)|\bfs nr|dvla licen[cs]e|"
    r"permis de conduire|(?:licencia|permiso|carnet?) de "
    r"conduc(?:ir|cion)|carteira de habilitacao|juhiloa|vaditaja apliecib|vairuotojo pazymejimas|ridicskeho prukazu|"
    r"vodicskeho preukazu|vezetoi engedely|svidetelstvo za upravlenie|adeia odhghshs|vozack[a-z] dozvol|"
    r"voznisk[a-z]{1,3} dovoljenj|surucu belgesi|giay phep lai xe|bang lai xe|licencia de manejo|"
    r"carteira de motorista|carta de conducao|patente di guida|numero (?:di |della )?patente|"
    r"\bcnh\b|prawa jazdy|"
    r"rijbewijs|\bdvla\b|numero (?:de |du )permis|"
    r"\bDL ?(?:no|num|#)|"
    r"prawo jazdy|korkort|kor?ekort|forerkort|ajokort|ridicsky prukaz|vodicsky preukaz|permis de conducere|ehliyet|"
    r"voditel'skoe udostoverenie|jogositvany"
)
_IDENTITY = (
    r"national id(?:entity|entification)?|(?:identity|government id) (?:card|number|no|document)|government id\b|"
    r"\bid (?:card|document)|personalausweis|"
    r"carte (?:nationale )?d.identite|\bcni\b|documento d.identita|carta d.identita|ausweisn|\bperso n|dowodu|"
    r"cislo op|obcanskeho prukaz|"
    r"(?:documento|carnet) de identidad|ausweis n|\bperso\b|(?:\bn\.?[or]?|numero) d.identite|"
    r"numero de identificacion (?:personal|nacional)|\bid.ka+rt|identiteitsn|legitymacj|\bdowod n|"
    r"obciansk[a-z]{1,4} preukaz|"
    r"szemelyi szam|szemelyazonosit|udostoverenia licnosti|osobn[ae] iskaznic|osebn[ae] izkaznic|karta tal.identita|"
    r"kimlik (?:n|kart)|can cuoc cong dan|\bktp\b|(?-i:\bRG\b)|citizen id|residence permit|"
    r"social security n|dowod osobisty|dowodu osobistego|licna karta|lichna karta|obcansky prukaz|identiteitskaart|"
    r"szemelyi igazolvany|titre de sejour|aufenthaltstitel|cartao d[eo] cidadao|bilhete de identidade|tautothtas?|"
    r"carte de identitate|buletin(?:ul)? de identitate|henkilokort|identitetskort|karta pobytu|nufus(?: cuzdani)?|"
    r"asmens tapatybes|isikutunnistus"
)
_ACCOUNT = (
    r"(?:bank|checking|savings|deposit|current) (?:account|acct?\b)|"
    r"bankverbindung|bankgiro|plusgiro|\b(?:cuenta|conto|conta)[\"']?\s?:|compte (?:bancaire|n)|"
    r"(?:bank|giro|spar|lone?|privat)konto|bsb (?:and )?account|"
    # "Routing 021000021, account ..."
    r"(?:routing|\baba|\brtn)\b[^0-9\n]{0,24}[0-9]{9}[\s,;/|&]{1,4}(?:and\s)?(?:accounts?|acct?)?\b|"
    r"account (?:no\b|nr|num|#)|\bacct|\ba/c\b|"
    r"konto|(?:numero de |n.{1,2} de )compte|cuenta (?:n|bancaria|corriente|de ahorros?)|(?:numero|"
    r"n.{1,3}) de cuenta|"
    r"conta (?:corrente|bancaria|poupanca)|(?:numero|n.{1,3}) d[ae] conta|conto corrente|numero (?:di )?conto|"
    r"n(?:ume)?r konta|beneficiary account|"
    r"bankrekening|rekeningnummer|n(?:ume)?r rachunku|rachunek(?: bankowy)?|tilinumero|pankkitili|pangakonto|"
    r"\bkonta\b|saskaitos|szamlaszam|"
    r"bankszaml|cont bancar|numar(?:ul)? de cont|numero (?:de |di )?conto|bankova smetka|nomer sceta|logariasmou?\b|"
    r"(?:ziro|bankovni|tekuci|transakcijski) racun|"
    r"(?:bankovni(?:ho)?|cislo(?: bankoveho)?) uce?t|\bucet c|hesap n|rascetnyj scet|tai khoan|rekening"
)
_MEDICAL = (
    r"med(?:ical|\.)? rec(?:ord)?|health record n|\bmrn\b|\bmr ?#|patient ?#|"
    r"(?:patient|hospital|chart|member|subscriber|beneficiary|medicare) (?:id|no|nr|num)|"
    r"ohip|health (?:card|insurance|plan)|insurance (?:id|policy|member|no|num)|\bdea (?:no|num|reg)|\bnpi\b|"
    r"krankenversicher(?:ten|ungs)?|versichertenn|kvnr|patientenn|patienten (?:id|nr|akte)|"
    r"(?:dossier|numero) (?:medical|patient)|historia clinica|cartella clinica|"
    r"numero (?:de |di )?(?:paciente|paziente)|patientnummer|journalnummer|patientnr|karta pacjenta|"
    r"n(?:ume)?r (?:karty )?pacjenta|fallnummer|medicaid id|krankenkassenn|krankenakte|versicherungsn|"
    r"(?:\bn\.?[or]?|numero (?:de |du )?)patient|(?-i:\bIPP\b)|(?-i:\bNHC\b)|numero de afiliacion|tarjeta sanitaria|"
    r"tessera sanitaria|zorgverzekering|verzekeringsn|numero d.assur(?:ance|e)|numero de seguro|"
    r"numero (?:di )?assicura|"
    r"n(?:ume)?r ubezpieczeni|policennummer|verzekerdenn|numero d[eo] (?:paciente|utente)|numero sns|cartao (?:sus|"
    r"de saude)|"
    r"prontuario|journalnr|potilasn|potilastunn|cislo (?:pojistence|poistenca|pacient)|betegszam|cod pacient|"
    r"(?:nomer|broj) paci[je]+nta|broj kartona|polis oms|medicinskaa karta|nomer medicinskoj karty|aritmos astenous|"
    r"\bhasta n|rekam medis|\bbpjs\b|ma benh nhan|bao hiem y te"
)

# A person's, or with nothing before it: "order ID number" is another's.
_ID_NUMBER = (
    r"(?i:(?:(?m:^)|[\"'|,;:(>*{\[.] {0,4}|\b(?:my|his|her|their|your|the|applicant|citizen|passenger|employee|"
    r"guest|holder|resident|"
    r"personal|with|and)(?:'?s)? )id(?:entification)?[ _-]?(?:number|no\b|num\b|card no|card num))"
    rf"(?i:{BESIDE})\b([0-9]{{8,13}}|[A-Z]{{1,3}}[0-9]{{6,9}}[A-Z]?|[A-Z0-9]{{9,10}})\b"
)


def _id_number(shape: ByteText) -> Iterator[Span]:
    for match in compile_pattern(_ID_NUMBER).finditer(shape.data):
        if any_number(compact(match[1])) and not is_something_else(shape, match.start(1)):
            yield Span(*match.span(1))


DETECTORS: tuple[Detector, ...] = (
    number_beside_label(
        "passport",
        "a passport number",
        r"passport|reisepass|(?:passeport|pasaporte|passaporto|passaporte)(?: [a-z]{4,14})?|paszport|"
        r"pasaport(?: rf| grazdanina)?|"
        r"pasport(?: rf| grazdanina)?|paspoort|\bpass (?:no|nr|num)|"
        r"pass?nummer|passinumero|\bpassi (?:nr|num)|pases\b|paso\b|travel document|cestovni(?:ho)? pas|cislo pasu|"
        r"cestovn[a-z]{1,3} doklad|putovnic|potn[a-z]{1,3} list|uimhir phas|passaport|\bpaspor\b|utlevel|diabathrio|"
        r"ho chieu",
        r"[A-Z]{1,3} ?[0-9]{6,9}|[0-9]{2}[A-Z]{2}[0-9]{5}|[A-Z0-9]{2}[0-9]{6,7}|[A-Z][0-9A-Z]{8}|"
        r"[0-9]{2} ?[0-9]{2} ?[0-9]{6}|[0-9]{2} [0-9]{7}",
        mark=PASSPORT,
    ),
    number_beside_label(
        *("driving_licence", "a driving licence number", _LICENCE),
        r"[A-Z0-9]{1,5}(?:[ -]?[A-Z0-9]{2,6}){1,4}(?:-[0-9])?",
        mark=DRIVING,
    ),
    number_near_label(
        *("driving_licence", "a driving licence number"),
        r"licen[cs]e (?:no|num|#)|"
        r"patente",  # of a program, a shop and an invention, too: these are of digits, or longer
        r"[A-Z][0-9]{7,8}|[A-Z][0-9]{3}-[0-9]{4}-[0-9]{4}|[A-Z]{2}[0-9]{7}[A-Z]|U1[0-9A-Z]{7}[A-Z]|"
        r"[A-Z9]{5}[0-9]{6}[A-Z9]{2}[0-9A-Z]{3}",
        any_number,
        gap=BESIDE,
    ),
    number_beside_label(
        *("bank_account", "a bank account number", _ACCOUNT),
        r"[0-9]{6,17}|"
        r"[0-9]{2}-[0-9]{2}-[0-9]{2}(?:[ ,/]{1,2}(?i:(?:and )?(?:account|acct?|a/c)[a-z .:]{0,10} )?[0-9]{8})?|"
        r"[0-9]{2,4}(?:[ -][0-9]{3,4}){2,3}|[0-9]{3,4}(?: [0-9]{2,4}){2,4}|"
        # New Zealand, Norway, Czechia, Brazil, Sweden
        r"[0-9]{2}-[0-9]{4}-[0-9]{7}-[0-9]{2,3}|[0-9]{4}[. ][0-9]{2}[. ][0-9]{5}|(?:[0-9]{2,6}-)?[0-9]{6,10}/[0-9]{4}|"
        r"[0-9]{5,12}-[0-9Xx]|[0-9]{4}(?:-[0-9])?[ ,-][0-9]{2,3}(?:[ -][0-9]{1,4}){1,4}",
        mark=ACCOUNT,
    ),
    number_beside_label(
        "medical_record",
        "a medical record number",
        _MEDICAL,
        r"[A-Z]{0,3}-?[0-9]{5,12}|[0-9]{3,4}(?:[ -][0-9]{3,4}){2}|[0-9]{2}(?:[ -][0-9]{3}){2}|"
        r"[A-Z]{1,3}-[0-9]{2,6}[-/][0-9]{4,8}|[0-9]{4,6}[-/][0-9]{5,8}|[03-9][0-9]{3}-[0-9]{4}|"
        r"[A-Z]{1,4}[0-9]{2,4}[A-Z][0-9A-Z]{3,8}|[0-9]{9}[A-Z]|[0-9]{4}-[0-9]{3}-[0-9]{3}-[A-Z]{2}",
        mark=MEDICAL,
    ),
    number_beside_label(
        *("bank_account", "a bank account number"),
        r"(?:sort code|bsb)[^0-9\n]{0,12}(?:[0-9]{2}[ -]?[0-9]{2}[ -]?[0-9]{2}|[0-9]{3}-[0-9]{3})[\s,;/|"
        r"&]{1,4}(?:and\s)?(?:account|acct?)\b",
        r"[0-9]{7,12}",
    ),
    number_beside_label(
        *("bank_account", "a bank account number", r"sort code"),
        r"[0-9]{2}-[0-9]{2}-[0-9]{2}[ ,/]{1,2}(?i:(?:and )?(?:account|acct?|a/c)[a-z .:]{0,10} )?[0-9]{8}",
    ),
    number_beside_label(
        *("bank_code", "a bank's code (sort code)", r"sort code|\bbsb\b"),
        r"[0-9]{2}[ -]?[0-9]{2}[ -]?[0-9]{2}|[0-9]{3}-[0-9]{3}",
    ),
    number_near_label(
        *("bank_account", "a bank account number"),
        r"(?:from|to|into|of|for|the|my|your|his|her|their) account",
        r"[0-9]{8,10}",  # of twelve digits are a cloud's
        any_number,
        gap=" ",
    ),
    number_near_label("bank_account", "a bank account number", r"\bclabe\b", r"[0-9]{18}", any_number),
    number_near_label(
        "medical_record", "a doctor's number", r"(?-i:\bDEA\b)|\bdea n", r"[A-Z][A-Z9][0-9]{7}", any_number, gap=BESIDE
    ),
    number_near_label(
        "imei", "a device's IMEI", r"\bimei", r"[0-9]{15}|[0-9]{2}[ -][0-9]{6}[ -][0-9]{6}[ -][0-9]", luhn
    ),
    number_near_label(
        "sim_card",
        "the number of a SIM card",
        r"iccid|sim (?:card )?(?:no|num|id|serial)",
        r"89[0-9]{16,18}",
        any_number,
    ),
    number_near_label("sim_card", "the number of a SIM card", r"\bimsi", r"[0-9]{14,15}", any_number),
    Detector("birth_date", "a date of birth", (rf"(?i:{label_pattern(_BIRTH)})", BIRTH), _birth),
    Detector("birth_date", "a date of birth", (rf"(?i:{label_pattern(_BORN)})",), _born),
    Detector("national_id", "an identity number", (r"(?i)id(?:entification)?[ _-]?(?:n|card)",), _id_number),
    number_beside_label(
        *("national_id", "an identity number", _IDENTITY),
        r"[0-9]{8} ?[0-9] ?[A-Z0-9]{2}[0-9]|[A-Z]{0,3} ?[0-9]{6,18}[A-Z]?|[0-9]{1,4}(?:[ .-][0-9]{2,6}){2,3}|"
        r"[A-Z0-9]{2}[A-Z0-9]{6,10}",
        mark=IDENTITY,
    ),
)
