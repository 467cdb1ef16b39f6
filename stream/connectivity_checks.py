"""Check everything that the settings name, one by one, and print what is wrong and what to do."""

import asyncio
import contextlib
import functools
import socket
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from ragtide.evaluators.errors import ConfigError, RagtideError, Transient, Unavailable
from ragtide.evaluators.settings import EncoderSettings
from ragtide.stream.kafka.broker_check import (
    check_jobs_topic,
    describe_topic,
    no_topics_message,
    partition_counts,
    permission_hint,
    topics_read,
)
from ragtide.stream.settings.loader import Loaded, Settings
from ragtide.stream.settings.sections import CANONICAL

WAIT_S = 10.0
_NO_ENCODER = "not needed: nothing that is switched on embeds texts"
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class ConnectivityCheck:
    """What was tried. `well` None: it was not (no Grafana is named, no broker answers), or it is not installed and
    nobody asked for it by name; neither is a fault.

    `away`: nothing answers there.
    """

    name: str
    ok: bool | None
    message: str
    unreachable: bool = False


def run_checks(loaded: Loaded, *, models: bool = False) -> Iterator[ConnectivityCheck]:
    """Run the checks one by one, so that each result can be shown at once. Never raises a `RagtideError`.

    Loads no model unless `models` asks for it: then every model that an enabled evaluator uses, one at a time.
    """
    settings = loaded.settings
    yield ConnectivityCheck("settings", True, str(loaded.file) if loaded.file else "defaults and variables; no file")
    if settings.kafka.decoders:
        yield _run_check("kafka.decoders", _decoders, settings)
    yield from _kafka_checks(settings)
    for name, attempt in (
        ("clickhouse", _clickhouse),
        ("grafana", _grafana),
        ("evaluators", _evaluators),
        ("encoder", _load_encoder if models else _encoder),
        ("telemetry.port", _ports),
    ):
        yield _run_check(name, attempt, settings)
    yield from _alertmanager_checks(settings)
    if settings.otel.export.url.get_secret_value() or settings.otel.export.scores_topic:
        yield _run_check("otel.export", _score_targets, settings)
    if models:
        yield from _model_checks(settings)


def _run_check(name: str, attempt: Callable[[Settings], str | None], settings: Settings) -> ConnectivityCheck:
    try:
        message = attempt(settings)
    except Unavailable as error:
        return ConnectivityCheck(name, None, str(error))
    except RagtideError as error:
        return _failed(name, error)
    return (
        ConnectivityCheck(name, None, f"{name}.url is not set")
        if message is None
        else ConnectivityCheck(name, True, message)
    )


def _failed(name: str, error: RagtideError) -> ConnectivityCheck:
    away = isinstance(error, Transient)
    hint = "; is it running, and is the address right?" if away and not str(error).endswith("?") else ""
    return ConnectivityCheck(name, False, f"{error}{hint}", away)


def _kafka_checks(settings: Settings) -> Iterator[ConnectivityCheck]:
    """Check the brokers once; if they cannot be reached, that is the only result."""
    topics = {
        "kafka.jobs_topic": _jobs_topic,
        "kafka.dead_letter_topic": _dead_letter_topic,
        "kafka.labels_topic": _labels_topic,
    }
    if settings.otel.export.scores_topic:
        topics["otel.export.scores_topic"] = _scores_topic
    try:
        known = _run_with_timeout(partition_counts(settings.kafka))
    except RagtideError as error:
        yield _failed("kafka", error)
        for name in topics:
            yield ConnectivityCheck(name, None, "not tried: it needs a broker that answers")
        return
    for name, attempt in {"kafka": _kafka, **topics}.items():
        yield _run_check(name, functools.partial(attempt, known), settings)
    yield from _latest_traces(known, settings)
    yield from _latest_spans(known, settings)


def _latest_traces(known: Mapping[str, int], settings: Settings) -> Iterator[ConnectivityCheck]:
    """Check whether the worker can read what producers send."""
    from ragtide.stream.latest_traces import latest_records, report

    counts = {topic: known[topic] for topic in topics_read(settings.kafka, known) if topic in known}
    if not counts:
        return
    try:
        latest = _run_with_timeout(latest_records(settings, counts))
        for topic, ok, message in report(settings, latest):
            yield ConnectivityCheck(f"traces on {topic}", ok, message)
    except RagtideError as error:
        yield _failed("traces", error)


def _latest_spans(known: Mapping[str, int], settings: Settings) -> Iterator[ConnectivityCheck]:
    """Check whether stage `assemble` can read the topics of spans that exist."""
    counts = {topic: known[topic] for topic in settings.otel.topics if topic in known}
    if not counts:
        return
    from ragtide.stream.latest_spans import MESSAGES, report_spans
    from ragtide.stream.latest_traces import latest_records

    try:
        latest = _run_with_timeout(latest_records(settings, counts, MESSAGES))
        for topic, ok, message in report_spans(settings, latest):
            yield ConnectivityCheck(f"spans on {topic}", ok, message)
    except RagtideError as error:
        yield _failed("spans", error)


def _decoders(settings: Settings) -> str:
    from ragtide.stream.ingest.decoders import Decoders

    Decoders(settings.kafka)
    named = {entry: settings.kafka.decoders.get(entry, CANONICAL) for entry in settings.kafka.topics}
    return ", ".join(f"{entry} by {name}" for entry, name in named.items())


def _kafka(known: Mapping[str, int], settings: Settings) -> str:
    if message := no_topics_message(settings.kafka, known):
        raise ConfigError(message)
    listed = ", ".join(_require_topic(topic, known, settings) for topic in topics_read(settings.kafka, known))
    return f"Kafka at {settings.kafka.bootstrap_servers}: {listed}"


def _jobs_topic(known: Mapping[str, int], settings: Settings) -> str:
    topic = settings.kafka.jobs_topic
    message = _require_topic(topic, known, settings)
    check_jobs_topic(topic, known[topic])
    return message


def _dead_letter_topic(known: Mapping[str, int], settings: Settings) -> str:
    from ragtide.stream.kafka.lag_age import is_compacted

    topic = settings.kafka.dead_letter_topic
    message = _require_topic(topic, known, settings)
    if _run_with_timeout(is_compacted(settings.kafka, topic)):
        raise ConfigError(
            f"{topic} is compacted, so that the brokers delete all dead letters of a key but the newest; "
            "set its cleanup.policy to delete"
        )
    return message


def _labels_topic(known: Mapping[str, int], settings: Settings) -> str:
    topic = settings.kafka.labels_topic
    if topic not in known:
        raise Unavailable(f"there is no topic {topic or 'of labels'}: no labels are read until there is")
    return describe_topic(topic, known[topic])


def _scores_topic(known: Mapping[str, int], settings: Settings) -> str:
    return _require_topic(settings.otel.export.scores_topic, known, settings)


def _require_topic(topic: str, known: Mapping[str, int], settings: Settings) -> str:
    if topic in known:
        return describe_topic(topic, known[topic])
    raise ConfigError(
        f"the brokers at {settings.kafka.bootstrap_servers} have no topic {topic}{permission_hint(settings.kafka)}; "
        "`ragtide topics create` makes it"
    )


def _run_with_timeout(attempt: Coroutine[Any, Any, Result]) -> Result:
    async def bounded() -> Result:
        async with asyncio.timeout(WAIT_S):
            return await attempt

    try:
        return asyncio.run(bounded())
    except TimeoutError:
        raise Transient(f"no answer within {WAIT_S:g} s (kafka.bootstrap_servers)") from None


def _clickhouse(settings: Settings) -> str:
    from ragtide.sinks.clickhouse.database import Database
    from ragtide.sinks.clickhouse.disks import disks
    from ragtide.sinks.clickhouse.sink import ClickHouseSink

    sink = ClickHouseSink(database := Database(settings.clickhouse))
    try:
        message = sink.check()
        disks(database)
        return message
    finally:
        sink.close()


def _grafana(settings: Settings) -> str | None:
    if not settings.grafana.url:
        return None
    from ragtide.sinks.grafana import GrafanaGateway

    return GrafanaGateway(settings.grafana).check()


def _alertmanager_checks(settings: Settings) -> Iterator[ConnectivityCheck]:
    """Check each member of a cluster."""
    from ragtide.sinks.alertmanager import AlertmanagerGateway

    def check(url: str, _: Settings) -> str:
        return AlertmanagerGateway(url, settings.alertmanager).check()

    for url in settings.alertmanager.urls:
        yield _run_check("alertmanager", functools.partial(check, url), settings)
    if not settings.alertmanager.urls:
        yield ConnectivityCheck("alertmanager", None, "alertmanager.urls is not set")


def _score_targets(settings: Settings) -> str:
    from ragtide.stream.score_targets import check_score_targets

    return check_score_targets(settings)


def _evaluators(settings: Settings) -> str:
    from ragtide.evaluators import registry
    from ragtide.evaluators.describe import unavailable
    from ragtide.evaluators.encoder_thresholds import with_encoder_thresholds
    from ragtide.evaluators.plan import is_on

    found = with_encoder_thresholds(registry.load(settings.evaluators), settings.evaluators)
    enabled = [id for id, evaluator in found.items() if is_on(evaluator, settings.evaluators)]
    off = {id: reason for id, reason in unavailable(found, settings.evaluators).items() if id in enabled}
    if off:
        grouped = {reason: [id for id in off if off[id] == reason] for reason in off.values()}
        listed = "; ".join(f"{', '.join(ids)}: {reason}" for reason, ids in grouped.items())
        # What nobody asked for by name is off, and the rest work.
        kind = Unavailable if settings.evaluators.enabled is None else ConfigError
        raise kind(f"{len(enabled) - len(off)} of {len(enabled)} can run; {listed}")
    return f"all {len(enabled)} can run"


def _encoder(settings: Settings) -> str:
    """Look for the encoder's files and its runtime; load neither."""
    from ragtide.evaluators.encoder import what_is_missing
    from ragtide.evaluators.encoder.model import find

    if not _embeds(settings):
        return _NO_ENCODER
    if missing := what_is_missing(settings.evaluators.encoder):
        raise Unavailable(missing)
    files = find(settings.evaluators.encoder)
    size_mb = sum(path.stat().st_size for path in files.weights) / 1e6
    return f"{files.name} is here, {size_mb:,.0f} MB; `ragtide check --models` loads it and the other models"


def _load_encoder(settings: Settings) -> str:
    return _try_encoder(settings.evaluators.encoder) if _embeds(settings) else _NO_ENCODER


def _embeds(settings: Settings) -> bool:
    from ragtide.evaluators import registry
    from ragtide.evaluators.plan import wanted_encoders
    from ragtide.evaluators.spec import SHARED

    return SHARED in wanted_encoders(registry.load(settings.evaluators), settings.evaluators, None)


def _try_encoder(encoder: EncoderSettings) -> str:
    from ragtide.evaluators.encoder import load_encoder

    loaded = load_encoder(encoder)
    vectors = loaded.encode(["ragtide check"])
    return f"{loaded.revision}, {vectors.shape[1]} dimensions"


def _model_checks(settings: Settings) -> Iterator[ConnectivityCheck]:
    """Load each model besides the shared encoder, one at a time: together they may not fit in memory."""
    from ragtide.evaluators import registry
    from ragtide.evaluators.encoder import settings_of_other
    from ragtide.evaluators.models import load
    from ragtide.evaluators.plan import wanted_encoders, wanted_models
    from ragtide.evaluators.spec import SHARED, ModelRef

    evaluators = settings.evaluators

    def load_beside(name: str, _: Settings) -> str:
        return _try_encoder(settings_of_other(name, evaluators.encoder))

    def load_model(ref: ModelRef, _: Settings) -> str:
        return load(ref, evaluators).revision

    try:
        found = registry.load(evaluators)
        encoders, refs = wanted_encoders(found, evaluators, None), wanted_models(found, evaluators, None)
    except RagtideError:
        return  # the check of the evaluators says it
    for name in encoders:
        if name != SHARED:
            yield _run_check(f"encoder {name}", functools.partial(load_beside, name), settings)
    for ref in refs:
        yield _run_check(f"model {ref.name}", functools.partial(load_model, ref), settings)


def _ports(settings: Settings) -> str:
    telemetry = settings.telemetry
    wanted = {"telemetry.port": telemetry.port, "telemetry.jobs_port": telemetry.jobs_port}
    for name, port in wanted.items():
        try:
            with contextlib.closing(socket.create_server((telemetry.host, port), reuse_port=False)):
                pass
        except OSError as error:
            raise ConfigError(
                f"cannot listen on {telemetry.host}:{port} ({name}): {error.strerror or error}; is ragtide running "
                "already? Otherwise stop what listens there, or choose another port (0: any free one)"
            ) from None
    return ", ".join(f"{telemetry.host}:{port or 'any'}" for port in wanted.values())
