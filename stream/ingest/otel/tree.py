"""Order the spans of one trace as a tree, find their kinds and the roots of applications, and leave judges out.

All of it depends on the set of spans alone: not on their order, on how messages split them, or on repeats.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from ragtide.stream.ingest.otel.names import FIELDS, KINDS, KINDS_BY_PREFIX, RESULT_EVENTS, TASKS
from ragtide.stream.ingest.otel.source import Kind
from ragtide.stream.ingest.otel.spans import Attributes, Span

# Services and instrumentation whose spans judge answers. No judging of judges.
JUDGE_SERVICES = frozenset({"ragtide"})
JUDGE_SCOPES = frozenset({"ragtide", "phoenix.evals"})
_JUDGE_ENVIRONMENT = "langfuse-"
_CHAINS = ("chain", "agent")
_TRACE_LEVEL = tuple(
    source.attribute for name in ("question", "answer") for source in FIELDS[name] if source.of == "any span"
)


@dataclass(frozen=True, slots=True)
class Request:
    """One request to an application: its root spans, the first one first, and all spans below them."""

    tops: tuple[Span, ...]
    spans: tuple[Span, ...]  # by start
    by_depth: tuple[Span, ...]
    is_only: bool  # of its trace

    @property
    def root(self) -> Span:
        """The application's root."""
        return self.tops[0]


@dataclass(slots=True)
class Tree:
    """The spans of a trace without judges; parents, kinds and depths by span id."""

    spans: list[Span]  # by start
    by_depth: list[Span]
    parents: dict[str, Span]
    kinds: dict[str, Kind]
    depths: dict[str, int]
    requests: list[Request] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def above(self, span: Span) -> Iterator[Span]:
        """The spans above, from the parent up."""
        parent = self.parents.get(span.span_id)
        while parent is not None:
            yield parent
            parent = self.parents.get(parent.span_id)

    def below(self, request: Request, kinds: Collection[Kind]) -> set[str]:
        """Ids of the request's spans that have a span of one of the kinds above them."""
        found: set[str] = set()
        for span in request.by_depth:
            parent = self.parents.get(span.span_id)
            if parent is not None and (parent.span_id in found or self.kinds.get(parent.span_id) in kinds):
                found.add(span.span_id)
        return found


def build_tree(spans: Iterable[Span]) -> Tree:
    """Build the tree of one trace. Repeated spans count once, and a cycle of parents is cut at its first span."""
    unique = _unique(spans)
    ordered = sorted(unique.values(), key=_order)
    counts: Counter[str] = Counter()
    parents = _parents(ordered, unique, counts)
    kinds = {span.span_id: kind for span in ordered if (kind := kind_of(span)) is not None}
    depths = _depths(ordered, parents, counts)
    by_depth = sorted(ordered, key=lambda one: depths[one.span_id])
    if judges := _judges(by_depth, parents, kinds):
        counts["judge_span"] += len(judges)
        ordered = [span for span in ordered if span.span_id not in judges]
        by_depth = [span for span in by_depth if span.span_id not in judges]
    tree = Tree(ordered, by_depth, parents, kinds, depths, counts=counts)
    tree.requests = _requests(tree)
    return tree


def _order(span: Span) -> tuple[int, int, str]:
    return span.start_ns, span.end_ns, span.span_id


def _unique(spans: Iterable[Span]) -> dict[str, Span]:
    """Spans by id; of several versions of one the latest end, then the larger one."""
    unique: dict[str, Span] = {}
    for span in spans:
        other = unique.get(span.span_id)
        if other is None or (other != span and _version(span) > _version(other)):
            unique[span.span_id] = span
    return unique


def _version(span: Span) -> tuple[int, int, bytes]:
    return span.end_ns, len(span.attributes) + len(span.events), msgspec.json.encode(span, order="deterministic")


def _parents(ordered: Sequence[Span], unique: Mapping[str, Span], counts: Counter[str]) -> dict[str, Span]:
    parents: dict[str, Span] = {}
    for span in ordered:
        if span.parent_id:
            parent = unique.get(span.parent_id)
            if parent is not None:
                parents[span.span_id] = parent
            else:
                counts["parent_missing"] += 1
    return parents


def _depths(ordered: Sequence[Span], parents: dict[str, Span], counts: Counter[str]) -> dict[str, int]:
    """Depths by span id. Removes from `parents` the link above the first span of each cycle."""
    depths: dict[str, int] = {}
    for span in ordered:
        parent = parents.get(span.span_id)
        if parent is None:
            depths[span.span_id] = 0
        elif parent.span_id in depths:  # most parents start before their children
            depths[span.span_id] = depths[parent.span_id] + 1
        else:
            _walk_up(span, parents, depths, counts)
    return depths


def _walk_up(span: Span, parents: dict[str, Span], depths: dict[str, int], counts: Counter[str]) -> None:
    path: dict[str, Span] = {}
    step: Span | None = span
    while step is not None and step.span_id not in depths:
        if step.span_id in path:
            del parents[_first_of_cycle(step, parents).span_id]
            counts["cycle"] += 1
            path, step = {}, span
            continue
        path[step.span_id] = step
        step = parents.get(step.span_id)
    depth = -1 if step is None else depths[step.span_id]
    for one in reversed(path):
        depth += 1
        depths[one] = depth


def _first_of_cycle(span: Span, parents: Mapping[str, Span]) -> Span:
    cycle = [span]
    while (step := parents[cycle[-1].span_id]) is not span:
        cycle.append(step)
    return min(cycle, key=_order)


def kind_of(span: Span) -> Kind | None:
    """The kind of a span; None for one that no convention marks."""
    attributes = span.attributes
    for attribute, _, kinds in KINDS:
        value = attributes.get(attribute)
        if isinstance(value, str):
            kind = kinds.get(value) or kinds.get(value.upper()) or kinds.get(value.lower())
            if kind is not None:
                return _kind_of_task(attributes) if value == "task" else kind
    if any(event.name in RESULT_EVENTS for event in span.events):
        return "retriever"
    if "openinference.span.kind" in attributes:
        return "other"
    for prefix, found in KINDS_BY_PREFIX:
        if any(name.startswith(prefix) for name in attributes):
            return found
    return None


def _kind_of_task(attributes: Attributes) -> Kind:
    for attribute, end, kind in TASKS:
        value = attributes.get(attribute)
        if value is not None and (not end or (isinstance(value, str) and value.endswith(end))):
            return kind
    return "chain"


def _judges(by_depth: Sequence[Span], parents: Mapping[str, Span], kinds: Mapping[str, Kind]) -> set[str]:
    judges: set[str] = set()
    for span in by_depth:
        parent = parents.get(span.span_id)
        environment, service = span.attributes.get("langfuse.environment"), span.resource.get("service.name")
        if (
            kinds.get(span.span_id) == "evaluator"
            or (parent is not None and parent.span_id in judges)
            or span.scope.name in JUDGE_SCOPES
            or (isinstance(service, str) and service in JUDGE_SERVICES)
            or (isinstance(environment, str) and environment.startswith(_JUDGE_ENVIRONMENT))
        ):
            judges.add(span.span_id)
    return judges


def _requests(tree: Tree) -> list[Request]:
    """One request for each chain or agent at the top; without one, all marked spans are one request."""
    tops = _tops(tree)
    if not tops:
        return []
    roots = [span for span in tops if tree.kinds.get(span.span_id) in _CHAINS] or tops[:1]
    groups: dict[str, list[Span]] = {root.span_id: [root] for root in roots}
    for span in tops:
        if span.span_id not in groups:
            groups[_nearest(span, roots).span_id].append(span)
    members: dict[str, list[Span]] = {root.span_id: [] for root in roots}
    owner: dict[str, str] = {top.span_id: root for root, group in groups.items() for top in group}
    for span in tree.by_depth:
        root_id = owner.get(span.span_id)
        if root_id is None and (parent := tree.parents.get(span.span_id)) is not None:
            root_id = owner.get(parent.span_id)
        if root_id is not None:
            owner[span.span_id] = root_id
            members[root_id].append(span)
    is_only = len(roots) == 1
    return [
        Request(
            tuple(groups[root.span_id]),
            tuple(sorted(members[root.span_id], key=_order)),
            tuple(members[root.span_id]),
            is_only,
        )
        for root in roots
    ]


def _tops(tree: Tree) -> list[Span]:
    """The marked spans without a marked one above, by start; without any, roots with texts of a whole trace."""
    covered: set[str] = set()
    tops = []
    for span in tree.by_depth:
        parent = tree.parents.get(span.span_id)
        is_covered = parent is not None and parent.span_id in covered
        if span.span_id in tree.kinds:
            if not is_covered:
                tops.append(span)
            is_covered = True
        if is_covered:
            covered.add(span.span_id)
    if tops:
        return sorted(tops, key=_order)
    return [
        span
        for span in tree.spans
        if span.span_id not in tree.parents and any(name in span.attributes for name in _TRACE_LEVEL)
    ]


def _nearest(span: Span, roots: Sequence[Span]) -> Span:
    """The first root that starts after the span, as a retrieval before its chain; else the last one."""
    return next((root for root in roots if root.start_ns >= span.start_ns), roots[-1])
