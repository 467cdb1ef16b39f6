"""Canaries: traces that never change, and other forms of the same content. Judges score both on a schedule.

If scores of the same traces move, the judge changed. If a form moves them, the judge looks at style. Pure.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Literal, NamedTuple, get_args

import msgspec
from msgspec.structs import replace

from ragtide.evaluators.outcome import NotApplicable
from ragtide.evaluators.spec import Evaluator
from ragtide.evaluators.text.sentences import split
from ragtide.evaluators.trace import Trace

CANARY_APP = "ragtide-canaries"  # calls about canaries are counted and limited as those of this application
BUILTIN: Traversable = resources.files("ragtide.evaluators.judge") / "canaries.jsonl"

Form = Literal["markdown", "padded", "reordered"]
FORMS: tuple[Form, ...] = get_args(Form)
_FORM_MATTERS: Mapping[Form, frozenset[str]] = {  # evaluators for which a form is part of the content
    "markdown": frozenset({"summary_coherence"}),  # grades how a text is built
    "padded": frozenset(),
    "reordered": frozenset({"context_precision", "ragas"}),  # score ranks
}
_READ = ("question", "answer", "contexts", "expected")  # fields that judges read
_MARKS = re.compile(r"^\s*(?:#{1,6}|[-*+]|\d+[.)]) +|\*\*|__|`|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)")
_HAS_MARKDOWN = re.compile(r"^\s*#{1,6} |^\s*(?:[-*+]|\d+[.)]) +\S|\*\*\S", re.M)
_EMPHASISED = re.compile(r"\S+(?: \S+)?")  # the first two words


class Canary(NamedTuple):
    """A canary, or a form of it: `form` is empty for the trace itself. `content` is a hash of all that judges see.

    `direction` is -1 if the form takes Markdown away, so that effects have the sign of adding it.
    """

    trace: Trace
    form: Form | Literal[""] = ""
    direction: int = 1

    @property
    def name(self) -> str:
        """Id of the trace."""
        return self.trace.trace_id

    @property
    def content(self) -> str:
        """Hash of the trace: with another one it is another canary."""
        read = {name: getattr(self.trace, name) for name in _READ}
        return hashlib.sha256(msgspec.json.encode(read, order="deterministic")).hexdigest()[:16]


def canary(trace: Trace) -> Canary:
    """Make a canary of a trace: only what judges may read stays, and the application is that of canaries."""
    seen = {name: getattr(trace, name) for name in (*_READ, "task")}
    return Canary(Trace(trace_id=trace.trace_id, time=trace.time, app=CANARY_APP, **seen))


def in_form(base: Canary, form: Form) -> Canary:
    """Write a canary in another form, with the same content."""
    trace = base.trace
    if form == "markdown":
        has_markdown = bool(_HAS_MARKDOWN.search(trace.answer or ""))
        rewrite = without_markdown if has_markdown else with_markdown
        return Canary(replace(trace, answer=_map(rewrite, trace.answer)), form, -1 if has_markdown else 1)
    if form == "padded":
        contexts = trace.contexts and tuple(replace(one, text=_map(padded, one.text)) for one in trace.contexts)
        changed = {"question": _map(padded, trace.question), "answer": _map(padded, trace.answer)}
        return Canary(replace(trace, contexts=contexts, **changed), form)
    contexts, expected = trace.contexts, trace.expected
    return Canary(replace(trace, contexts=contexts and contexts[::-1], expected=expected and expected[::-1]), form)


def changes_form_only(evaluator: Evaluator, base: Canary, other: Canary) -> bool:
    """Tell whether the evaluator reads something in another form, and the form has no meaning for it."""
    if other.form and evaluator.id in _FORM_MATTERS[other.form]:
        return False
    seen = evaluator.project(other.trace)
    return not isinstance(seen, NotApplicable) and seen != evaluator.project(base.trace)


def with_markdown(text: str) -> str:
    """Make each sentence an item of a list, its first words bold."""
    items = [" ".join(one.text.split()) for one in split(text)] or [text]
    return "\n".join(f"- {_EMPHASISED.sub(lambda words: f'**{words[0]}**', item, count=1)}" for item in items)


def without_markdown(text: str) -> str:
    """Take the marks of headings, lists and emphasis away; each line becomes a sentence."""
    lines = (_MARKS.sub("", line).strip() for line in text.splitlines())
    return " ".join(line if line.endswith((".", "!", "?", ":")) else f"{line}." for line in lines if line)


def padded(text: str) -> str:
    """Put blank space around the text, and blank lines between its lines."""
    return f"\n\n  {text.replace(chr(10), chr(10) * 3)}  \n\n\n"


def _map(change: Callable[[str], str], text: str | None) -> str | None:
    return None if text is None else change(text)
