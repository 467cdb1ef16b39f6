"""What a process tells of itself over HTTP, at the port that it names in its log."""

import re
import urllib.error
import urllib.request

from prometheus_client.parser import text_string_to_metric_families

_PORT = re.compile(r"telemetry at http://127.0.0.1:(\d+)")


def asked(log: str, path: str) -> str:
    """Its answer, whatever the status; empty before it listens. Of several in one log the last one is asked."""
    ports = _PORT.findall(log)
    if not ports:
        return ""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{ports[-1]}{path}", timeout=10) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.read().decode()


def metric(log: str, name: str) -> float:
    """The sum of a metric's samples, from its /metrics."""
    families = list(text_string_to_metric_families(asked(log, "/metrics")))
    return sum(sample.value for family in families for sample in family.samples if sample.name == name)
