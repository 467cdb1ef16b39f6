"""Report unknown fields that producers probably meant to be measured: a count each, and one log line each."""

import logging
from collections.abc import Mapping

from ragtide.stream.ingest.adjustments import UnknownField, describe_unknown
from ragtide.stream.telemetry.registry import Telemetry

log = logging.getLogger(__name__)

_MOST = 500  # pairs of app and field with a count of their own: producers choose both
_OTHERS = UnknownField("", "")
_TOO_MANY = f"more than {_MOST} unknown fields: further ones are counted together (ragtide_unknown_fields_total)"


class UnknownFields:
    """Counts unknown fields by application and field, and logs each pair once."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._known: set[UnknownField] = set()

    def report(self, counts: Mapping[UnknownField, int]) -> None:
        """Add these counts. Beyond `_MOST` pairs, new ones are counted together, with empty labels."""
        for unknown, count in counts.items():
            counted = unknown if unknown in self._known or len(self._known) < _MOST else _OTHERS
            if counted not in self._known:
                self._known.add(counted)
                log.warning("%s", describe_unknown(counted) if counted != _OTHERS else _TOO_MANY)
            self._telemetry.unknown_fields.labels(*counted).inc(count)
