"""Fixed ranges of offsets become a run, with settings of its own; what is no such range is refused."""

import json
import uuid
from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result

from ragtide.evaluators.errors import ConfigError
from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.cli import main
from ragtide.stream.replay.loop import ReplayProgress, ReplaySource
from ragtide.stream.replay.offsets import OffsetRange, OffsetSource
from ragtide.stream.replay.runs import Runs
from ragtide.stream.settings.sections import KafkaSettings
from tests.infra.fresh_database import reached
from tests.infra.kafka_node import KafkaNode
from tests.stream.pipe.replaying import BASE_MS, DAY_MS, Stopped, everything, fields, go, rows, traces
from tests.stream.pipe.test_replay_topic import produce

pytestmark = pytest.mark.clickhouse


def on_partitions(bootstrap: str, values: list[bytes], partitions: int = 2) -> str:
    """A new topic with value n at offset n // partitions of partition n % partitions."""
    topic = f"t-{uuid.uuid4().hex}"
    produce(bootstrap, topic, [(BASE_MS, value) for value in values], partitions)
    return topic


def source(bootstrap: str, *ranges: OffsetRange) -> ReplaySource:
    return OffsetSource(KafkaSettings(bootstrap_servers=bootstrap), ranges, batch_records=7)


def places(database: Database, run_id: str = "r") -> set[tuple[int, int]]:
    return {(row["partition"], row["offset"]) for row in rows(database, "traces", run_id)}


def test_ranges_of_offsets_become_a_run_that_goes_on_where_it_was(database: Database, bootstrap: str) -> None:
    topic = on_partitions(bootstrap, [json.dumps(trace).encode() for trace in traces(120)], 3)
    ranges = [OffsetRange(topic, 2, 0, 40), OffsetRange(topic, 0, 7, 31)]
    told: list[ReplayProgress] = []

    def stop(progress: ReplayProgress) -> None:
        if progress.traces >= 30:
            raise Stopped

    with pytest.raises(Stopped):
        go(database, source(bootstrap, *ranges), report=stop, block_rows=10)
    done = go(database, source(bootstrap, *reversed(ranges)), report=told.append)
    assert (done.state, done.traces, done.dead_letters) == ("completed", 64, 0)
    assert told[-1] == ReplayProgress(64, 64, 64, 0)
    assert places(database) == {(2, at) for at in range(40)} | {(0, at) for at in range(7, 31)}
    before = everything(database)
    assert go(database, source(bootstrap, *ranges)).traces == 64
    assert everything(database) == before
    with pytest.raises(ConfigError, match=f"from offsets {topic}:0:7-31, .*, not offsets {topic}:0:7-30; "):
        go(database, source(bootstrap, OffsetRange(topic, 0, 7, 30)))


def test_times_do_not_matter(database: Database, bootstrap: str) -> None:
    """Nor where they cannot be read."""
    old = [json.dumps(fields(trace_id=f"t-{n}", time=BASE_MS - n * 100 * DAY_MS)).encode() for n in range(4)]
    topic = on_partitions(bootstrap, [*old, b"poison", *old], 1)
    done = go(database, source(bootstrap, OffsetRange(topic, 0, 1, 5)))
    assert (done.traces, done.dead_letters) == (3, 1)
    assert places(database) == {(0, 1), (0, 2), (0, 3)}


def test_ranges_that_are_not_there_are_told(database: Database, bootstrap: str) -> None:
    topic = on_partitions(bootstrap, [json.dumps(trace).encode() for trace in traces(8)])
    with pytest.raises(ConfigError, match=f"{topic}:1:0-5 ends after its partition, which ends at 4 so far"):
        go(database, source(bootstrap, OffsetRange(topic, 0, 0, 4), OffsetRange(topic, 1, 0, 5)))
    with pytest.raises(ConfigError, match=f"topic {topic} has no partition 2, but 2 from 0 on"):
        go(database, source(bootstrap, OffsetRange(topic, 2, 0, 1)), "other")
    with pytest.raises(ConfigError, match="has no topic nowhere"):
        go(database, source(bootstrap, OffsetRange("nowhere", 0, 0, 1)), "another")
    assert not rows(database, "traces")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("t:0:5-5", "is empty"),
        ("t:0:6-5", "is empty"),
        ("t:0:5", "TOPIC:PARTITION:START-END"),
        ("t:0:-5-9", "TOPIC:PARTITION:START-END"),
        ("t:x:5-9", "TOPIC:PARTITION:START-END"),
        ("t/u:0:5-9", "TOPIC:PARTITION:START-END"),
        ("t:0:\u0665-9", "TOPIC:PARTITION:START-END"),
        ("t:0:5-9" + "9" * 10_000, "TOPIC:PARTITION:START-END"),
        ("", "TOPIC:PARTITION:START-END"),
    ],
)
def test_what_is_no_range_is_refused(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        OffsetRange.parse(text)


def test_a_range_is_said_as_it_is_given() -> None:
    assert OffsetRange.parse("rag.traces-2:11:0-900") == OffsetRange("rag.traces-2", 11, 0, 900)
    assert str(OffsetRange("rag.traces-2", 11, 0, 900)) == "rag.traces-2:11:0-900"


def test_a_partition_has_one_range() -> None:
    with pytest.raises(ConfigError, match="one range of each partition"):
        source("127.0.0.1:9", OffsetRange("t", 0, 0, 5), OffsetRange("t", 0, 7, 9))


@pytest.fixture
def replay(database: Database, kafka: KafkaNode) -> Callable[..., Result]:
    variables = {
        **reached(database),
        "RAGTIDE_CONFIG": None,
        "RAGTIDE_KAFKA__BOOTSTRAP_SERVERS": kafka.bootstrap,
        "RAGTIDE_EVALUATORS__PARAMS__ROUGE__USE_STEMMER": "true",
    }
    return lambda *args: CliRunner().invoke(main, ["replay", "--run", *args], env=variables)


def recalls(database: Database, run_id: str) -> set[float]:
    return {row["parts"]["rouge_1_recall"] for row in rows(database, "scores", run_id)}


@pytest.mark.kafka
def test_the_command_takes_ranges_and_settings_of_the_run(
    database: Database, kafka: KafkaNode, replay: Callable[..., Result]
) -> None:
    values = [json.dumps({**trace, "expected": ["It returns strings."]}).encode() for trace in traces(20)]
    topic = on_partitions(kafka.bootstrap, values)
    args = ("--offsets", f"{topic}:1:2-6,{topic}:0:0-3", "--evaluators", "rouge")
    stems = replay("stems", *args)
    assert stems.output.endswith(f"run stems: 7 traces, 0 dead letters, from offsets {topic}:0:0-3, {topic}:1:2-6\n")
    plain = (*args, "--set", "evaluators.params.rouge.use_stemmer=false", "--set", "worker.batch_records=2")
    assert replay("plain", *plain).exit_code == 0
    wanted = {(0, 0), (0, 1), (0, 2), (1, 2), (1, 3), (1, 4), (1, 5)}
    assert places(database, "plain") == places(database, "stems") == wanted

    # "It returns a string." against "It returns strings."
    assert list(recalls(database, "plain")) == pytest.approx([2 / 3])
    assert list(recalls(database, "stems")) == [1.0]
    found = [Runs(database).find(name) for name in ("stems", "plain")]
    prints = [run.fingerprints["rouge"] for run in found if run is not None]
    assert len(set(prints)) == 2
    for name, fingerprint in zip(("stems", "plain"), prints, strict=True):
        assert {row["fingerprint"] for row in rows(database, "scores", name)} == {fingerprint}
    refused = replay("stems", *plain)
    assert refused.exit_code == 2
    assert "was made with other versions or parameters of rouge" in refused.output


@pytest.mark.kafka
@pytest.mark.parametrize(
    ("args", "why"),
    [
        (("--offsets", "t:0:1-2", "--from", "2026-03-01"), "--offsets selects the records"),
        (("--offsets", "t:0:1-2", "--file", "x"), "--file is read whole"),
        (("--offsets", "t:0:2"), "TOPIC:PARTITION:START-END"),
        (("--set", "evaluators.params.rouge.use_stemmer"), "NAME=VALUE"),
        (("--set", "config=x"), "NAME=VALUE"),
        (("--set", "evaluators..x=1"), "NAME=VALUE"),
        (("--set", "evaluators.parms.rouge.x=1"), "did you mean RAGTIDE_EVALUATORS__PARAMS"),
        (("--evaluators", "rouge", "--set", "evaluators.params.rouge.stem=1"), "stem"),
        (("--set", "worker.batch_records=0"), "worker.batch_records"),
    ],
)
def test_what_cannot_be_is_a_usage_error(replay: Callable[..., Result], args: tuple[str, ...], why: str) -> None:
    refused = replay("r", *args)
    assert refused.exit_code == 2, refused.output
    assert why in refused.output
    assert "Traceback" not in refused.output
