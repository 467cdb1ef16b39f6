"""Settings that belong to the stream itself: Kafka, the worker, what is let in, sampling, telemetry."""

from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, SecretStr, field_validator, model_validator

from evaluators.spec import Lane
from stream.configuration.topics import TopicPattern, fault

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
MEMORY_PER_BYTE_IN_FLIGHT = 10  # records, rows made of them, what is fetched; measured: 5, as a backlog is worked off
FETCHES_IN_FLIGHT = 4  # a fetch is in memory several times over before its records are in flight
_ENVELOPE_BYTES = 64 << 10
_OF_TLS = ("ssl_ca_file", "ssl_cert_file", "ssl_key_file")


class KafkaSettings(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """The brokers, the topics and how a worker belongs to its group."""

    bootstrap_servers: str = Field(default="127.0.0.1:9092", description="Brokers, comma-separated host:port.")
    topics: tuple[str, ...] = Field(
        default=("rag.traces",),
        min_length=1,
        description="Topics of traces: names, or ^ and a regular expression (RE2) that whole names match.",
    )
    decoders: dict[str, str] = Field(
        default={},
        description=f"Decoder by entry of `topics`, as it stands there; {CANONICAL} for those that are left out.",
    )
    dead_letter_topic: str = Field(default="rag.traces.dead", description="Where records go that cannot be used.")
    labels_topic: str = Field(
        default="rag.labels",
        description="Late facts about traces: reference answers, grades, classes, verdicts; empty: none are read.",
    )
    jobs_topic: str = Field(default="rag.jobs", description="One partition; who owns it leads the jobs.")
    group_prefix: str = Field(
        default="ragwatch", description="Consumer groups are <prefix>-<lane>, <prefix>-labels and <prefix>-jobs."
    )
    group_instance_id: str = Field(
        default="",
        pattern="^[A-Za-z0-9._-]{0,200}$",
        description="Static membership of lanes: a name that this process alone has and keeps when it is started "
        "again; back within session_timeout_s, it has its partitions without a rebalance. Empty: none.",
    )
    start_at: Literal["earliest", "latest"] = Field(default="earliest", description="Where a new group begins.")
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        default="PLAINTEXT", description="How brokers are talked to: TLS with SSL, a user or token with SASL."
    )
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] = Field(
        default="PLAIN", description="How a user proves who it is, where SASL is on."
    )
    sasl_username: str = Field(default="", description="User name for PLAIN and SCRAM.")
    sasl_password: SecretStr = Field(default=SecretStr(""), description="Its password.")
    sasl_oauthbearer_token_endpoint_url: str = Field(
        default="", description="Where OAUTHBEARER gets its tokens by client credentials, https:// or http://."
    )
    sasl_oauthbearer_client_id: str = Field(default="", description="Client ID for the token endpoint.")
    sasl_oauthbearer_client_secret: SecretStr = Field(default=SecretStr(""), description="Its secret.")
    sasl_oauthbearer_scope: str = Field(default="", description="Scopes asked for, separated by spaces.")
    sasl_oauthbearer_header_urlencode: bool = Field(
        default=False, description="URL-encode ID and secret in the Authorization header, as RFC 6749 has it."
    )
    sasl_oauthbearer_extensions: dict[_Name, _Printable] = Field(
        default={}, description="SASL extensions that go with a token, e.g. logicalCluster; JSON in a variable."
    )
    sasl_oauthbearer_ca_file: str = Field(
        default="", description="CA certificates (PEM) for the token endpoint; empty: the system's."
    )
    ssl_ca_file: str = Field(default="", description="CA certificates (PEM) for the brokers; empty: the system's.")
    ssl_cert_file: str = Field(default="", description="Client certificate (PEM), then the chain up to its CA.")
    ssl_key_file: str = Field(default="", description="Its key (PEM); empty: in the certificate's file.")
    ssl_key_password: SecretStr = Field(default=SecretStr(""), description="Password of the key, where it has one.")
    ssl_check_hostname: bool = Field(
        default=True, description="Refuse a broker whose certificate is not for the name it is reached by."
    )
    session_timeout_s: float = Field(
        default=15.0, gt=0, description="A worker silent for so long loses its partitions."
    )
    heartbeat_s: float = Field(default=3.0, gt=0, description="How often a worker tells the group that it lives.")
    rebalance_timeout_s: float = Field(default=60.0, gt=0, description="How long a rebalance waits for its members.")
    max_poll_interval_s: float = Field(
        default=1000.0, gt=0, description="Longest between two polls before the group gives up."
    )
    request_timeout_s: float = Field(default=40.0, gt=0, description="Longest a request to a broker may take.")
    commit_interval_s: float = Field(default=1.0, gt=0, description="How often acknowledged offsets are committed.")
    metadata_max_age_s: float = Field(
        default=300.0, gt=0, description="How often topics are looked at for partitions that were added."
    )
    max_record_bytes: int = Field(
        default=8 << 20,
        ge=1024,
        description="Largest record fetched or sent; the topics' max.message.bytes should allow it.",
    )

    @field_validator("bootstrap_servers")
    @classmethod
    def _every_server_named(cls, servers: str) -> str:
        if not all(server.strip() for server in servers.split(",")):
            raise ValueError("one of the servers is empty; give host:port,host:port")
        return servers

    @field_validator("topics")
    @classmethod
    def _every_topic_named(cls, entries: tuple[str, ...]) -> tuple[str, ...]:
        if faults := [found for entry in entries if (found := fault(entry))]:
            raise ValueError("; ".join(faults))
        return entries

    @model_validator(mode="after")
    def _decoders_of_topics(self) -> Self:
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
    def _secured_as_asked(self) -> Self:
        """Nobody who names a user or a CA connects without one by mistake."""
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

    def entry_of(self, topic: str) -> str | None:
        """The entry of `topics` that `topic` is read by: its own name before a pattern; None: it is not read."""
        if topic in self.topics:
            return topic
        return next((entry for entry in self.topics if self.pattern(entry).match(topic)), None)

    def pattern(self, *entries: str) -> TopicPattern:
        """Matches the topics that these entries stand for (none given: all); never by pattern what ragwatch writes."""
        own = (self.dead_letter_topic, self.labels_topic, self.jobs_topic)
        return TopicPattern(entries or self.topics, own)

    @property
    def largest_request(self) -> int:
        """Bytes: a record of the largest size, and the headers that ragwatch adds to it."""
        return self.max_record_bytes + _ENVELOPE_BYTES

    def instance(self, lane: str) -> str | None:
        """What this process is called for good in the lane's group; None: it is another member after every start."""
        return f"{self.group_instance_id}-{lane}" if self.group_instance_id else None

    def group(self, member: str) -> str:
        """The consumer group of a lane, of who reads labels ("labels"), or of the jobs ("jobs")."""
        return f"{self.group_prefix}-{member}"


class WorkerSettings(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """How a worker batches, how much it holds, when it gives up."""

    slice_records: int = Field(
        default=500, ge=1, le=100_000, description="Most records of a partition handled in one go."
    )
    batch_records: int = Field(
        default=256, ge=1, description="Most traces of a micro-batch that evaluators see at once."
    )
    batch_bytes: int = Field(default=4 << 20, ge=1024, description="Most bytes of records in a micro-batch.")
    block_rows: int = Field(default=10_000, ge=1, description="Most rows of a block written to the sink.")
    block_wait_ms: int = Field(default=500, ge=0, description="Longest a row waits for its block to fill.")
    in_flight_bytes: int = Field(
        default=16 << 20,  # more lets records grow cold: at 64 MiB evaluating 1 KB traces took a quarter longer
        ge=1 << 20,
        description="Bytes of records waiting for the sink before fetching stops; a fetch brings up to "
        f"1/{FETCHES_IN_FLIGHT} of it. With the rows made of them and what is fetched ahead they take up to "
        f"{MEMORY_PER_BYTE_IN_FLIGHT} times as much memory (every fast evaluator, while a backlog is worked off).",
    )
    drain_s: float = Field(default=30.0, ge=0, description="Longest a stopping worker works off what it holds.")
    heartbeat_s: float = Field(default=5.0, gt=0, description="How often progress is written, idle or not.")
    live_after_s: float = Field(
        default=300.0,
        gt=0,
        description="/live fails where records wait and nothing was committed for so long; a slice of a slow lane "
        "takes minutes.",
    )
    dead_letter_ratio: Rate = Field(
        default=0.5, description="Stop where more of the latest 1,000 records are dead letters."
    )
    dead_letter_run: int = Field(
        default=500,
        ge=1,
        description="Stop after so many dead letters in a row; no more than slice_records, or slices before the last "
        "are set aside at every start.",
    )


class Price(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """What a model costs, in USD per million tokens."""

    input_usd: float = Field(default=..., ge=0, description="Tokens read.")
    output_usd: float = Field(default=..., ge=0, description="Tokens written.")
    cached_usd: float | None = Field(default=None, ge=0, description="Tokens read from a cache; unset: as the others.")


class IngestSettings(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """Which records are let in, and what is assumed of them."""

    max_bytes: int = Field(default=8 << 20, ge=1024, description="A larger record is a dead letter (too_big).")
    max_depth: int = Field(default=32, ge=4, le=200, description="Deeper nested JSON is a dead letter (too_deep).")
    max_future_s: float = Field(
        default=600.0, ge=0, description="Event time ahead of the broker's: dead letter in_the_future."
    )
    max_age_s: float = Field(
        default=7 * 86400.0, gt=0, description="Event time before the broker's: dead letter too_old."
    )
    default_task: str = Field(default="question_answering", description="Task of traces that name none.")
    prices: dict[str, Price] = Field(
        default={}, description="USD per million tokens by model, for traces that do not tell their cost."
    )
    tasks: dict[str, str] = Field(default={}, description="Task of an app's traces that name none: app = task.")


class SamplingSettings(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """Which share of the traces is evaluated; the choice depends on the trace id alone."""

    lanes: dict[Lane, Rate] = Field(default={}, description="Share per lane, e.g. judge = 0.05; the others take all.")
    evaluators: dict[str, Rate] = Field(default={}, description="Share per evaluator; goes before its lane's.")


class TelemetrySettings(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """Where /metrics, /live and /ready are served, and how logs look."""

    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(
        default=6780,
        ge=0,
        le=65535,
        description="Port of the first lane, one more for each further one; 0: any free port.",
    )
    jobs_port: int = Field(default=6790, ge=0, le=65535, description="Port of the jobs process; 0: any free port.")
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        default="INFO", description="Least severe log record that is written."
    )
    log_format: Literal["auto", "json", "text"] = Field(
        default="auto", description="How log records look; auto: JSON where not a terminal."
    )
