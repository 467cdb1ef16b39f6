"""The canonical trace: the fields that evaluators can read. No I/O.

`None` means *not recorded*. An empty value means *recorded as empty*. Decoding rejects unknown fields, so that none is
lost silently: `ragtide.stream.ingest.canonical_json` moves them to `attributes`. If an attribute of that name was sent,
the unknown field becomes `unknown.<name>`. An encoded trace has no fields at their defaults.

Fields that become columns, keys or labels have limits, which decoding enforces; docs/kafka.md has the table. Ingest
cuts a longer `Name` and appends a hash. A longer `TraceId`, longer lists and numbers out of range are rejected.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

LONGEST_NAME = 256  # characters: e-mail addresses (254), ARNs and most URLs fit
LONGEST_ID = 1_024
MOST_NAMES = 64  # every score row of a trace repeats its segments

Name = Annotated[str, Meta(max_length=LONGEST_NAME)]
TraceId = Annotated[str, Meta(max_length=LONGEST_ID)]
Seconds = Annotated[float, Meta(ge=0)]
Count = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]


class Chunk(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One retrieved chunk. `score` is the raw similarity or distance of the retriever."""

    id: Name
    text: str | None = None
    score: float | None = None
    rank: int | None = None
    source: str | None = None
    metadata: Mapping[str, Any] = {}


class Labels(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Classification: expected and predicted labels, and the score of each label."""

    expected: str | tuple[str, ...] | None = None
    predicted: str | tuple[str, ...] | None = None
    scores: Mapping[str, float] | None = None


class Artifact(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An artifact of an agent. `size` is in bytes, for artifacts without recorded text."""

    name: str
    media_type: str | None = None
    text: str | None = None
    size: int | None = None


class Boxes(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Expected and predicted boxes, polygons or masks of an image: see `ragtide.evaluators.vision.regions`."""

    expected: tuple[Mapping[str, Any], ...] | None = None
    predicted: tuple[Mapping[str, Any], ...] | None = None


class Model(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The model that was requested, and the one that answered."""

    requested: Name | None = None
    served: Name | None = None
    provider: Name | None = None
    host: Name | None = None
    prompt_version: Name | None = None
    collection: Name | None = None


class Latency(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Durations in seconds."""

    total_s: Seconds | None = None
    retrieval_s: Seconds | None = None
    generation_s: Seconds | None = None
    first_token_s: Seconds | None = None


class Tokens(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Tokens, summed over leaf LLM calls only."""

    input: Count | None = None
    output: Count | None = None
    cached: Count | None = None


class AppError(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An error of the application."""

    type: Name
    message: str | None = None


class Technique(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One perturbation and its strength."""

    technique: Name
    intensity: Name | float | None = None


class Relationship(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Links this trace to another trace or test case. Techniques are in the order applied."""

    type: Name
    trace_id: TraceId | None = None
    test_case: Name | None = None
    techniques: Annotated[tuple[Technique, ...], Meta(max_length=MOST_NAMES)] = ()


class TestCase(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The test case of a trace from a test suite."""

    __test__ = False  # not a pytest class

    suite: Name | None = None
    test: Name | None = None
    key: Name | None = None


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Position of the record in Kafka, set on ingest."""

    topic: str
    partition: int
    offset: int


class Trace(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One RAG request. It always has `trace_id`, `time`, `app` and one of `question`, `answer`."""

    trace_id: TraceId
    time: datetime  # aware, UTC: when the answer was given
    app: str
    environment: str = ""
    schema_version: int = 1
    session_id: Name | None = None
    user_id: Name | None = None
    question: str | None = None
    answer: str | None = None
    contexts: tuple[Chunk, ...] | None = None
    expected: tuple[str, ...] | None = None
    condition: str | None = None
    constraints: tuple[Any, ...] | None = None
    relevance: Mapping[Name, float] | None = None
    labels: Labels | None = None
    artifacts: tuple[Artifact, ...] | None = None
    boxes: Boxes | None = None
    model: Model | None = None
    latency: Latency | None = None
    tokens: Tokens | None = None
    cost_usd: Annotated[float, Meta(ge=0)] | None = None
    error: AppError | None = None
    categories: Annotated[tuple[Name, ...], Meta(max_length=MOST_NAMES)] = ()
    segments: Annotated[Mapping[Name, Name], Meta(max_length=MOST_NAMES)] = {}
    task: str | None = None
    probe: Name | None = None
    relationships: Annotated[tuple[Relationship, ...], Meta(max_length=MOST_NAMES)] = ()
    test_case: TestCase | None = None
    source: Source | None = None
    attributes: Mapping[str, Any] = {}
