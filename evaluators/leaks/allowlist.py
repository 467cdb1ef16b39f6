"""Allowed values, such as an application's own addresses and numbers."""

from collections.abc import Iterable


class Allowlist:
    """Allowed e-mail addresses, mail domains ("@example.com"), numbers and IP addresses, ignoring separators."""

    def __init__(self, values: Iterable[str]) -> None:
        self._values = frozenset(form for value in values for form in (value.strip().lower(), _normalise(value)))

    def __bool__(self) -> bool:
        return bool(self._values)

    def holds(self, kind: str, value: str) -> bool:
        """Whether this value is allowed."""
        if kind == "ip":
            return value.lower() in self._values
        if kind == "email":
            name, _, domain = value.lower().rpartition("@")
            return f"{name}@{domain}" in self._values or f"@{domain}" in self._values
        return _normalise(value) in self._values


def _normalise(value: str) -> str:
    return "".join(filter(str.isalnum, value)).upper()
