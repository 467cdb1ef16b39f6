"""Each topic is read by the decoder that the settings name for it, those of installed packages too."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from ragtide.evaluators.errors import BadRecord, ConfigError
from ragtide.evaluators.resources import Resources
from ragtide.stream.connectivity_checks import run_checks
from ragtide.stream.ingest.adjustments import Adjustments
from ragtide.stream.ingest.decoders import Decoders
from ragtide.stream.ingest.enriched import enrichment_headers
from ragtide.stream.ingest.records import StoredRecord
from ragtide.stream.pipeline import Pipeline, SliceResult
from ragtide.stream.settings.loader import Loaded, Settings
from ragtide.stream.settings.sections import KafkaSettings
from tests.stream.pipe.records import AT, AT_MS, clock, record

PLUGIN = f"""
from datetime import datetime
from ragtide.evaluators.errors import BadRecord
from ragtide.evaluators.trace import Trace

def lines(value):
    words = value.decode().split("|")
    if words == ["nothing"]:
        return None
    if words == ["bad"]:
        raise BadRecord("not_lines", "")
    trace_id, app, question = words
    return Trace(trace_id=trace_id, time=datetime.fromisoformat("{AT}"), app=app, question=question)

number = 7
"""
OF_LINES: dict[str, Any] = {
    "topics": ["rag.traces", "plain.one", "^plain\\..*"],
    "decoders": {"plain.one": "canonical_json", "^plain\\..*": "lines"},
}


@pytest.fixture(autouse=True)
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package as pip leaves it, whose decoder reads `id|app|question`."""
    (tmp_path / "plain_lines.py").write_text(PLUGIN)
    about = tmp_path / "plain_lines-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: plain-lines\nVersion: 1.0\n")
    points = "lines = plain_lines:lines\nnumber = plain_lines:number\ngone = plain_lines:gone\n"
    (about / "entry_points.txt").write_text(f"[ragtide.decoders]\n{points}")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("plain_lines", None)


def processed(*records: StoredRecord) -> SliceResult:
    settings = Settings.model_validate({"kafka": OF_LINES})
    return Pipeline((), Resources(), settings, lane="fast", clock=clock).process(records)


def on(topic: str, value: bytes, *more: tuple[str, bytes]) -> StoredRecord:
    return StoredRecord(topic, 0, 7, AT_MS, None, value, more)


def test_each_topic_has_its_decoder() -> None:
    canonical = record(trace_id="t-json").value
    assert canonical is not None
    done = processed(
        on("rag.traces", canonical),
        on("plain.one", record(trace_id="t-one").value or b""),
        on("plain.two", b"t-lines|shop|why?"),
        on("elsewhere", record(trace_id="t-file").value or b""),  # a file that is replayed
    )
    assert [(row.trace_id, row.app) for row in done.block.traces] == [
        ("t-json", "docs"),
        ("t-one", "docs"),
        ("t-lines", "shop"),
        ("t-file", "docs"),
    ]
    assert done.dead == []
    assert [row.task for row in done.block.traces] == ["question_answering"] * 4  # filled in for all


def test_what_enriches_is_canonical_on_every_topic() -> None:
    told = enrichment_headers("plain.two", 0, 7, AT_MS, 1)
    done = processed(on("plain.two", b"t-1|shop|why?"), on("plain.two", record(trace_id="t-1").value or b"", *told))
    assert [(row.trace_id, row.app) for row in done.block.traces] == [("t-1", "shop"), ("t-1", "docs")]


def test_what_a_decoder_cannot_read_is_a_dead_letter() -> None:
    done = processed(*(on("plain.two", value) for value in (b"a secret", b"nothing", b"bad", b"\xff", b"t|shop|")))
    assert [(letter.reason, letter.detail) for letter in done.dead] == [
        ("decoder_failed", "decoder lines: ValueError"),
        ("decoder_failed", "decoder lines made no Trace"),
        ("not_lines", ""),
        ("decoder_failed", "decoder lines: UnicodeDecodeError"),
    ]
    assert [row.trace_id for row in done.block.traces] == ["t"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("otlp", "there is no decoder 'otlp'; there are: canonical_json, gone, lines, number"),
        ("gone", "the decoder 'gone' cannot be loaded: AttributeError"),
        ("number", "the decoder 'number' is no function"),
    ],
)
def test_a_decoder_that_is_not_there_is_refused_at_the_start_and_by_check(name: str, said: str) -> None:
    kafka = KafkaSettings.model_validate({"decoders": {"rag.traces": name}, "bootstrap_servers": "127.0.0.1:1"})
    with pytest.raises(ConfigError, match=said):
        Decoders(kafka)
    with pytest.raises(ConfigError, match=said):
        Pipeline((), Resources(), Settings(kafka=kafka), lane="fast")
    found = next(
        check for check in run_checks(Loaded(Settings(kafka=kafka), {}, None)) if check.name == "kafka.decoders"
    )
    assert (found.ok, said in found.message) == (False, True)


def test_a_broken_record_of_a_canonical_topic_is_told_as_ever() -> None:
    with pytest.raises(BadRecord, match="not_json"):
        Decoders(KafkaSettings())["rag.traces"](b"{", Adjustments())


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"decoders": {"elsewhere": "lines"}}, "kafka.decoders names elsewhere, which kafka.topics does not"),
        ({"topics": ["rag traces"]}, "'rag traces' names no topic"),
        ({"topics": ["rag.traces", ""]}, "'' names no topic"),
        ({"topics": ["^rag.("]}, "'^rag.(': regular expression refused (missing ))"),
        ({"topics": ["^rag(?!.dead)"]}, "'^rag(?!.dead)': regular expression refused"),
        ({"topics": ["^rag(?!.dead)"]}, "look-around has no linear time"),
        ({"topics": ["^(a{999}){999}"]}, "regular expression refused"),
    ],
)
def test_topics_and_decoders_that_cannot_be_are_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(said)):
        KafkaSettings.model_validate(settings)


def test_a_pattern_matches_whole_names_and_nothing_that_ragtide_writes() -> None:
    kafka = KafkaSettings(topics=("^rag\\.(traces|labels|jobs).*|^a", "orders", "^__.*"))
    read = ["rag.traces", "rag.traces.dead", "rag.traces.eu", "rag.labels", "rag.jobs", "a", "ab", "orders", "ordersx"]
    read += ["__consumer_offsets", "x.rag.traces", "rag.traces\n"]
    assert [topic for topic in read if kafka.entry_of(topic)] == ["rag.traces", "rag.traces.eu", "a", "orders"]
    assert [topic for topic in read if kafka.pattern().match(topic)] == ["rag.traces", "rag.traces.eu", "a", "orders"]
    assert kafka.entry_of("orders") == "orders"
