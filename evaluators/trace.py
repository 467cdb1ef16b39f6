"""The canonical trace: the fields that evaluators can read. No I/O.

`None` means *not recorded*. An empty value means *recorded as empty*. Decoding rejects unknown fields, so that none is
lost silently: `ragtide.stream.ingest.canonical_json` moves them to `attributes`. If an attribute of that name was sent,
the unknown field becomes `unknown.<name>`. An encoded trace has no fields at their defaults.

A `Trace` that is made in Python takes forms that messages have, too: lists for tuples, one text for `expected`, texts
and dicts for chunks, dicts for nested types. It raises TypeError for another form of a field that evaluators read.

Fields that become columns, keys or labels have limits, which decoding enforces; docs/kafka.md has the table. Ingest
cuts a longer `Name` and appends a hash. A longer `TraceId`, longer lists and numbers out of range are rejected.
"""

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from msgspec.structs import force_setattr

LONGEST_NAME = 256  # characters: e-mail addresses (254), ARNs and most URLs fit
LONGEST_ID = 1_024
MOST_NAMES = 64  # every score row of a trace repeats its segments

Name = Annotated[str, Meta(max_length=LONGEST_NAME)]
TraceId = Annotated[str, Meta(max_length=LONGEST_ID)]
Seconds = Annotated[float, Meta(ge=0)]
Count = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]


class Chunk(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One retrieved chunk. `score` is the raw similarity of the retriever."""

    id: Annotated[
        Name, Meta(description="Id of the chunk, equal wherever it is retrieved. Missing: a hash of the text.")
    ]
    text: Annotated[str | None, Meta(description="Text of the chunk.")] = None
    score: Annotated[float | None, Meta(description="Raw similarity of the retriever.")] = None
    rank: Annotated[int | None, Meta(description="Rank, from 1; missing: the order of the list.")] = None
    source: Annotated[str | None, Meta(description="Where the chunk is from: a document, a file, a URL.")] = None
    metadata: Annotated[Mapping[str, Any], Meta(description="Anything else about the chunk.")] = {}


class Labels(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Classification: expected and predicted labels, and the score of each label."""

    expected: Annotated[str | tuple[str, ...] | None, Meta(description="Expected label, or several.")] = None
    predicted: Annotated[str | tuple[str, ...] | None, Meta(description="Predicted label, or several.")] = None
    scores: Annotated[Mapping[str, float] | None, Meta(description="Score of each label.")] = None


class Artifact(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An artifact of an agent. `size` is in bytes, for artifacts without recorded text."""

    name: Annotated[str, Meta(description="Name of the artifact.")]
    media_type: Annotated[str | None, Meta(description="Media type, such as text/csv.")] = None
    text: Annotated[str | None, Meta(description="Content of the artifact.")] = None
    size: Annotated[int | None, Meta(description="Size in bytes, without a recorded text.")] = None


class Boxes(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Expected and predicted boxes, polygons or masks of an image: see `ragtide.evaluators.vision.regions`."""

    expected: Annotated[
        tuple[Mapping[str, Any], ...] | None, Meta(description="Expected boxes, polygons or masks.")
    ] = None
    predicted: Annotated[
        tuple[Mapping[str, Any], ...] | None, Meta(description="Predicted boxes, polygons or masks.")
    ] = None


class Model(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The model that was requested, and the one that answered."""

    requested: Annotated[Name | None, Meta(description="Model that the application asked for.")] = None
    served: Annotated[Name | None, Meta(description="Model that answered.")] = None
    provider: Annotated[Name | None, Meta(description="Provider, such as openai.")] = None
    host: Annotated[Name | None, Meta(description="Host that served the model.")] = None
    prompt_version: Annotated[Name | None, Meta(description="Version of the prompt.")] = None
    collection: Annotated[Name | None, Meta(description="Collection or index that was searched.")] = None


class Latency(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Durations in seconds."""

    total_s: Annotated[Seconds | None, Meta(description="Seconds from question to answer.")] = None
    retrieval_s: Annotated[Seconds | None, Meta(description="Seconds of the retrieval.")] = None
    generation_s: Annotated[Seconds | None, Meta(description="Seconds of the generation.")] = None
    first_token_s: Annotated[Seconds | None, Meta(description="Seconds to the first token.")] = None


class Tokens(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Tokens, summed over leaf LLM calls only."""

    input: Annotated[Count | None, Meta(description="Input tokens, cached ones included.")] = None
    output: Annotated[Count | None, Meta(description="Output tokens.")] = None
    cached: Annotated[Count | None, Meta(description="Input tokens from the cache of the provider.")] = None


class AppError(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An error of the application."""

    type: Annotated[Name, Meta(description="Kind of error, such as Timeout.")]
    message: Annotated[str | None, Meta(description="Message of the error.")] = None


class Technique(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One perturbation and its strength."""

    technique: Annotated[Name, Meta(description="Name of the perturbation.")]
    intensity: Annotated[Name | float | None, Meta(description="Strength of the perturbation.")] = None


class Relationship(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Links this trace to another trace or test case. Techniques are in the order applied."""

    type: Annotated[Name, Meta(description="Kind of link, such as perturbation_of.")]
    trace_id: Annotated[TraceId | None, Meta(description="Id of the other trace.")] = None
    test_case: Annotated[Name | None, Meta(description="Key of the test case.")] = None
    techniques: Annotated[
        tuple[Technique, ...], Meta(max_length=MOST_NAMES, description="Perturbations, in the order applied.")
    ] = ()


class TestCase(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The test case of a trace from a test suite."""

    __test__ = False  # not a pytest class

    suite: Annotated[Name | None, Meta(description="Name of the test suite.")] = None
    test: Annotated[Name | None, Meta(description="Name of the test.")] = None
    key: Annotated[Name | None, Meta(description="Key of the test case.")] = None


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Position of the record in Kafka, set on ingest."""

    topic: Annotated[str, Meta(description="Topic.")]
    partition: Annotated[int, Meta(description="Partition.")]
    offset: Annotated[int, Meta(description="Offset.")]


class _ConvertOnCall(msgspec.StructMeta):
    """Convert the fields of a trace that Python code makes. Decoding calls no class and needs none of this."""

    def __call__(cls, *values: Any, **fields: Any) -> Any:
        made = super().__call__(*values, **fields)
        if type(made.expected) not in _TUPLE or not _all(str, made.expected):
            force_setattr(made, "expected", _expected(made.expected))
        if type(made.contexts) not in _TUPLE or not _all(Chunk, made.contexts):
            force_setattr(made, "contexts", _contexts(made.contexts))
        for name, form in _FORMS.items():
            value = getattr(made, name)
            if value is not None and not isinstance(value, form):
                force_setattr(made, name, _converted(name, value, form))
        return made


class Trace(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, metaclass=_ConvertOnCall
):
    """One RAG request. It always has `trace_id`, `time`, `app` and one of `question`, `answer`."""

    trace_id: Annotated[TraceId, Meta(description="Identity: a second message with the same id replaces the first.")]
    time: Annotated[
        datetime, Meta(description="When the answer was given: RFC 3339 with an offset, or milliseconds since 1970.")
    ]
    app: Annotated[str, Meta(description="Application.")]
    environment: Annotated[str, Meta(description="Deployment, such as prod.")] = ""
    schema_version: Annotated[int, Meta(description="Form of the message.")] = 1
    session_id: Annotated[Name | None, Meta(description="Conversation.")] = None
    user_id: Annotated[Name | None, Meta(description="User; hashed on ingest if privacy.hash_users is set.")] = None
    span_id: Annotated[
        Name | None, Meta(description="Id of the request's root span in OpenTelemetry: 16 hex digits.")
    ] = None
    question: Annotated[str | None, Meta(description="Input of the user.")] = None
    answer: Annotated[str | None, Meta(description="Answer of the application.")] = None
    contexts: Annotated[tuple[Chunk, ...] | None, Meta(description="Retrieved chunks, in rank order.")] = None
    expected: Annotated[tuple[str, ...] | None, Meta(description="Reference answers.")] = None
    condition: Annotated[str | None, Meta(description="Expression of evaluator text_matching.")] = None
    constraints: Annotated[tuple[Any, ...] | None, Meta(description="Older form of condition.")] = None
    relevance: Annotated[Mapping[Name, float] | None, Meta(description="Relevance grade by chunk id.")] = None
    labels: Annotated[Labels | None, Meta(description="Labels of a classification.")] = None
    artifacts: Annotated[tuple[Artifact, ...] | None, Meta(description="Files and other results of an agent.")] = None
    boxes: Annotated[Boxes | None, Meta(description="Boxes, polygons or masks of an image.")] = None
    model: Annotated[Model | None, Meta(description="Model, its provider and the version of the prompt.")] = None
    latency: Annotated[Latency | None, Meta(description="Durations in seconds.")] = None
    tokens: Annotated[Tokens | None, Meta(description="Tokens, summed over leaf LLM calls only.")] = None
    cost_usd: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="Cost in US dollars. Missing: by the table ingest.prices."),
    ] = None
    error: Annotated[AppError | None, Meta(description="Error of the application.")] = None
    categories: Annotated[
        tuple[Name, ...], Meta(max_length=MOST_NAMES, description="Kinds of case, such as privacy.")
    ] = ()
    segments: Annotated[
        Mapping[Name, Name],
        Meta(max_length=MOST_NAMES, description="Tenant, language, channel: what problems can be cut by."),
    ] = {}
    task: Annotated[
        str | None,
        Meta(description="Task, such as question_answering; it selects the evaluators. Missing: ingest.tasks."),
    ] = None
    probe: Annotated[
        Name | None, Meta(description="Name of the probe that asked; its traces enter no live window.")
    ] = None
    relationships: Annotated[
        tuple[Relationship, ...], Meta(max_length=MOST_NAMES, description="Links to other traces and test cases.")
    ] = ()
    test_case: Annotated[TestCase | None, Meta(description="Test case that the trace comes from.")] = None
    source: Annotated[Source | None, Meta(description="Position in Kafka, set on ingest.")] = None
    attributes: Annotated[Mapping[str, Any], Meta(description="Anything else; unknown fields are kept here.")] = {}


_TUPLE = (tuple, type(None))
_FORMS: Mapping[str, type] = {
    **{"question": str, "answer": str, "condition": str, "relevance": Mapping},
    **{"labels": Labels, "boxes": Boxes, "model": Model, "latency": Latency, "tokens": Tokens, "error": AppError},
}


def chunk_id(text: str) -> str:
    """Return the id of a chunk that has none: a hash of its text, equal wherever it is retrieved."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def _all(form: type, items: tuple[object, ...] | None) -> bool:
    return not items or {form}.issuperset(map(type, items))


def _expected(value: Any) -> tuple[str, ...]:
    texts = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, (list, tuple)) else None
    if texts is None:
        raise TypeError(f"expected: found {_kind(value)}; a text or a tuple of texts wanted")
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"expected[{place}]: found {_kind(text)}; a text wanted")
    return texts


def _contexts(value: Any) -> tuple[Chunk, ...]:
    items = [value] if isinstance(value, (str, dict, Chunk)) else value
    if not isinstance(items, (list, tuple)):
        raise TypeError(f"contexts: found {_kind(value)}; a tuple of Chunk, or of texts, wanted")
    return tuple(_chunk(place, item) for place, item in enumerate(items))


def _chunk(place: int, item: Any) -> Chunk:
    if isinstance(item, str):
        return Chunk(chunk_id(item), item)
    if not isinstance(item, dict):
        if isinstance(item, Chunk):
            return item
        raise TypeError(f"contexts[{place}]: found {_kind(item)}; a Chunk, a text or a dict of its fields wanted")
    if item.get("id") is None:
        if not isinstance(item.get("text"), str):
            raise TypeError(f"contexts[{place}]: one of id and text is required")
        item = {**item, "id": chunk_id(item["text"])}
    chunk: Chunk = _converted(f"contexts[{place}]", item, Chunk)
    return chunk


def _converted(name: str, value: Any, form: type) -> Any:
    """Convert a dict to the type."""
    if not isinstance(value, dict) or not issubclass(form, msgspec.Struct):
        wanted = f"a {form.__name__}" if issubclass(form, msgspec.Struct) else "a text" if form is str else "an object"
        raise TypeError(f"{name}: found {_kind(value)}; {wanted} wanted")
    try:
        return msgspec.convert({key: one for key, one in value.items() if one is not None}, form)
    except msgspec.ValidationError as error:
        raise TypeError(f"{name}: {error}; the fields are {', '.join(form.__struct_fields__)}") from None


def _kind(value: object) -> str:
    return f"a value of type {type(value).__name__}"
