"""Tries everything that the settings name, one thing after the other, and says what is wrong and what to do."""

import asyncio
import contextlib
import functools
import socket
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from evaluators.errors import ConfigError, RagwatchError, Transient, Unavailable
from stream.configuration.sections import CANONICAL
from stream.kafka.brokers import check_jobs_topic, counted, or_unseen, partitions, topics_read, unmatched
from stream.settings import Loaded, Settings

WAIT_S = 10.0
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Check:
    """What was tried. `well` None: it was not (no Grafana is named, no broker answers), or it is not installed and
    nobody asked for it by name; neither is a fault.

    `away`: nothing answers there.
    """

    name: str
    well: bool | None
    said: str
    away: bool = False


def checks(loaded: Loaded) -> Iterator[Check]:
    """One after the other, so that each can be shown as soon as it is known; never raises a `RagwatchError`."""
    settings = loaded.settings
    yield Check("settings", True, str(loaded.file) if loaded.file else "defaults and variables; no file")
    if settings.kafka.decoders:
        yield _tried("kafka.decoders", _decoders, settings)
    yield from _kafka_checks(settings)
    for name, attempt in (
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
    except Unavailable as error:
        return Check(name, None, str(error))
    except RagwatchError as error:
        return _failed(name, error)
    return Check(name, None, f"{name}.url is not set") if said is None else Check(name, True, said)


def _failed(name: str, error: RagwatchError) -> Check:
    away = isinstance(error, Transient)
    hint = "; is it running, and is the address right?" if away and not str(error).endswith("?") else ""
    return Check(name, False, f"{error}{hint}", away)


def _kafka_checks(settings: Settings) -> Iterator[Check]:
    """The brokers are asked once; where they cannot be, that is the one thing to mend."""
    topics = {
        "kafka.jobs_topic": _jobs_topic,
        "kafka.dead_letter_topic": _dead_letter_topic,
        "kafka.labels_topic": _labels_topic,
    }
    try:
        known = _within(partitions(settings.kafka))
    except RagwatchError as error:
        yield _failed("kafka", error)
        for name in topics:
            yield Check(name, None, "not tried: it needs a broker that answers")
        return
    for name, attempt in {"kafka": _kafka, **topics}.items():
        yield _tried(name, functools.partial(attempt, known), settings)


def _decoders(settings: Settings) -> str:
    from stream.ingest.decoders import Decoders

    Decoders(settings.kafka)
    named = {entry: settings.kafka.decoders.get(entry, CANONICAL) for entry in settings.kafka.topics}
    return ", ".join(f"{entry} by {name}" for entry, name in named.items())


def _kafka(known: Mapping[str, int], settings: Settings) -> str:
    if said := unmatched(settings.kafka, known):
        raise ConfigError(said)
    told = ", ".join(_found(topic, known, settings) for topic in topics_read(settings.kafka, known))
    return f"Kafka at {settings.kafka.bootstrap_servers}: {told}"


def _jobs_topic(known: Mapping[str, int], settings: Settings) -> str:
    topic = settings.kafka.jobs_topic
    said = _found(topic, known, settings)
    check_jobs_topic(topic, known[topic])
    return said


def _dead_letter_topic(known: Mapping[str, int], settings: Settings) -> str:
    return _found(settings.kafka.dead_letter_topic, known, settings)


def _labels_topic(known: Mapping[str, int], settings: Settings) -> str:
    topic = settings.kafka.labels_topic
    if topic not in known:
        raise Unavailable(f"there is no topic {topic or 'of labels'}: no labels are read until there is")
    return counted(topic, known[topic])


def _found(topic: str, known: Mapping[str, int], settings: Settings) -> str:
    if topic in known:
        return counted(topic, known[topic])
    raise ConfigError(
        f"the brokers at {settings.kafka.bootstrap_servers} have no topic {topic}{or_unseen(settings.kafka)}; "
        "`ragwatch topics create` makes it"
    )


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
    from sinks.clickhouse.disks import disks
    from sinks.clickhouse.sink import ClickHouseSink

    sink = ClickHouseSink(database := Database(settings.clickhouse))
    try:
        said = sink.check()
        disks(database)
        return said
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
    from evaluators.suited import suited

    described = describe(suited(registry.load(), settings.evaluators), settings.evaluators)
    infos = [info for info in described if info.enabled]
    off = [info for info in infos if not info.available]
    if off:
        reasons = {reason: [info.id for info in off if info.reason == reason] for reason in (i.reason for i in off)}
        told = "; ".join(f"{', '.join(ids)}: {reason}" for reason, ids in reasons.items())
        # What nobody asked for by name is off, and the rest work.
        kind = Unavailable if settings.evaluators.enabled is None else ConfigError
        raise kind(f"{len(infos) - len(off)} of {len(infos)} can run; {told}")
    return f"all {len(infos)} can run"


def _encoder(settings: Settings) -> str:
    from evaluators import registry
    from evaluators.encoder import load_encoder
    from evaluators.plan import wanted_encoders
    from evaluators.spec import SHARED

    if SHARED not in wanted_encoders(registry.load(), settings.evaluators, None):
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
                f"cannot listen on {telemetry.host}:{port} ({name}): {error.strerror or error}; is ragwatch running "
                "already? Otherwise stop what listens there, or choose another port (0: any free one)"
            ) from None
    return ", ".join(f"{telemetry.host}:{port or 'any'}" for port in wanted.values())
