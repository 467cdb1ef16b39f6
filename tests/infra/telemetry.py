"""What a process tells of itself over HTTP, at the port that it names in its log."""

import re
import time
import urllib.error
import urllib.request

from prometheus_client.parser import text_string_to_metric_families

_PORT = re.compile(r"telemetry at http://127.0.0.1:(\d+)")
_PATIENCE_S = 30.0  # a process that gets no processor answers late, and then to another connection
_PAUSE_S = 0.2


def asked(log: str, path: str) -> str:
    """Its answer, whatever the status; empty before it listens. Of several in one log the last one is asked."""
    ports = _PORT.findall(log)
    if not ports:
        return ""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return _answer(f"http://127.0.0.1:{ports[-1]}{path}")
        except OSError:
            if time.monotonic() > deadline:
                raise
        time.sleep(_PAUSE_S)


def metric(log: str, name: str) -> float:
    """The sum of a metric's samples, from its /metrics."""
    families = list(text_string_to_metric_families(asked(log, "/metrics")))
    return sum(sample.value for family in families for sample in family.samples if sample.name == name)


def _answer(url: str) -> str:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.read().decode()
