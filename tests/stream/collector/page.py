"""The Collector's settings as docs/opentelemetry.md prints them."""

import re
from pathlib import Path
from typing import Any

import yaml

from tests.stream.core.traffic import Broker

PAGE = Path(__file__).parents[3] / "docs" / "opentelemetry.md"


def printed() -> str:
    """The one block of YAML on the page that exports to Kafka."""
    blocks = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    [block] = [block for block in blocks if "kafka:" in block]
    return str(block)


def settings(broker: Broker, spans: str, logs: str, encoding: str, *, by_trace: bool) -> dict[str, Any]:
    """The printed settings for this broker, these topics and this encoding."""
    found: dict[str, Any] = yaml.safe_load(printed())
    exporter = found["exporters"]["kafka"]
    assert exporter.keys() >= {"brokers", "traces", "logs"}
    exporter["brokers"] = [broker.bootstrap]
    exporter["traces"] = {"topic": spans, "encoding": encoding}
    exporter["logs"] = {"topic": logs, "encoding": encoding}
    exporter["partition_traces_by_id"] = by_trace
    return found
