"""The Faust app of a lane: our transport, manual acknowledgement, nothing of Faust that loses or copies data.

Faust's types are of records, not of slices, so that mypy reads none and knows no base class and no decorator of its.
"""

from collections.abc import Callable
from typing import Any

import faust
from faust.app.base import BootStrategy
from faust.auth import OAuthCredentials, SASLCredentials, SSLCredentials
from mode import CrashingSupervisor

from ragtide.stream.kafka.client import client_id, client_options
from ragtide.stream.kafka.driver import SliceConsumer, SliceSchema, SliceTransport
from ragtide.stream.settings.sections import FETCHES_IN_FLIGHT, KafkaSettings, WorkerSettings
from ragtide.stream.settings.topics import PATTERN_MARK

_POLL_SLICES = 10  # most slices of one poll, which come on top of the bytes in flight
_QUEUE_SLICES = 1 << 20  # bounded by the bytes in flight (driver), so that delivering never blocks the fetcher


class ConsumerOnly(BootStrategy):  # type: ignore[misc]  # see above
    """Faust without its producer and web server, which results do not use."""

    enable_kafka_producer = False
    enable_web = False


class LaneApp(faust.App):  # type: ignore[misc]  # see above
    """A Faust app that writes nothing to disk."""

    BootStrategy = ConsumerOnly

    def _create_directories(self) -> None:
        """Do nothing: Faust's directories are for tables, and there are none."""


def build_app(kafka: KafkaSettings, worker: WorkerSettings, lane: str, offer: Callable[[Any], None]) -> faust.App:
    """Build an app in the lane's group that passes every slice's event to `offer`, which neither blocks nor raises.

    Call it where the event loop runs. The receiver of an event calls its `ack()` once the slice is stored.
    """
    app = LaneApp(
        kafka.group(lane),
        broker=[f"kafka://{server.strip()}" for server in kafka.bootstrap_servers.split(",")],
        broker_client_id=client_id(lane),
        broker_credentials=_credentials(kafka),
        consumer_group_instance_id=kafka.instance(lane),
        broker_session_timeout=kafka.session_timeout_s,
        broker_heartbeat_interval=kafka.heartbeat_s,
        broker_rebalance_timeout=kafka.rebalance_timeout_s,
        broker_request_timeout=max(kafka.request_timeout_s, kafka.session_timeout_s),
        broker_max_poll_interval=kafka.max_poll_interval_s,
        broker_max_poll_records=max(1000, _POLL_SLICES * worker.slice_records),
        broker_commit_interval=kafka.commit_interval_s,
        consumer_auto_offset_reset="earliest",  # of partitions new to the group: see ragtide.stream.kafka.beginning
        consumer_max_fetch_size=worker.in_flight_bytes // FETCHES_IN_FLIGHT,
        consumer_metadata_max_age_ms=round(kafka.metadata_max_age_s * 1000),
        cython_optimizations=True,
        stream_buffer_maxsize=_QUEUE_SLICES,
        stream_wait_empty=False,  # a graceful stop drains before, a rebalance hands over
        agent_supervisor=CrashingSupervisor,
        table_standby_replicas=0,  # else Faust's own assignor, which no other client speaks
        topic_allow_declare=False,
        topic_disable_leader=True,
        store="memory://",
        web_enabled=False,
        autodiscover=False,
    )
    transport = SliceTransport(app.conf.broker_consumer, app)
    transport.Consumer = _consumer(kafka, worker)
    app.transport = transport

    named = [entry for entry in kafka.topics if not entry.startswith(PATTERN_MARK)]

    @app.agent(app.topic(*named, schema=SliceSchema()), name=f"ragtide-{lane}")  # type: ignore[untyped-decorator]  # see above
    async def slices(stream: Any) -> None:
        async for event in stream.noack().events():
            offer(event)

    return app


def _consumer(kafka: KafkaSettings, worker: WorkerSettings) -> type[SliceConsumer]:
    class LaneConsumer(SliceConsumer):
        pattern = kafka.pattern() if any(entry.startswith(PATTERN_MARK) for entry in kafka.topics) else None
        slice_records = worker.slice_records
        slice_bytes = worker.batch_bytes
        in_flight_bytes = worker.in_flight_bytes
        largest_batch = kafka.largest_batch

    return LaneConsumer


def _credentials(kafka: KafkaSettings) -> OAuthCredentials | SASLCredentials | SSLCredentials | None:
    """Credentials of all clients, in Faust's types."""
    options = client_options(kafka)
    context = options.get("ssl_context")
    if kafka.security_protocol == "PLAINTEXT":
        return None
    if kafka.security_protocol == "SSL":
        return SSLCredentials(context)
    if provider := options.get("sasl_oauth_token_provider"):
        return OAuthCredentials(oauth_cb=provider, ssl_context=context)
    return SASLCredentials(
        username=options["sasl_plain_username"],
        password=options["sasl_plain_password"],
        mechanism=options["sasl_mechanism"],
        ssl_context=context,
    )
