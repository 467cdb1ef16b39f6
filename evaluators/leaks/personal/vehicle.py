"""Numbers of vehicles and their licence plates."""

from ragtide.evaluators.leaks.detector import Detector
from ragtide.evaluators.leaks.folding import PLATE
from ragtide.evaluators.leaks.labels import BESIDE
from ragtide.evaluators.leaks.personal.number_detectors import (
    any_number,
    number_beside_label,
    number_by_shape,
    number_near_label,
)

_SHORTEST_PLATE = 4  # letters and digits
_VIN_VALUES = dict(zip("ABCDEFGHJKLMNPRSTUVWXYZ", (*range(1, 9), *range(1, 6), 7, 9, *range(2, 10)), strict=True))
_VIN_WEIGHTS = (8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2)


def vin(text: str) -> bool:
    """Whether the ninth character checks the others (49 CFR 565)."""
    values = [int(character) if character.isdigit() else _VIN_VALUES[character] for character in text]
    rest = sum(value * weight for value, weight in zip(values, _VIN_WEIGHTS, strict=True)) % 11
    return "0123456789X"[rest] == text[8]


def _is_mixed(text: str) -> bool:
    return not text.isdigit() and not text.isalpha()


def _is_plate(text: str) -> bool:
    return len(text) >= _SHORTEST_PLATE and any_number(text)


def _is_vin(text: str) -> bool:
    """Whether it is one where nothing says so: letters in its first half, as all of them have, and a check digit."""
    return any(map(str.isalpha, text[:3])) and any(map(str.isalpha, text[3:11])) and vin(text)


_VEHICLE = (
    r"\bvin\b|vehicle id|chassisn?|chassi|chasis|fahrgestell|fahrzeug ident|\bfin\b|bastidor|telaio|numer nadwozia|"
    r"identification (?:number )?(?:of the|du|del) (?:vehicule|vehiculo)"
)
_PLATE = (
    r"(?:licen[cs]e|number|registration|reg) plate|(?:auto|kfz )?kennzeichen|nummernschild|plate (?:no|num)|"
    r"\bplate[\"']?\s?[:=]|matricula|"
    r"immatricul(?:ation|ee?)|"
    r"(?:vehicle|car|van|truck) reg(?:istration)?|targa|n(?:ume)?r(?:y)? rejestracyjn|nummerplaat|kenteken|nummerskylt|"
    r"nummerplade|reg(?:istrerings|istrierungs)nummer|rekisterinumero|rekisteritunnus|\bspz\b|rendszam|plaka|placa|"
    r"gosnomer|nomer plat|registarska|n(?:uma)?r\.? (?:de )?inmatriculare|"
    r"tablic[ae] rejestracyjn|\breg\.? ?nr|registrimark|registracijas n|valstybinis n|registracni znack|"
    r"evidencne cislo vozidl|registracionen nomer|gos\. ?nomer|nomer (?:avto|masin)|aritmos kukloforias|pinakid|"
    r"registrsk[a-z]{1,3} (?:tablic|oznak)|registarsk[a-z]{1,3} (?:tablic|oznak)|nomor polisi|nopol|plat nomor|"
    r"bien so(?: xe)?"
)

_REGISTRATION = r"registration|\breg\b|\bvr[mn]\b"

DETECTORS: tuple[Detector, ...] = (
    number_by_shape("vin", "a vehicle's number", r"\b[A-HJ-NPR-Z0-9]{13}[0-9]{4}\b", _is_vin),
    number_near_label(
        "vin", "a vehicle's number", _VEHICLE, r"[A-HJ-NPR-Z0-9]{17}", _is_mixed
    ),  # Europe's have no check digit
    number_near_label(
        "vin", "a vehicle's number", r"vehicle|\bcar\b|\btruck\b|\bvan\b", r"[A-HJ-NPR-Z0-9]{17}", _is_vin
    ),
    number_beside_label(
        "licence_plate",
        "a licence plate",
        _PLATE,
        r"[A-Z0-9]{1,3}-[A-Z0-9]{2,3}-[A-Z0-9]{1,3}|"
        r"[A-Z]{1,3}[ -]?[A-Z0-9]{1,4}[ -]?[0-9A-Z]{2,4}(?:[ -]?[0-9]{4})?|[0-9]{1,4}[ -]?[A-Z]{1,3}[ -]?[0-9]{0,5}",
        _is_plate,
        mark=PLATE,
    ),
    number_near_label(
        *("licence_plate", "a licence plate", r"plaque"),
        r"[A-Z]{2}[ -]?[0-9]{3}[ -]?[A-Z]{2}",  # France's; so is called what is on teeth and on walls, too
        _is_plate,
        gap=BESIDE,
    ),
    number_near_label(
        *("licence_plate", "a licence plate", rf"{_REGISTRATION}|\bplate\b"),
        # Those of the United Kingdom, France and Italy, Germany, the Netherlands, California.
        r"[A-Z]{2}[0-9]{2} ?[A-Z]{3}|[A-Z]{2}[ -]?[0-9]{3}[ -]?[A-Z]{2}|[A-Z]{1,3}-[A-Z]{1,2} [0-9]{1,4}|"
        r"[A-Z]{2}-[0-9]{2}-[A-Z]{2}|[0-9]{2}-[A-Z]{3}-[0-9]|[0-9][A-Z]{3}[0-9]{3}|[A-Z]{3}-[0-9]{3,4}",
        _is_plate,
        gap=BESIDE,
    ),
)
