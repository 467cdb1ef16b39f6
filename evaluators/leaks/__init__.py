"""Finds personal data and secrets in texts, by kind and position, never by value. In linear time."""

from ragtide.evaluators.leaks.allowlist import Allowlist
from ragtide.evaluators.leaks.scan import (
    DEFAULT_REGIONS,
    NAMES,
    PERSONAL,
    SECRETS,
    SELDOM_PERSONAL,
    USUAL,
    Hit,
    Leaks,
    Scan,
    leaks_of,
    scanner,
)

__all__ = ["DEFAULT_REGIONS", "NAMES", "PERSONAL", "SECRETS", "SELDOM_PERSONAL", "USUAL"]
__all__ += ["Allowlist", "Hit", "Leaks", "Scan", "leaks_of", "scanner"]
