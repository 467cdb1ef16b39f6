"""The instrumentation packages themselves, with the real SDK, through a real Collector and Kafka to stored scores."""

import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ragtide.sinks.clickhouse.database import Database
from tests.infra.collector import Collector
from tests.infra.environments import RegistryUnreachable, kept_python
from tests.infra.go_programs import GO
from tests.stream.collector.page import settings
from tests.stream.collector.site import EVALUATORS, Site
from tests.stream.core.traffic import Broker, eventually
from tests.stream.otel import record
from tests.stream.otel.scene import ANSWER, HOURS, PRICES, QUESTION

pytestmark = [
    pytest.mark.collector,
    pytest.mark.kafka,
    pytest.mark.clickhouse,
    pytest.mark.onnx,
    pytest.mark.skipif(GO is None, reason="Go is missing"),
    pytest.mark.timeout(1200),  # the first of all runs builds the Collector and the environment
]

REQUIREMENTS = Path(record.__file__).with_name("instrumentation.txt")
# By case, the instrumentation as its spans name it.
CASES: Mapping[str, str] = {
    "openinference_langchain": "openinference.instrumentation.langchain",
    "openinference_llama_index": "openinference.instrumentation.llama_index",
    "traceloop_langchain": "opentelemetry.instrumentation.langchain",
    "traceloop_llama_index": "opentelemetry.instrumentation.llamaindex",
    "genai_langchain": "opentelemetry.instrumentation.genai.langchain",
    "genai_langchain_events": "opentelemetry.instrumentation.genai.langchain",
}
# These record ids of documents on spans at most, and never their texts.
WITHOUT_TEXTS: Mapping[str, list[str]] = {"genai_langchain": ["", ""], "genai_langchain_events": []}
ECHO = " ".join(["text"] * 8)  # what LlamaIndex's own fake model says
_AT_ONCE = 2
_PROGRAM_S = 120


@pytest.fixture(scope="module")
def python() -> Path:
    try:
        return kept_python(REQUIREMENTS)
    except RegistryUnreachable as error:
        pytest.skip(f"the instrumentation packages are not here, and no registry can be reached: {error}")


@pytest.fixture
def site(kafka: Broker, database: Database, tmp_path: Path) -> Iterator[Site]:
    with Site(kafka, tmp_path, ("live",), database) as made:
        yield made


def run(python: Path, case: str, url: str) -> None:
    """Run the pipeline of a case in a process of its own, until everything is exported."""
    command = ["nice", "-n", "5", str(python), record.__file__, case, url]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_PROGRAM_S)
    assert done.returncode == 0, done.stderr[-4000:]


def test_spans_of_the_packages_themselves_become_scores(
    python: Path, site: Site, database: Database, tmp_path: Path
) -> None:
    processes = [site.start(part) for part in ("assemble", "fast", "model")]
    topics = site.spans_topic("live"), site.logs_topic("live")
    with Collector(tmp_path / "live", settings(site.broker, *topics, "otlp_proto", by_trace=False)) as collector:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(lambda case: run(python, case, collector.url), CASES))
        assert collector.stop() == 0, collector.log()

    wanted = len(CASES) * len(EVALUATORS)
    eventually(lambda: len(database.rows("SELECT 1 FROM scores FINAL")) == wanted, 120, site.logs)
    for process in processes:
        assert process.stop() == 0, site.logs()

    rows = {row["app"]: row for row in database.rows("SELECT * FROM trace_texts FINAL")}
    statuses = {(row["app"], row["evaluator"]): row["status"] for row in database.rows("SELECT * FROM scores FINAL")}
    assert rows.keys() == CASES.keys()
    for case, library in CASES.items():
        row, has_texts = rows[case], case not in WITHOUT_TEXTS
        assert row["question"] == QUESTION, case
        assert row["answer"] == (ECHO if case.endswith("llama_index") else ANSWER), case
        assert sorted(row["chunks"]) == WITHOUT_TEXTS.get(case, sorted([HOURS, PRICES])), case
        assert f'"otel.scope.name":"{library}"' in row["attributes"], case
        assert statuses[case, "answer_relevancy_sentence"] == "scored", case
        assert statuses[case, "groundedness"] == ("scored" if has_texts else "not_applicable"), case
    assert database.rows("SELECT reason FROM dead_letters") == []
