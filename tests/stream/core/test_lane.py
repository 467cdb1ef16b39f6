"""What ends a lane, and with what words."""

import subprocess
import sys

import pytest

from tests.stream.core.traffic import ROOT, Broker, make_topics

pytestmark = pytest.mark.broker


@pytest.mark.parametrize(
    "way",
    [["crash"], ["locked"], ["early", "0"], ["early", "0.5"], ["early", "2"]],
    ids=[
        "a crash inside Faust ends it with its reason",
        "a sink that a person must look at stops it",
        "a stop at once is a stop",
        "a stop while it looks for brokers is a stop",
        "a stop while it joins its group is a stop",
    ],
)
def test_a_lane_ends(broker: Broker, way: list[str]) -> None:
    topic = f"rag.ends.{'.'.join(way)}"
    make_topics(broker, {topic: 1, f"{topic}.dead": 1})
    command = [sys.executable, "-m", "tests.stream.core.lane_endings", way[0], broker.bootstrap, topic, *way[1:]]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
