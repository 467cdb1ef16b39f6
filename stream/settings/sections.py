"""Settings of the stream: Kafka, the worker, ingest, telemetry."""

from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, SecretStr, field_validator, model_validator

from ragtide.stream.settings.topics import TopicPattern, fault

CANONICAL = "canonical_json"
Rate = Annotated[float, Field(ge=0, le=1)]
_Name = Annotated[str, Field(pattern="^[A-Za-z]+$")]  # of a SASL extension: RFC 7628, 3.1
_Printable = Annotated[str, Field(pattern="^[ -~]+$")]
_OF_USERS = ("sasl_username", "sasl_password")
_OF_TOKENS = (
    "sasl_oauthbearer_token_endpoint_url",
    "sasl_oauthbearer_client_id",
    "sasl_oauthbearer_client_secret",
)
MEMORY_PER_BYTE_IN_FLIGHT = 10  # records, their rows, fetches; measured: 5, with a backlog
FETCHES_IN_FLIGHT = 4  # a fetch is in memory several times over before its records are in flight
_BATCH_RECORDS = 4  # of the largest size in a compressed batch
_ENVELOPE_BYTES = 64 << 10
_TOPIC_OR_NONE = r"^[A-Za-z0-9._-]{0,249}$"
_OF_TLS = ("ssl_ca_file", "ssl_cert_file", "ssl_key_file")


class KafkaSettings(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """The brokers, the topics and how a worker belongs to its group."""

    bootstrap_servers: str = Field(default="127.0.0.1:9092", description="Brokers as comma-separated host:port.")
    topics: tuple[str, ...] = Field(
        default=("rag.traces",),
        min_length=1,
        description="Topics of traces: names, or ^ followed by an RE2 regular expression that matches the whole name.",
    )
    decoders: dict[str, str] = Field(
        default={},
        description=f"Decoder by entry of `topics`, written exactly as there. Entries without one use {CANONICAL}.",
    )
    dead_letter_topic: str = Field(
        default="rag.traces.dead", description="Topic that receives records that cannot be processed."
    )
    spans_topic: str = Field(
        default="rag.spans",
        description="Topic in which stage assemble keeps OpenTelemetry spans, keyed by trace. Only it reads them.",
    )
    labels_topic: str = Field(
        default="rag.labels",
        description="Topic of labels, which arrive after their traces: reference answers, grades, classes, verdicts. "
        "If empty, no labels are read.",
    )
    jobs_topic: str = Field(
        default="rag.jobs",
        description="Topic that elects the leader: the jobs process that owns its one partition runs the jobs.",
    )
    problems_topic: str = Field(
        default="",
        pattern=_TOPIC_OR_NONE,
        description="Compacted topic of problems, e.g. rag.problems: the latest state of each, by its id. If empty, "
        "none is written.",
    )
    insights_topic: str = Field(
        default="",
        pattern=_TOPIC_OR_NONE,
        description="Compacted topic of insights, e.g. rag.insights: the latest state of each, by its id. If empty, "
        "none is written.",
    )
    group_prefix: str = Field(
        default="ragtide",
        description="Prefix of the consumer groups: <prefix>-<lane>, <prefix>-labels and <prefix>-jobs.",
    )
    group_instance_id: str = Field(
        default="",
        pattern="^[A-Za-z0-9._-]{0,200}$",
        description="Static membership of lanes: a name that is unique to this process and stays the same after a "
        "restart. A process back within session_timeout_s keeps its partitions without a rebalance. If empty, "
        "membership is dynamic.",
    )
    start_at: Literal["earliest", "latest"] = Field(
        default="earliest",
        description="Offset at which a new consumer group starts. Partitions and topics added later are always read "
        "from the beginning.",
    )
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        default="PLAINTEXT",
        description="Protocol of connections to the brokers. SSL adds TLS; SASL adds authentication by user or token.",
    )
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] = Field(
        default="PLAIN", description="SASL mechanism. Used if security_protocol starts with SASL."
    )
    sasl_username: str = Field(default="", description="User name for PLAIN and SCRAM.")
    sasl_password: SecretStr = Field(default=SecretStr(""), description="Password for PLAIN and SCRAM.")
    sasl_oauthbearer_token_endpoint_url: str = Field(
        default="",
        description="Token endpoint for OAUTHBEARER, https:// or http://. Tokens are requested with the client "
        "credentials grant.",
    )
    sasl_oauthbearer_client_id: str = Field(default="", description="Client ID for the token endpoint.")
    sasl_oauthbearer_client_secret: SecretStr = Field(
        default=SecretStr(""), description="Client secret for the token endpoint."
    )
    sasl_oauthbearer_scope: str = Field(default="", description="Scopes to request, separated by spaces.")
    sasl_oauthbearer_header_urlencode: bool = Field(
        default=False, description="URL-encode client ID and secret in the Authorization header, as RFC 6749 specifies."
    )
    sasl_oauthbearer_extensions: dict[_Name, _Printable] = Field(
        default={},
        description="SASL extensions to send with the token, e.g. logicalCluster. In an environment variable, write "
        "them as JSON.",
    )
    sasl_oauthbearer_ca_file: str = Field(
        default="", description="File of CA certificates (PEM) for the token endpoint. If empty, the system's are used."
    )
    ssl_ca_file: str = Field(
        default="", description="File of CA certificates (PEM) for the brokers. If empty, the system's are used."
    )
    ssl_cert_file: str = Field(
        default="", description="File of the client certificate (PEM), followed by the chain up to its CA."
    )
    ssl_key_file: str = Field(
        default="", description="File of the client's private key (PEM). If empty, the key is read from ssl_cert_file."
    )
    ssl_key_password: SecretStr = Field(
        default=SecretStr(""), description="Password of the private key, if it is encrypted."
    )
    ssl_check_hostname: bool = Field(
        default=True, description="Refuse a broker whose certificate does not match the host name it is reached by."
    )
    session_timeout_s: float = Field(
        default=15.0, gt=0, description="Seconds without a heartbeat after which a worker loses its partitions."
    )
    heartbeat_s: float = Field(
        default=3.0,
        gt=0,
        description="Seconds between heartbeats of a worker to its group. At most half of session_timeout_s.",
    )
    rebalance_timeout_s: float = Field(
        default=60.0, gt=0, description="Maximum seconds that a rebalance waits for its members."
    )
    max_poll_interval_s: float = Field(
        default=1000.0, gt=0, description="Maximum seconds between two polls before the group removes the worker."
    )
    request_timeout_s: float = Field(default=40.0, gt=0, description="Timeout of a request to a broker, in seconds.")
    commit_interval_s: float = Field(default=1.0, gt=0, description="Seconds between commits of acknowledged offsets.")
    metadata_max_age_s: float = Field(
        default=10.0,
        gt=0,
        description="Seconds between checks for new partitions and topics, by lanes and the labels reader.",
    )
    max_record_bytes: int = Field(
        default=8 << 20,
        ge=1024,
        description="Largest record that is fetched or sent, in bytes. Set max.message.bytes of the topics at least "
        "as high.",
    )
    max_batch_bytes: int | None = Field(
        default=None,
        ge=1024,
        description="Largest record batch in memory, in bytes, counting 128 per header. About the limit of a poll. "
        "A larger batch becomes one dead letter (batch_too_large). If unset, "
        f"{_BATCH_RECORDS} x max_record_bytes.",
    )

    @field_validator("bootstrap_servers")
    @classmethod
    def _check_servers(cls, servers: str) -> str:
        if not all(server.strip() for server in servers.split(",")):
            raise ValueError("one of the servers is empty; give host:port,host:port")
        return servers

    @field_validator("topics")
    @classmethod
    def _check_topics(cls, entries: tuple[str, ...]) -> tuple[str, ...]:
        if faults := [found for entry in entries if (found := fault(entry))]:
            raise ValueError("; ".join(faults))
        return entries

    @model_validator(mode="after")
    def _check_decoders(self) -> Self:
        if idle := [entry for entry in self.decoders if entry not in self.topics]:
            raise ValueError(f"kafka.decoders names {', '.join(idle)}, which kafka.topics does not")
        return self

    @field_validator("sasl_oauthbearer_token_endpoint_url")
    @classmethod
    def _plain_address(cls, url: str) -> str:
        try:
            parts = urlsplit(url)
            whole = parts.scheme in ("https", "http") and bool(parts.hostname) and parts.port != 0
        except ValueError:  # its message would quote the address
            whole = False
        if url and not whole:
            raise ValueError("give https://host/path")
        if "@" in parts.netloc:
            raise ValueError("leave user and password out; they are kafka.sasl_oauthbearer_client_id and _secret")
        return url

    @model_validator(mode="after")
    def _check_security(self) -> Self:
        """Refuse settings that name a user or a CA but would connect without."""
        sasl = self.security_protocol.startswith("SASL")
        needed = (_OF_TOKENS if self.sasl_mechanism == "OAUTHBEARER" else _OF_USERS) if sasl else ()
        used = (*needed, *(_OF_TLS if self.security_protocol.endswith("SSL") else ()))
        chosen = f"kafka.security_protocol = {self.security_protocol}"
        if sasl:
            chosen += f" and kafka.sasl_mechanism = {self.sasl_mechanism}"
        if missing := [f"kafka.{name}" for name in needed if not getattr(self, name)]:
            raise ValueError(f"{chosen} need {', '.join(missing)}")
        every = (*_OF_USERS, *_OF_TOKENS, *_OF_TLS)
        if idle := [f"kafka.{name}" for name in every if name not in used and getattr(self, name)]:
            raise ValueError(f"{', '.join(idle)} would not be used with {chosen}; set what fits, or leave it out")
        if self.ssl_key_file and not self.ssl_cert_file:
            raise ValueError("kafka.ssl_key_file needs kafka.ssl_cert_file")
        return self

    @model_validator(mode="after")
    def _check_batch_size(self) -> Self:
        if self.largest_batch < self.max_record_bytes:
            raise ValueError(
                f"kafka.max_batch_bytes = {self.max_batch_bytes} is less than kafka.max_record_bytes = "
                f"{self.max_record_bytes}; raise the one or lower the other"
            )
        return self

    @property
    def largest_batch(self) -> int:
        """Maximum bytes that a batch of records may expand to."""
        return self.max_batch_bytes if self.max_batch_bytes is not None else _BATCH_RECORDS * self.max_record_bytes

    def entry_of(self, topic: str) -> str | None:
        """The entry of `topics` that `topic` belongs to: its own name before a pattern; None: it is not read."""
        if topic in self.topics:
            return topic
        return next((entry for entry in self.topics if self.pattern(entry).match(topic)), None)

    def pattern(self, *entries: str) -> TopicPattern:
        """Pattern of the topics of these entries (default: all); patterns never match topics that ragtide writes."""
        own = (self.dead_letter_topic, self.spans_topic, self.labels_topic, self.jobs_topic, *self.state_topics)
        return TopicPattern(entries or self.topics, own)

    @model_validator(mode="after")
    def _check_state_topics(self) -> Self:
        others = [*self.topics, self.dead_letter_topic, self.spans_topic, self.labels_topic, self.jobs_topic]
        others += self.state_topics
        if taken := sorted({topic for topic in self.state_topics if others.count(topic) > 1}):
            raise ValueError(f"{', '.join(taken)}: kafka.problems_topic and insights_topic need topics of their own")
        return self

    @property
    def state_topics(self) -> tuple[str, ...]:
        """The compacted topics of problems and insights that are written."""
        return tuple(filter(None, (self.problems_topic, self.insights_topic)))

    @property
    def largest_request(self) -> int:
        """Bytes of the largest record with the headers that ragtide adds."""
        return self.max_record_bytes + _ENVELOPE_BYTES

    def instance(self, lane: str) -> str | None:
        """Static member name of this process in the lane's group; None: dynamic membership."""
        return f"{self.group_instance_id}-{lane}" if self.group_instance_id else None

    def group(self, member: str) -> str:
        """The consumer group of a lane, of the readers of labels ("labels"), or of the jobs ("jobs")."""
        return f"{self.group_prefix}-{member}"


class WorkerSettings(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """Batch sizes, memory limits and stop conditions of a worker."""

    slice_records: int = Field(
        default=500,
        ge=1,
        le=100_000,
        description="Maximum number of records of one partition that are processed at a time.",
    )
    batch_records: int = Field(
        default=256, ge=1, description="Maximum number of traces in a micro-batch, which evaluators process together."
    )
    batch_bytes: int = Field(default=4 << 20, ge=1024, description="Maximum bytes of records in a micro-batch.")
    block_rows: int = Field(
        default=10_000, ge=1, description="Maximum number of rows in a block written to ClickHouse."
    )
    block_wait_ms: int = Field(
        default=500, ge=0, description="Maximum milliseconds that a row waits for its block to fill."
    )
    in_flight_bytes: int = Field(
        default=16 << 20,  # more lets records grow cold: at 64 MiB evaluating 1 KB traces took a quarter longer
        ge=1 << 20,
        description="Bytes of records not yet stored at which fetching pauses. "
        f"One fetch brings up to 1/{FETCHES_IN_FLIGHT} of it. Plan up to {MEMORY_PER_BYTE_IN_FLIGHT} times as much "
        "memory for records, their rows and fetched data (every fast evaluator, during a backlog).",
    )
    drain_s: float = Field(
        default=30.0,
        ge=0,
        description="Maximum seconds that a stopping worker spends on records it has begun to process.",
    )
    heartbeat_s: float = Field(
        default=5.0, gt=0, description="Seconds between progress rows. They are written even if the worker is idle."
    )
    live_after_s: float = Field(
        default=300.0,
        gt=0,
        description="Seconds without a commit, while records wait, after which /live fails. The lane judge may take "
        "trace_timeout_s longer.",
    )
    dead_letter_ratio: Rate = Field(
        default=0.5,
        description="Read a topic no further if more than this share of its latest 1,000 records are dead letters. A "
        "worker that reads no other topic stops.",
    )
    dead_letter_run: int = Field(
        default=500,
        ge=1,
        description="Read a topic no further after this many consecutive dead letters. Keep it at or below "
        "slice_records: otherwise every start dead-letters more slices before it stops.",
    )


class Price(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """What a model costs, in USD per million tokens."""

    input_usd: float = Field(default=..., ge=0, description="Price of input tokens.")
    output_usd: float = Field(default=..., ge=0, description="Price of output tokens.")
    cached_usd: float | None = Field(
        default=None, ge=0, description="Price of cached input tokens. If unset, input_usd applies."
    )


class IngestSettings(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """Which records are accepted, and defaults for what they leave out."""

    max_bytes: int = Field(
        default=8 << 20, ge=1024, description="Largest record, in bytes. A larger one becomes a dead letter (too_big)."
    )
    max_depth: int = Field(
        default=32,
        ge=4,
        le=200,
        description="Deepest nesting of JSON, in levels. A deeper record becomes a dead letter (too_deep).",
    )
    max_name_characters: int = Field(
        default=128,
        ge=16,
        le=256,
        description="Maximum characters of an app, environment or task. A longer name makes a dead letter "
        "(name_too_long). docs/kafka.md lists the limits of other names.",
    )
    max_future_s: float = Field(
        default=600.0,
        ge=0,
        description="Maximum seconds that event time may be ahead of the broker's. Beyond that, the record becomes a "
        "dead letter (in_the_future).",
    )
    max_age_s: float = Field(
        default=7 * 86400.0,
        gt=0,
        description="Maximum seconds that event time may be behind the broker's. Beyond that, the record becomes a "
        "dead letter (too_old).",
    )
    default_task: str = Field(
        default="question_answering", description="Task of traces that name none, unless `tasks` has one for their app."
    )
    prices: dict[str, Price] = Field(
        default={}, description="Prices in USD per million tokens, by model. Used for traces without a cost."
    )
    tasks: dict[str, str] = Field(default={}, description="Task by app, for traces that name none: app = task.")


class TelemetrySettings(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """Where /metrics, /live and /ready are served, and how logs look."""

    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(
        default=6780,
        ge=0,
        le=65535,
        description="Port of the first lane. Each further lane uses the next port. 0 picks any free port.",
    )
    jobs_port: int = Field(default=6790, ge=0, le=65535, description="Port of the jobs process. 0 picks any free port.")
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        default="INFO", description="Lowest level of log records that are written."
    )
    log_format: Literal["auto", "json", "text"] = Field(
        default="auto", description="Format of log records. auto writes JSON, except to a terminal."
    )
