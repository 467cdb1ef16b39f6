"""Read retrieved documents from spans, each on its own: a bad one costs that document."""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ragtide.stream.ingest.otel.names import REDACTED
from ragtide.stream.ingest.otel.reading import flattened, number_of
from ragtide.stream.ingest.otel.source import Form, Source
from ragtide.stream.ingest.otel.spans import Span, Value
from ragtide.stream.ingest.otel.unwrap import Missing, decode_json

_TEXTS = ("content", "page_content", "text", "chunk", "document", "memory")
_SCORES = ("score", "relevance_score", "similarity", "distance")
_IDS = ("id", "doc_id", "chunk_id", "_id", "id_", "node_id")
_SOURCES = ("source", "url", "file_path", "file_name", "title")
_KNOWN = frozenset((*_TEXTS, *_SCORES, *_IDS, "metadata", "type"))
_LISTS = ("documents", "outputs", "output", "records", "nodes", "results")
_WRAPPERS = ("kwargs", "node", "document", "entity", "payload")
_MOST = 10_000  # documents of one span


class Document(NamedTuple):
    """A retrieved document. `is_redacted`: its text was there and is hidden."""

    id: str | None
    text: str | None
    score: float | None
    source: str | None
    metadata: dict[str, Value]
    is_redacted: bool = False


class Documents(NamedTuple):
    """The first documents of a span, and how many more it has: these are left out."""

    read: list[Document]
    left_out: int = 0


def read_documents(span: Span, source: Source) -> Documents | Missing | None:
    """The documents of a span; None: the source is not there, an empty list: it is, and nothing was found."""
    return _READERS[source.form](span, source.attribute)


def with_ids_of(documents: list[Document], others: Sequence[Document]) -> list[Document]:
    """Fill missing ids from a second list of the same documents, as the same instrumentation writes it elsewhere."""
    if len(documents) != len(others) or any(
        one.text != other.text for one, other in zip(documents, others, strict=True)
    ):
        return documents
    return [
        one if one.id is not None else one._replace(id=other.id) for one, other in zip(documents, others, strict=True)
    ]


def _listed(span: Span, attribute: str) -> Documents | Missing | None:
    value = span.attributes.get(attribute)
    if value is None:
        return None
    if value == REDACTED:
        return Missing("redacted")
    decoded = decode_json(value) if isinstance(value, str) else value
    if isinstance(decoded, dict):
        inner = next((decoded[key] for key in _LISTS if isinstance(decoded.get(key), list)), None)
        decoded = [decoded] if inner is None else inner
    if not isinstance(decoded, list):
        return Missing("wrong_type", "a list of documents wanted")
    documents = [_document(one) for one in decoded[:_MOST]]
    good = [one for one in documents if one is not None]
    if decoded and not good:
        return Missing("wrong_type", f"none of {len(decoded)} documents can be read")
    return Documents(good, max(0, len(decoded) - _MOST))


def _flattened(span: Span, attribute: str) -> Documents | Missing | None:
    if span.attributes.get(attribute) == REDACTED:
        return Missing("redacted")
    found = flattened(span, attribute)
    if not found:
        return Documents([]) if span.attributes.get(attribute) == [] else None
    documents = []
    for fields in list(found.values())[:_MOST]:
        metadata = fields.get("document.metadata")
        decoded = decode_json(metadata) if isinstance(metadata, str) else metadata
        extra: dict[str, Value] = decoded if isinstance(decoded, dict) else {}
        text, found_id = fields.get("document.content"), fields.get("document.id")
        documents.append(
            Document(
                found_id if isinstance(found_id, str) and found_id else _first_text({"id": found_id, **extra}, _IDS),
                text if isinstance(text, str) and text != REDACTED else None,
                _score(fields.get("document.score")),
                _first_text(extra, _SOURCES) if extra else None,
                extra,
                text == REDACTED,
            )
        )
    return Documents(documents, max(0, len(found) - _MOST))


def _from_events(span: Span, attribute: str) -> Documents | Missing | None:
    documents: list[Document] = []
    left_out = 0
    for event in span.events:
        if event.name == attribute and len(documents) >= _MOST:
            left_out += 1
        elif event.name == attribute:
            prefix = f"{attribute}."
            fields = {name.removeprefix(prefix): value for name, value in event.attributes.items()}
            entity = fields.pop("entity", None)
            metadata = fields.get("metadata")
            if isinstance(metadata, str):
                fields["metadata"] = decode_json(metadata)
            if isinstance(entity, str):
                entity = decode_json(entity)
            if isinstance(entity, dict):
                fields = {**entity, **fields}
            if (document := _document(fields)) is not None:
                documents.append(document)
    return Documents(documents, left_out) if documents else None


def _document(item: Value) -> Document | None:
    """The document; None where the item is none. A field of a wrong type is not recorded."""
    if isinstance(item, str) and isinstance(decoded := decode_json(item), dict):
        item = decoded  # each document on its own, as LlamaIndex writes it
    if isinstance(item, str):
        return Document(None, None, None, None, {}, True) if item == REDACTED else Document(None, item, None, None, {})
    if not isinstance(item, dict):
        return None
    for wrapper in _WRAPPERS:
        if isinstance(inner := item.get(wrapper), dict):
            outer = {key: value for key, value in item.items() if key not in (wrapper, "lc", "type")}
            item = {**inner, **outer}
            if wrapper == "node":  # what else a node has is about its text, and no metadata
                item = {key: value for key, value in item.items() if key in _KNOWN}
            break
    metadata = item.get("metadata")
    extra: dict[str, Value] = dict(metadata) if isinstance(metadata, dict) else {}
    for key, value in item.items():
        if key not in _KNOWN and isinstance(value, (str, int, float, bool)):
            extra.setdefault(key, value)
    text = next((item[key] for key in _TEXTS if isinstance(item.get(key), str)), None)
    score = None
    for key in _SCORES:
        if key in item and (score := _score(item[key])) is not None:
            if key == "distance":
                extra["score_kind"] = "distance"
            break
    found_id = _first_text(item, _IDS)
    return Document(
        found_id if found_id is not None else _first_text(extra, _IDS),
        text if isinstance(text, str) and text != REDACTED else None,
        score,
        _first_text(extra, _SOURCES),
        extra,
        text == REDACTED,
    )


def _score(value: Value) -> float | None:
    """A finite number, which may be negative."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value) if abs(value) <= sys.float_info.max else None
    found = number_of(value) if isinstance(value, str) else None
    return float(found) if isinstance(found, (int, float)) else None


def _first_text(fields: Mapping[str, Value], keys: tuple[str, ...]) -> str | None:
    for key in keys:
        value = fields.get(key)
        if isinstance(value, str) and value and value != REDACTED:
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
    return None


_READERS: Mapping[Form, Callable[[Span, str], Documents | Missing | None]] = {
    "documents": _listed,
    "indexed documents": _flattened,
    "event documents": _from_events,
}
