"""Finds personal data and secrets in texts, by kind and position, never by value. In linear time."""

from ragtide.evaluators.leaks.allowlist import Allowlist
from ragtide.evaluators.leaks.scan import DEFAULT_REGION, NAMES, PERSONAL, SECRETS, Hit, Leaks, Scan, leaks_of, scanner

__all__ = ["DEFAULT_REGION", "NAMES", "PERSONAL", "SECRETS", "Allowlist", "Hit", "Leaks", "Scan", "leaks_of", "scanner"]
