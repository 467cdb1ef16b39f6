"""Kill -9 of stage `assemble` while a real Collector sends."""

import random
import threading
import time
from collections import defaultdict
from pathlib import Path

import pytest

from ragtide.stream.ingest.otel import Span, decode_spans
from tests.infra.collector import Collector
from tests.infra.go_programs import GO
from tests.stream.assembly.scene import expected
from tests.stream.collector.exporting import export_spans, recorded_spans
from tests.stream.collector.page import settings
from tests.stream.collector.site import Site, stored
from tests.stream.core.traffic import Broker, eventually
from tests.stream.otel.scene import RECORDED

pytestmark = [
    pytest.mark.collector,
    pytest.mark.kafka,
    pytest.mark.chaos,
    pytest.mark.skipif(GO is None, reason="Go is missing"),
    pytest.mark.timeout(1200),  # the first of all runs builds the Collector
]

PIPELINES = ("openinference_langchain", "openinference_llama_index", "traceloop_langchain", "langfuse_sdk")
KILLS = 3
_AT_ONCE = 20  # traces whose spans come in any order
_REQUEST = 40  # spans
_PAUSE_S = 0.1


class Application:
    """Exports traces until it is told to stop; `spans` is the number of their spans."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.spans = 0
        self._thread.start()

    def stop(self) -> None:
        """Returns once the traces that were begun are sent."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        rng, number = random.Random(1), 0
        while not self._over.is_set():
            files = [RECORDED / f"{PIPELINES[one % len(PIPELINES)]}.binpb" for one in range(_AT_ONCE)]
            now_ns = time.time_ns()
            spans = [span for at, file in enumerate(files, number + 1) for span in recorded_spans(file, at, now_ns)]
            rng.shuffle(spans)
            for first in range(0, len(spans), _REQUEST):
                export_spans(self._url, spans[first : first + _REQUEST])
                time.sleep(_PAUSE_S)
            number += _AT_ONCE
            self.spans += len(spans)


def test_every_trace_is_whole_in_the_end(kafka: Broker, tmp_path: Path) -> None:
    with Site(kafka, tmp_path, ["app"], otel={"quiet_s": 0.5}) as site:
        topics = site.spans_topic("app"), site.logs_topic("app")
        with Collector(tmp_path, settings(kafka, *topics, "otlp_proto", by_trace=False)) as collector:
            application = Application(collector.url)
            try:
                for _ in range(KILLS):
                    before = len(stored(kafka, site.traces_topic))
                    stage = site.start("assemble")
                    eventually(lambda at=before: len(stored(kafka, site.traces_topic)) > at, 60, site.logs)  # type: ignore[misc]  # a default binds it
                    stage.kill()
            finally:
                application.stop()
            assert collector.stop() == 0, collector.log()

        spans: defaultdict[str, list[Span]] = defaultdict(list)
        for message in stored(kafka, site.spans_topic("app")):
            for span in decode_spans(message.value).spans:
                spans[span.trace_id].append(span)
        assert sum(map(len, spans.values())) == application.spans
        wanted = {key: value for one in spans.values() for key, value in expected(one).items()}
        assert len(wanted) == len(spans)
        last = site.start("assemble")
        eventually(lambda: {one.key: one.value for one in stored(kafka, site.traces_topic)} == wanted, 90, site.logs)
        assert last.stop() == 0, site.logs()
        assert {one.key: one.value for one in stored(kafka, site.traces_topic)} == wanted
