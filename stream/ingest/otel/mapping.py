"""Map the spans of one trace to canonical traces: a pure function of the set of spans.

Each field comes from the first source of the table that is recorded. The result is a message for `rag.traces`, which
is then read and checked like every other.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import msgspec

from ragtide.stream.ingest.otel import measures
from ragtide.stream.ingest.otel.contexts import FROM_PROMPT, Contexts, find_contexts
from ragtide.stream.ingest.otel.known_names import PREFIXES, is_mapped
from ragtide.stream.ingest.otel.log_events import join_logs
from ragtide.stream.ingest.otel.names import FIELDS, OURS, PROVIDERS, REFERENCES, SEGMENT_PREFIX
from ragtide.stream.ingest.otel.prompt_contexts import PromptRule
from ragtide.stream.ingest.otel.reading import KEYS, READERS, scalar_text
from ragtide.stream.ingest.otel.source import Kind, Of, Source
from ragtide.stream.ingest.otel.spans import LogEvent, Span, Value
from ragtide.stream.ingest.otel.tree import Request, Tree, build_tree
from ragtide.stream.ingest.otel.unwrap import Missing

_NO_ANSWER: tuple[Kind, ...] = ("tool", "evaluator", "guardrail", "retriever")
_REQUESTS = ("chain", "agent", None)
_UNKNOWN = ("unknown", "none", "null")
_NOT_SENT = Missing("not_sent")
_UNKNOWN_SERVICE = "unknown_service"
_SHORTEST_CUT = 40  # characters; shorter texts may be a part of the question itself
_LONGEST_ATTRIBUTE = 4_096
_MOST_ATTRIBUTES = 32
_FINISH_REASONS = ("gen_ai.response.finish_reasons", "llm.finish_reason")
_PROMPTS = {source.attribute for source in FIELDS["question"] if source.of == "answer"}
_OUTPUTS = [reader for reader in READERS["answer"] if reader.source.of == "answer"]
_TEXTS = ("question", "answer")
_SUMS = ("tokens.input", "tokens.output", "tokens.cached")
# Not every application has them, so that none of them is missing.
_OPTIONAL = ("condition", "task", *(name for name in FIELDS if name.startswith("segments.")))
_MOST_SEGMENTS = 32
_FIRST_RECORDED = tuple(  # fields whose value is their first source that is recorded
    (path, KEYS[path])
    for path in (
        *("app", "environment", "session_id", "user_id", "question", "answer", "expected"),
        *(name for name in FIELDS if name.startswith("model.")),
        "latency.first_token_s",
    )
)


class Origin(NamedTuple):
    """Where a field's value is from. `span_id` "" means several spans; `attribute` "" means their times or status.

    `setting`: the one that had it taken from there.
    """

    span_id: str
    span_name: str
    attribute: str
    convention: str
    setting: str = ""


_SEVERAL = Origin("", "", "", "")


@dataclass(slots=True)
class MappedTrace:
    """The fields of a canonical trace, the origin of each, and the fields that are not recorded, by path."""

    fields: dict[str, Value]
    request: Request
    origins: dict[str, Origin] = field(default_factory=dict)
    missing: dict[str, Missing] = field(default_factory=dict)

    def encode(self) -> bytes:
        """The message for the topic of traces. Numbers that are not finite become null: not recorded."""
        return msgspec.json.encode(self.fields)


@dataclass(frozen=True, slots=True)
class MappedSpans:
    """The traces that the spans of one trace id hold, in order of their roots, and what was counted."""

    traces: list[MappedTrace]
    counts: Counter[str]
    unmapped: Counter[str]  # attributes of known conventions that the table does not have, by prefix


def map_spans(
    spans: Iterable[Span], logs: Sequence[LogEvent] = (), prompt_rule: PromptRule | None = None
) -> MappedSpans:
    """Map the spans, and the log records, of one trace id. Without a span of an application there is no trace.

    `prompt_rule` finds the texts of chunks that no span of a retrieval has.
    """
    counts: Counter[str] = Counter()
    tree = build_tree(join_logs(spans, logs, counts) if logs else spans)
    tree.counts.update(counts)
    unmapped = Counter(
        prefix for span in tree.spans for name in span.attributes if (prefix := _unmapped_prefix(name)) is not None
    )
    if not tree.requests:
        tree.counts["only_judges" if tree.counts["judge_span"] else "no_application"] += 1
    return MappedSpans([_Mapper(tree, request, prompt_rule).map() for request in tree.requests], tree.counts, unmapped)


@lru_cache(8_192)
def _unmapped_prefix(name: str) -> str | None:
    if not name.startswith(PREFIXES) or is_mapped(name):
        return None
    return next(prefix.rstrip(".") for prefix in PREFIXES if name.startswith(prefix))


class _Mapper:
    """Maps one request."""

    def __init__(self, tree: Tree, request: Request, prompt_rule: PromptRule | None) -> None:
        self._tree = tree
        self._prompt_rule = prompt_rule
        self._request = request
        kinds = tree.kinds
        self._llms = measures.leaves(tree, request, "llm")
        self._answer_span = self._find_answer_span()
        above = list(tree.above(request.root))[::-1]
        by_kind = {
            kind: [span for span in request.spans if kinds.get(span.span_id) == kind]
            for kind in ("retriever", "reranker")
        }
        root = request.root
        self._spans: Mapping[Of, Sequence[Span]] = {
            "any span": [*above, *request.by_depth],
            "root": [root],
            "request": [root] if kinds.get(root.span_id) in _REQUESTS else [],
            "retriever": by_kind["retriever"],
            "reranker": by_kind["reranker"],
            "answer": [] if self._answer_span is None else [self._answer_span],
            "llm": self._llms,
            "resource": [root],
        }
        self._present = set(root.resource).union(*(span.attributes for span in self._spans["any span"]))
        self._above = above
        self._mapped = MappedTrace({}, request)
        self._attributes: dict[str, Value] = {}  # those that this mapping adds

    def map(self) -> MappedTrace:
        """Fill in every field, in the order of a trace."""
        root = self._request.root
        self._set("trace_id", self._trace_id(), Origin(root.span_id, root.name, "", ""))
        self._set("span_id", root.span_id, Origin(root.span_id, root.name, "", ""))
        self._set_measure("time", measures.time_of(self._request))
        contexts = find_contexts(self._tree, self._request)
        if contexts.left_out:
            self._tree.counts["documents_left_out"] += contexts.left_out
        for path, keys in _FIRST_RECORDED:
            if keys is None or not self._present.isdisjoint(keys):
                self._find(path)
            else:
                self._mapped.missing[path] = _NOT_SENT
        for path in _OPTIONAL:
            self._find(path)
            self._mapped.missing.pop(path, None)
        self._set_segments()
        contexts = self._with_texts_of_prompt(contexts)
        self._set_contexts(contexts)
        self._cut_question(contexts)
        for path in _SUMS:
            self._sum(path)
        self._set_cost()
        for path, found in measures.latencies(self._tree, self._request, self._llms).items():
            self._set_measure(path, found)
        self._set_error()
        kinds = {self._tree.kinds.get(span.span_id) for span in self._request.spans}
        if "task" not in self._mapped.fields and (
            self._tree.kinds.get(self._request.root.span_id) == "agent" or "tool" in kinds
        ):
            self._set("task", "agent", _SEVERAL)
        self._set_attributes()
        return self._mapped

    def _trace_id(self) -> str:
        root = self._request.root
        return root.trace_id if self._request.is_only else f"{root.trace_id}:{root.span_id}"

    def _find_answer_span(self) -> Span | None:
        """The leaf LLM call with the latest end that wrote text; without any text, the one with the latest end."""
        elsewhere = self._tree.below(self._request, _NO_ANSWER) if self._llms else ()
        candidates = sorted(
            (span for span in self._llms if span.span_id not in elsewhere),
            key=lambda span: (span.end_ns, span.start_ns, span.span_id),
            reverse=True,
        )
        for span in candidates:
            if any(isinstance(found := read(span, source.attribute), str) and found for source, _, read in _OUTPUTS):
                return span
        return candidates[0] if candidates else None

    def _set(self, path: str, value: Value, origin: Origin) -> None:
        above, _, name = path.rpartition(".")
        if above:
            inner = self._mapped.fields.setdefault(above, {})
            assert isinstance(inner, dict)
            inner[name] = value
        else:
            self._mapped.fields[name] = value
        self._mapped.origins[path] = origin

    def _set_measure(self, path: str, found: "Value | Missing") -> None:
        if isinstance(found, Missing):
            self._mapped.missing[path] = found
        elif found is not None:
            root = self._request.root
            is_of_root = path in ("time", "latency.total_s")
            self._set(path, found, Origin(root.span_id, root.name, "", "") if is_of_root else _SEVERAL)

    def _find(self, path: str) -> None:
        """The first recorded source; the reason of the first one that is there without content."""
        missing: Missing | None = None
        for source, key, read in READERS[path]:
            if key and key not in self._present:
                continue
            spans = self._spans[source.of]
            for span in spans[:1] if source.of == "retriever" else spans:
                found = read(span, source.attribute)
                if isinstance(found, str) and path not in _TEXTS:
                    found = _refined(path, found, span, source)
                if found is None:
                    continue
                if isinstance(found, Missing):
                    missing = missing or found
                    continue
                value: Value = [*found] if isinstance(found, list) else found
                self._set(path, value, Origin(span.span_id, span.name, source.attribute, source.convention))
                return
        for attribute, of in REFERENCES.items() if path in _TEXTS else ():
            if of == path and attribute in self._present:
                missing = Missing("content_by_reference", attribute)
        self._mapped.missing[path] = missing or _NOT_SENT

    def _set_contexts(self, contexts: Contexts) -> None:
        if contexts.chunks is None:
            self._mapped.missing["contexts"] = contexts.missing or Missing("not_sent")
            return
        source, span = contexts.source, contexts.span
        self._set(
            "contexts",
            [*contexts.chunks],
            Origin(span.span_id, span.name, source.attribute, source.convention, contexts.setting)
            if source is not None and span is not None
            else _SEVERAL,
        )
        if contexts.missing is not None:
            self._mapped.missing["contexts.text"] = contexts.missing

    def _with_texts_of_prompt(self, contexts: Contexts) -> Contexts:
        """The chunks with texts of the prompt, if none was recorded and the settings ask for it; counts both ends."""
        if self._prompt_rule is None or not contexts.lacks_texts:
            return contexts
        answer, question = self._answer_span, self._mapped.fields.get("question")
        asked = question if isinstance(question, str) else ""
        found = self._prompt_rule.find(answer, asked)
        if isinstance(found, Missing):
            self._tree.counts["contexts_not_in_prompt"] += 1
            return contexts if contexts.chunks is None else contexts._replace(missing=found)
        self._tree.counts["contexts_from_prompt"] += 1
        self._attributes["contexts_from"] = FROM_PROMPT
        return contexts.with_texts(found.texts, found.span, found.source)

    def _set_segments(self) -> None:
        """Segments that the application names itself; of several spans, the shallowest one's value."""
        every = sorted(name for name in self._present if name.startswith(SEGMENT_PREFIX))
        names = [name for name in every if name != SEGMENT_PREFIX][:_MOST_SEGMENTS]
        if len(names) < len(every):
            self._tree.counts["segments_left_out"] += len(every) - len(names)
        for attribute in names:
            for span in self._spans["any span"]:
                found = scalar_text(span.attributes.get(attribute))
                if isinstance(found, str):
                    segment = attribute.removeprefix(SEGMENT_PREFIX)
                    self._set(f"segments.{segment}", found, Origin(span.span_id, span.name, attribute, OURS))
                    break

    def _cut_question(self, contexts: Contexts) -> None:
        """Cut chunks out of a question that is the prompt of the LLM call: the longest first."""
        question, origin = self._mapped.fields.get("question"), self._mapped.origins.get("question")
        if not isinstance(question, str) or origin is None or origin.attribute not in _PROMPTS:
            return
        chunks = [chunk.get("text") for chunk in contexts.chunks or () if isinstance(chunk, dict)]
        rest = question
        for text in sorted(
            {text.strip() for text in chunks if isinstance(text, str)}, key=lambda one: (-len(one), one)
        ):
            if text and text in rest:
                rest = rest.replace(text, "") if len(text) >= _SHORTEST_CUT else _without_lines(rest, text)
        if rest != question and rest.strip():
            self._mapped.fields["question"] = rest.strip()
            self._attributes["question_from"] = "prompt"

    def _sum(self, path: str) -> None:
        """The sum over leaf LLM calls; a failed call need not count."""
        found = measures.summed(self._llms, READERS[path])
        if isinstance(found, Missing):
            self._mapped.missing[path] = found
        else:
            self._set(path, int(found.value), self._origin_of(found))

    def _set_cost(self) -> None:
        found = measures.summed(self._llms, READERS["cost_usd"])
        if isinstance(found, Missing):
            root = measures.summed([self._request.root], READERS["cost_usd"])
            found = found if isinstance(root, Missing) or found.reason == "incomplete" else root
        if isinstance(found, Missing):
            self._mapped.missing["cost_usd"] = found
        else:
            self._set("cost_usd", found.value, self._origin_of(found))

    def _origin_of(self, found: measures.Sum) -> Origin:
        only = found.spans[0] if len(found.spans) == 1 else None
        name = only.name if only is not None else f"{len(found.spans)} spans"
        return Origin(only.span_id if only else "", name, found.source.attribute, found.source.convention)

    def _set_error(self) -> None:
        """An error is the application's only if its root failed, or the root of the whole trace."""
        failed = next((span for span in (self._request.root, *self._above[:1]) if span.is_error), None)
        if failed is None:
            return
        thrown = next((one.attributes for one in reversed(failed.events) if one.name == "exception"), {})
        kinds = (failed.attributes.get("error.type"), thrown.get("exception.type"))
        kind = next((one for one in kinds if isinstance(one, str) and one), "span_error")
        message = failed.status_message or thrown.get("exception.message")
        error: dict[str, Value] = {"type": kind}
        if isinstance(message, str) and message:
            error["message"] = message
        self._set("error", error, Origin(failed.span_id, failed.name, "", ""))

    def _set_attributes(self) -> None:
        """What else the root and the answer's span say, in short values, and which instrumentation made them."""
        root, answer = self._request.root, self._answer_span
        kept: dict[str, Value] = {}
        for span in (root,) if answer is None or answer is root else (root, answer):
            for name in sorted(name for name in span.attributes if not is_mapped(name)):
                if len(kept) < _MOST_ATTRIBUTES and _is_short(span.attributes[name]):
                    kept.setdefault(name, span.attributes[name])
        if root.scope.name:
            kept["otel.scope.name"] = root.scope.name
            kept["otel.scope.version"] = root.scope.version
        if answer is not None:
            reasons = next((answer.attributes[name] for name in _FINISH_REASONS if name in answer.attributes), None)
            if reasons is not None:
                kept["finish_reasons"] = reasons
        failed = sum(span.is_error for span in self._request.spans if self._tree.kinds.get(span.span_id) == "llm")
        if failed:
            kept["failed_calls"] = failed
        if kept or self._attributes:
            self._mapped.fields["attributes"] = {**kept, **self._attributes}


def _without_lines(text: str, lines: str) -> str:
    """The text without the lines, where they stand on lines of their own."""
    found = f"\n{text}\n"
    while (shorter := found.replace(f"\n{lines}\n", "\n")) != found:  # neighbours share a line break
        found = shorter
    return found[1:-1]


def _refined(path: str, found: str, span: Span, source: Source) -> str | None:
    """The name in the form of its field; None for one that stands for no name."""
    if path == "app":
        return None if found.startswith(_UNKNOWN_SERVICE) else found
    if not path.startswith("model."):
        return found
    if found.lower() in _UNKNOWN:
        return None
    if path == "model.provider":
        return PROVIDERS.get(found.lower(), found)
    other = scalar_text(span.attributes.get(source.with_)) if source.with_ else None
    if isinstance(other, str):
        return f"{found}:{other}" if path == "model.host" else f"{other}@{found}"
    return found


def _is_short(value: Value) -> bool:
    return len(value) <= _LONGEST_ATTRIBUTE if isinstance(value, str) else isinstance(value, (bool, int, float))
