"""Secrets: keys, tokens, passwords."""

from ragtide.evaluators.leaks.detector import Detector
from ragtide.evaluators.leaks.secrets import (
    api_key,
    credentials,
    key_block,
    login,
    one_time_code,
    other_providers,
    password,
    password_hash,
    phrase,
    pin,
    product_key,
    provider_token,
)

DETECTORS: tuple[Detector, ...] = (
    *key_block.DETECTORS,
    *password_hash.DETECTORS,
    *provider_token.DETECTORS,
    *other_providers.DETECTORS,
    *credentials.DETECTORS,
    *product_key.DETECTORS,
    *password.DETECTORS,
    *phrase.DETECTORS,
    *pin.DETECTORS,
    *login.DETECTORS,
    *one_time_code.DETECTORS,
    *api_key.DETECTORS,
)
