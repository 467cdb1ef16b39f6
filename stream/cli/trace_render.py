"""A trace on a terminal, with evidence marked in its texts, or as JSON."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from typing import Any, NamedTuple

from rich.text import Text

from ragtide.drift.rules import rule_of_app
from ragtide.drift.settings import RuleSettings
from ragtide.drift.windows import MetricRef
from ragtide.evaluators.outcome import Evidence
from ragtide.sinks.rows import TextRow
from ragtide.stream.cli.trace_lookup import Score, StoredTrace
from ragtide.stream.console import plain_console, plain_text
from ragtide.stream.terminal_text import plain

_HEAD, _MARK, _PLACE, _BAD, _GOOD, _DIM = "bold", "dim", "bold yellow", "bold red", "green", "dim"
_LINE = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")


class Place(NamedTuple):
    """Evidence with its number in the text."""

    number: int
    evaluator: str
    evidence: Evidence


def as_object(found: StoredTrace) -> dict[str, Any]:
    """The trace as a JSON object; `is_masked` means that offsets of evidence do not fit the texts."""
    columns = ("question", "answer", "chunk_ids", "chunks", "expected", "error_message", "attributes")
    texts = found.texts and {name: value for name, value in found.texts._asdict().items() if name in columns}
    named = ("problem_id", "state", "severity", "type", "metric", "description")
    return {
        "trace": {
            name: value for name, value in found.trace._asdict().items() if name not in ("version", "is_deleted")
        },
        "texts": texts,
        "is_masked": found.is_masked,
        "scores": [asdict(score) for score in found.scores],
        "problems": [{name: getattr(problem, name) for name in named} for problem in found.problems],
    }


def show_trace(found: StoredTrace, metrics: Mapping[str, MetricRef], rules: RuleSettings, longest: int | None) -> None:
    """Print the trace. `metrics` and `rules` tell good values from bad ones; `longest`: characters of a text."""
    console = plain_console()
    places = _numbered(found.scores)
    for line in chain(
        _head(found),
        _texts(found, () if found.is_masked else places, longest),
        _scores(found, places, metrics, rules),
        _problems(found),
    ):
        console.print(line, soft_wrap=True)


def marked(text: str, places: Sequence[Place]) -> list[Text]:
    """The lines of the text, with the start of each place as `[1>` and its end as `<1]`; styled on a terminal."""
    lines = [Text()]
    inside: list[int] = []
    borders = {0, len(text)}.union(*((one.evidence.start, one.evidence.end) for one in places))
    cuts = sorted(cut for cut in borders if 0 <= cut <= len(text))
    for start, end in zip(cuts, [*cuts[1:], len(text)], strict=True):
        for one in (one for one in reversed(places) if one.evidence.end == start and one.number in inside):
            inside.remove(one.number)
            lines[-1].append(f"<{one.number}]", style=_MARK)
        for one in (one for one in places if one.evidence.start == start < one.evidence.end <= len(text)):
            inside.append(one.number)
            lines[-1].append(f"[{one.number}>", style=_MARK)
        for number, part in enumerate(_LINE.split(text[start:end])):
            if number:
                lines.append(Text())
            lines[-1].append(plain(part), style=_PLACE if inside else "")
    return lines


def _numbered(scores: Sequence[Score]) -> list[Place]:
    every = ((score.evaluator, one) for score in scores for one in score.evidence)
    return [Place(number, evaluator, one) for number, (evaluator, one) in enumerate(every, 1)]


def _head(found: StoredTrace) -> Iterator[Text]:
    trace = found.trace
    run = "" if trace.run_id == "live" else f", run {trace.run_id}"
    where = f"{trace.app} {trace.environment}".strip()
    yield plain_text(f"trace {trace.trace_id} of {where}{run}, {trace.time:%Y-%m-%d %H:%M:%S} UTC", _HEAD)
    facts = {
        "model": trace.model,
        "prompt version": trace.prompt_version,
        "task": trace.task,
        "session": trace.session_id,
        "user": trace.user_id,
        "latency": "" if trace.latency_s is None else f"{trace.latency_s:.3g} s",
        "tokens": _tokens(trace.input_tokens, trace.output_tokens),
        "cost": "" if trace.cost_usd is None else f"${trace.cost_usd:.3g}",
        "segments": ", ".join(f"{name} = {value}" for name, value in trace.segments.items()),
        "error": trace.error,
        "message": f"{trace.topic}/{trace.partition}/{trace.offset}",
    }
    for name, value in facts.items():
        if value:
            yield plain_text(f"  {name}: {value}")


def _tokens(read: int | None, written: int | None) -> str:
    counts = ((read, "read"), (written, "written"))
    return ", ".join(f"{count:,} {what}" for count, what in counts if count is not None)


def _texts(found: StoredTrace, places: Sequence[Place], longest: int | None) -> Iterator[Text]:
    texts = found.texts
    if texts is None:
        yield Text()
        yield plain_text("texts: none are stored (privacy.store_texts), or no longer (retention.texts_days)", _DIM)
        return
    for head, text, here in _parts(texts, places):
        yield Text()
        yield plain_text(head, _HEAD)
        shown = text if longest is None else text[:longest]
        for line in marked(shown, here):
            yield Text("  | ").append_text(line)
        if len(shown) < len(text):
            yield plain_text(f"  {len(text) - len(shown):,} more characters; --full prints them", _DIM)
    if found.is_masked:
        yield Text()
        yield plain_text("Texts are masked, so that evidence is not marked in them.", _DIM)


def _parts(texts: TextRow, places: Sequence[Place]) -> Iterator[tuple[str, str, Sequence[Place]]]:
    """Every recorded text with its heading, and the places in it."""

    def of(field: str, chunk_id: str | None = None) -> list[Place]:
        return [one for one in places if (one.evidence.field, one.evidence.chunk_id) == (field, chunk_id)]

    if texts.question is not None:
        yield "question", texts.question, of("question")
    for number, (chunk_id, text) in enumerate(zip(texts.chunk_ids, texts.chunks, strict=False), 1):
        yield f"context {number} ({chunk_id})", text or "(its text is not recorded)", of("contexts", chunk_id)
    if texts.answer is not None:
        yield "answer", texts.answer, of("answer")
    begin = 0  # places count over all references together
    for number, text in enumerate(texts.expected, 1):
        here = [one._replace(evidence=_moved(one.evidence, -begin)) for one in of("expected")]
        yield f"expected {number}", text, [one for one in here if one.evidence.start >= 0]
        begin += len(text)
    if texts.error_message:
        yield "error message", texts.error_message, ()


def _moved(evidence: Evidence, by: int) -> Evidence:
    return Evidence(evidence.field, evidence.start + by, evidence.end + by, kind=evidence.kind, score=evidence.score)


def _scores(
    found: StoredTrace, places: Sequence[Place], metrics: Mapping[str, MetricRef], rules: RuleSettings
) -> Iterator[Text]:
    yield Text()
    yield plain_text("scores" if found.scores else "scores: none", _HEAD)
    for score in found.scores:
        if score.status in ("not_applicable", "sampled_out"):
            continue
        yield plain_text(f"  {score.evaluator}" + ("" if score.status == "scored" else f": failed, {score.reason}"))
        for key, value in score.metrics.items():
            yield _value(f"{score.evaluator}.{key}", key, value, found.trace.app, metrics, rules)
        labels = [f"{name} = {label}" for name, label in score.categories.items()]
        yield from (plain_text(f"    {label}") for label in (*labels, *(f"finding: {one}" for one in score.findings)))
        if score.explanation:
            yield plain_text(f"    explanation: {score.explanation}")
        for place in places:
            if place.evaluator == score.evaluator:
                yield plain_text(f"    [{place.number}] {_describe(place.evidence)}", _DIM)
    for status, meaning in (("not_applicable", "not applicable"), ("sampled_out", "not in the sample")):
        others = [f"{one.evaluator} ({one.reason})" for one in found.scores if one.status == status]
        if others:
            yield plain_text(f"  {meaning}: {', '.join(others)}", _DIM)


def _value(name: str, key: str, value: float, app: str, metrics: Mapping[str, MetricRef], rules: RuleSettings) -> Text:
    line = plain_text(f"    {key} ")
    metric = metrics.get(name)
    if metric is None:
        return line.append(f"{value:.4g}")
    rule = rule_of_app(app, metric, rules)
    low, high = (rule.min, rule.max) if rule is not None else metric.bounds
    if low is None and high is None:
        return line.append(f"{value:.4g} {metric.metric.unit or ''}".rstrip())
    bad = (low is not None and value < low) or (high is not None and value > high)
    bounds = " and ".join(f"{sign} {end:g}" for sign, end in (("≥", low), ("≤", high)) if end is not None)
    said = f"{value:.4g} {metric.metric.unit or ''}".rstrip()
    return line.append(said, style=_BAD if bad else _GOOD).append(f" {'bad' if bad else 'good'}: good is {bounds}")


def _describe(evidence: Evidence) -> str:
    where = f"contexts {evidence.chunk_id}" if evidence.chunk_id is not None else evidence.field
    kind = f" {evidence.kind}" if evidence.kind else ""
    score = "" if evidence.score is None else f" {evidence.score:.3g}"
    return f"{where} {evidence.start}-{evidence.end}{kind}{score}"


def _problems(found: StoredTrace) -> Iterator[Text]:
    yield Text()
    yield plain_text("problems that name this trace" if found.problems else "no problem names this trace", _HEAD)
    for problem in found.problems:
        yield plain_text(f"  {problem.state}, {problem.severity}: {problem.description}")
        yield plain_text(f"    ragtide problems show {problem.problem_id[:8]}", _DIM)
