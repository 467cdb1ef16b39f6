"""Tries everything that the settings name, one thing after the other, and says what is wrong and what to do."""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from evaluators.errors import ConfigError, RagwatchError, Transient
from stream.kafka.brokers import check_jobs_topic, counted, partitions
from stream.settings import Loaded, Settings

WAIT_S = 10.0
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Check:
    """What was tried. `well` None: it was not asked for (no Grafana), which is no fault."""

    name: str
    well: bool | None
    said: str


def checks(loaded: Loaded) -> Iterator[Check]:
    """One after the other, so that each can be shown as soon as it is known; never raises a `RagwatchError`."""
    settings = loaded.settings
    yield Check("settings", True, str(loaded.file) if loaded.file else "defaults and variables; no file")
    for name, attempt in (
        ("kafka", _kafka),
        ("kafka.jobs_topic", _jobs_topic),
        ("kafka.dead_letter_topic", _dead_letter_topic),
        ("clickhouse", _clickhouse),
        ("grafana", _grafana),
        ("evaluators", _evaluators),
        ("encoder", _encoder),
        ("telemetry.port", _ports),
    ):
        yield _tried(name, attempt, settings)


def _tried(name: str, attempt: Callable[[Settings], str | None], settings: Settings) -> Check:
    try:
        said = attempt(settings)
    except RagwatchError as error:
        hint = "; is it running, and is the address right?" if isinstance(error, Transient) else ""
        return Check(name, False, f"{error}{'' if str(error).endswith('?') else hint}")
    return Check(name, None, f"{name}.url is not set") if said is None else Check(name, True, said)


def _kafka(settings: Settings) -> str:
    counts = _topics(settings, *settings.kafka.topics)
    told = ", ".join(counted(topic, count) for topic, count in counts.items())
    return f"Kafka at {settings.kafka.bootstrap_servers}: {told}"


def _jobs_topic(settings: Settings) -> str:
    topic = settings.kafka.jobs_topic
    count = _topics(settings, topic)[topic]
    check_jobs_topic(topic, count)
    return counted(topic, count)


def _dead_letter_topic(settings: Settings) -> str:
    topic = settings.kafka.dead_letter_topic
    return counted(topic, _topics(settings, topic)[topic])


def _topics(settings: Settings, *topics: str) -> dict[str, int]:
    known = _within(partitions(settings.kafka))
    servers = settings.kafka.bootstrap_servers
    for topic in topics:
        if topic not in known:
            wanted = 4 if topic in settings.kafka.topics else 1
            raise ConfigError(
                f"the brokers at {servers} have no topic {topic}; make it: kafka-topics.sh --bootstrap-server "
                f"{servers.split(',')[0]} --create --topic {topic} --partitions {wanted}"
            )
    return {topic: known[topic] for topic in topics}


def _within(attempt: Coroutine[Any, Any, Result]) -> Result:
    async def bounded() -> Result:
        async with asyncio.timeout(WAIT_S):
            return await attempt

    try:
        return asyncio.run(bounded())
    except TimeoutError:
        raise Transient(f"no answer within {WAIT_S:g} s (kafka.bootstrap_servers)") from None


def _clickhouse(settings: Settings) -> str:
    from sinks.clickhouse.database import Database
    from sinks.clickhouse.sink import ClickHouseSink

    sink = ClickHouseSink(Database(settings.clickhouse))
    try:
        return sink.check()
    finally:
        sink.close()


def _grafana(settings: Settings) -> str | None:
    if not settings.grafana.url:
        return None
    from sinks.grafana import GrafanaGateway

    return GrafanaGateway(settings.grafana).check()


def _evaluators(settings: Settings) -> str:
    from evaluators import registry
    from evaluators.describe import describe

    infos = [info for info in describe(registry.load(), settings.evaluators) if info.enabled]
    off = [info for info in infos if not info.available]
    if off:
        reasons = "; ".join(sorted({f"{info.id}: {info.reason}" for info in off}))
        raise ConfigError(f"{len(infos) - len(off)} of {len(infos)} can run; {reasons}")
    return f"all {len(infos)} can run"


def _encoder(settings: Settings) -> str:
    from evaluators import registry
    from evaluators.encoder import load_encoder
    from evaluators.plan import needs_encoder

    if not needs_encoder(registry.load(), settings.evaluators, None):
        return "not needed: nothing that is switched on embeds texts"
    encoder = load_encoder(settings.evaluators.encoder)
    vectors = encoder.encode(["ragwatch check"])
    return f"{encoder.revision}, {vectors.shape[1]} dimensions"


def _ports(settings: Settings) -> str:
    telemetry = settings.telemetry
    wanted = {"telemetry.port": telemetry.port, "telemetry.jobs_port": telemetry.jobs_port}
    for name, port in wanted.items():
        try:
            with contextlib.closing(socket.create_server((telemetry.host, port), reuse_port=False)):
                pass
        except OSError as error:
            raise ConfigError(
                f"{name}: cannot listen on {telemetry.host}:{port}: {error.strerror or error}; is ragwatch running "
                "already? Otherwise stop what listens there, or choose another port (0: any free one)"
            ) from None
    return ", ".join(f"{telemetry.host}:{port or 'any'}" for port in wanted.values())
