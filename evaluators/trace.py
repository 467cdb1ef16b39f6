"""The canonical trace: what every evaluator may look at. No I/O.

`None` means *not recorded*; an empty value means *recorded, and empty*. Unknown fields are refused where bytes become
a trace, so that none is dropped in silence: `stream.ingest.canonical` moves them to `attributes`;
where an attribute of that name was sent, it stays, and the unknown field is `unknown.<name>`. Encoded, a trace is what
was recorded: fields at their defaults are left out.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec


class Chunk(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One retrieved chunk. `score` is raw: a similarity or a distance, as the retriever gave it."""

    id: str
    text: str | None = None
    score: float | None = None
    rank: int | None = None
    source: str | None = None
    metadata: Mapping[str, Any] = {}


class Labels(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Classification: expected and predicted label(s), and the score of each label."""

    expected: str | tuple[str, ...] | None = None
    predicted: str | tuple[str, ...] | None = None
    scores: Mapping[str, float] | None = None


class Artifact(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Something an agent left behind; `size` in bytes where the text itself was not recorded."""

    name: str
    media_type: str | None = None
    text: str | None = None
    size: int | None = None


class Boxes(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Expected and predicted boxes, polygons or masks of a multimodal trace: see `evaluators.vision.regions`."""

    expected: tuple[Mapping[str, Any], ...] | None = None
    predicted: tuple[Mapping[str, Any], ...] | None = None


class Model(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Which model was asked for, and which one answered."""

    requested: str | None = None
    served: str | None = None
    provider: str | None = None
    host: str | None = None
    prompt_version: str | None = None
    collection: str | None = None


class Latency(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Seconds."""

    total_s: float | None = None
    retrieval_s: float | None = None
    generation_s: float | None = None
    first_token_s: float | None = None


class Tokens(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Summed over leaf LLM calls only."""

    input: int | None = None
    output: int | None = None
    cached: int | None = None


class AppError(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The application failed."""

    type: str
    message: str | None = None


class Technique(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One perturbation and how strong it was."""

    technique: str
    intensity: str | float | None = None


class Relationship(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Ties this trace to another trace or test case; several techniques stand in the order applied."""

    type: str
    trace_id: str | None = None
    test_case: str | None = None
    techniques: tuple[Technique, ...] = ()


class TestCase(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Where a trace comes from a test suite."""

    __test__ = False  # not a pytest class

    suite: str | None = None
    test: str | None = None
    key: str | None = None


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Where the record lay; filled in on ingest."""

    topic: str
    partition: int
    offset: int


class Trace(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One RAG request. Only `trace_id`, `time`, `app` and one of `question`, `answer` are always there."""

    trace_id: str
    time: datetime  # aware, UTC: when the answer was given
    app: str
    environment: str = ""
    schema_version: int = 1
    session_id: str | None = None
    user_id: str | None = None
    question: str | None = None
    answer: str | None = None
    contexts: tuple[Chunk, ...] | None = None
    expected: tuple[str, ...] | None = None
    condition: str | None = None
    constraints: tuple[Any, ...] | None = None
    relevance: Mapping[str, float] | None = None
    labels: Labels | None = None
    artifacts: tuple[Artifact, ...] | None = None
    boxes: Boxes | None = None
    model: Model | None = None
    latency: Latency | None = None
    tokens: Tokens | None = None
    cost_usd: float | None = None
    error: AppError | None = None
    categories: tuple[str, ...] = ()
    segments: Mapping[str, str] = {}
    task: str | None = None
    probe: str | None = None
    relationships: tuple[Relationship, ...] = ()
    test_case: TestCase | None = None
    source: Source | None = None
    attributes: Mapping[str, Any] = {}
