"""Find the chunks that the application answered from, in rank order."""

from collections.abc import Sequence
from typing import NamedTuple

from ragtide.stream.ingest.otel.documents import Document, Documents, read_documents, with_ids_of
from ragtide.stream.ingest.otel.names import FIELDS, OI
from ragtide.stream.ingest.otel.source import Source
from ragtide.stream.ingest.otel.spans import Span, Value
from ragtide.stream.ingest.otel.tree import Request, Tree
from ragtide.stream.ingest.otel.unwrap import Missing

_OF_RERANKER = tuple(source for source in FIELDS["contexts"] if source.of == "reranker")
_OF_RETRIEVER = tuple(source for source in FIELDS["contexts"] if source.of == "retriever")
SETTING = "otel.contexts_from_prompt"
FROM_PROMPT = "prompt"  # source of a chunk
_OUTPUT = next(source for source in _OF_RETRIEVER if source.attribute == "output.value")


class Contexts(NamedTuple):
    """The chunks; None: not recorded. `missing` says why, or why chunks have no text. First span and source.

    `left_out`: documents beyond the most that are read of one span. `documents`: what the chunks were made of.
    `setting`: the one that had texts taken from there.
    """

    chunks: Sequence[Value] | None
    missing: Missing | None = None
    span: Span | None = None
    source: Source | None = None
    left_out: int = 0
    documents: Sequence[Document] = ()
    setting: str = ""

    @property
    def lacks_texts(self) -> bool:
        """Whether a retrieval took place, and not one text of a chunk was recorded, nor hidden."""
        if self.missing is None:
            return False
        if self.chunks is None:
            return self.missing.reason == "not_sent"
        return self.missing.reason == "no_text" and all(one.text is None for one in self.documents)

    def with_texts(self, texts: Sequence[str], span: Span, source: Source) -> "Contexts":
        """The same chunks with texts of the prompt, by rank; if there are more or fewer texts, chunks of these alone.

        The source of such a chunk is `prompt`.
        """
        if len(texts) == len(self.documents):
            documents = [one._replace(text=text) for one, text in zip(self.documents, texts, strict=True)]
        else:
            documents = [Document(None, text, None, None, {}) for text in dict.fromkeys(texts)]
        documents = [one._replace(source=FROM_PROMPT) for one in documents]
        chunks = [_chunk(one, rank, "") for rank, one in enumerate(documents, 1)]
        return Contexts(chunks, None, span, source, self.left_out, documents, SETTING)


class _Found(NamedTuple):
    span: Span
    source: Source
    documents: Documents


def find_contexts(tree: Tree, request: Request) -> Contexts:
    """The documents of the last reranker, else of all retrievers whose result the answer may rest on, each once."""
    missing: Missing | None = None
    rerankers = [span for span in request.spans if tree.kinds.get(span.span_id) == "reranker"]
    for span in sorted(rerankers, key=lambda one: (one.end_ns, one.start_ns, one.span_id), reverse=True):
        found = _read(span, _OF_RERANKER)
        if isinstance(found, _Found):
            return _chunks([found])
        missing = missing or found
    retrieved: list[_Found] = []
    done: set[str] = set()  # below a retriever with documents, or a part of a tool's call that failed
    has_retriever = False
    for span in request.by_depth:
        parent, kind = tree.parents.get(span.span_id), tree.kinds.get(span.span_id)
        if (parent is not None and parent.span_id in done) or (kind == "tool" and span.is_error):
            done.add(span.span_id)
        elif kind == "retriever":
            has_retriever = True
            found = _read(span, _OF_RETRIEVER)
            if isinstance(found, _Found):
                done.add(span.span_id)
                retrieved.append(found)
            elif found is not None:
                missing = missing or found
    if retrieved:
        return _chunks(sorted(retrieved, key=lambda one: (one.span.start_ns, one.span.end_ns, one.span.span_id)))
    return Contexts(None, missing or Missing("not_sent" if has_retriever or rerankers else "no_span"))


def _read(span: Span, sources: Sequence[Source]) -> _Found | Missing | None:
    missing: Missing | None = None
    for source in sources:
        documents = read_documents(span, source)
        if isinstance(documents, Missing):
            missing = missing or documents
        elif documents is not None:
            if source.convention == OI and any(one.id is None for one in documents.read):
                others = read_documents(span, _OUTPUT)
                if isinstance(others, Documents):
                    documents = documents._replace(read=with_ids_of(documents.read, others.read))
            return _Found(span, source, documents)
    return missing


def _chunks(found: Sequence[_Found]) -> Contexts:
    chunks: list[Value] = []
    documents: list[Document] = []
    seen: set[tuple[str, str]] = set()
    without_text = redacted = 0
    for one in found:
        for place, document in enumerate(one.documents.read, 1):
            key = ("id", document.id) if document.id is not None else ("text", document.text or "")
            if key != ("text", "") and key in seen:
                continue
            seen.add(key)
            documents.append(document)
            chunks.append(_chunk(document, len(chunks) + 1, f"{one.span.span_id}/{place}"))
            without_text += document.text is None
            redacted += document.is_redacted
    missing = None
    if without_text:
        reason = f"{without_text} of {len(chunks)} chunks"
        missing = Missing("redacted" if redacted else "no_text", reason)
    left_out = sum(one.documents.left_out for one in found)
    return Contexts(chunks, missing, found[0].span, found[0].source, left_out, documents)


def _chunk(document: Document, rank: int, fallback: str) -> dict[str, Value]:
    """A chunk of a canonical trace. Without an id, one with a text gets the hash of it on ingest."""
    chunk: dict[str, Value] = {"rank": rank}
    if document.id is not None:
        chunk["id"] = document.id
    elif document.text is None:
        chunk["id"] = f"{document.source}#{rank}" if document.source is not None else fallback
    if document.text is not None:
        chunk["text"] = document.text
    if document.score is not None:
        chunk["score"] = document.score
    if document.source is not None:
        chunk["source"] = document.source
    if document.metadata:
        chunk["metadata"] = document.metadata
    return chunk
