"""What belongs to a person: numbers, addresses, dates, in the formats of many countries."""

from collections.abc import Sequence

from ragtide.evaluators.leaks.detector import Detector
from ragtide.evaluators.leaks.personal import (
    americas,
    asia_africa_pacific,
    bank_account,
    bank_code,
    card,
    card_code,
    card_expiry,
    coordinates,
    crypto_wallet,
    device_address,
    documents,
    email,
    europe,
    machine_readable,
    misspelt,
    network_address,
    registrations,
    social_security,
    telephone,
    vehicle,
)

_BEFORE_TELEPHONES: tuple[Detector, ...] = (
    *bank_account.DETECTORS,
    *crypto_wallet.DETECTORS,
    *email.DETECTORS,
    *social_security.DETECTORS,
    *europe.DETECTORS,
    *americas.DETECTORS,
    *asia_africa_pacific.DETECTORS,
    *card.DETECTORS,
    *card_code.DETECTORS,
    *card_expiry.DETECTORS,
    *bank_code.DETECTORS,
    *coordinates.DETECTORS,
    *device_address.DETECTORS,
    *documents.DETECTORS,
    *registrations.DETECTORS,
    *machine_readable.DETECTORS,
    *misspelt.DETECTORS,
    *vehicle.DETECTORS,
    *network_address.DETECTORS,
)


def detectors(regions: Sequence[str]) -> tuple[Detector, ...]:
    """The surest first: what has been taken by one is not another's. `regions`: see `telephone.find`."""
    return (*_BEFORE_TELEPHONES, telephone.detector(regions))
