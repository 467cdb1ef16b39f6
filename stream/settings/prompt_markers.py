"""Markers around the chunks in a prompt: regular expressions of RE2, which none can stall a worker with."""

from typing import Any, NamedTuple

PLACE = "{context}"


class Markers(NamedTuple):
    """Compiled patterns of bytes: what stands before each chunk, and after it. `end` None: the next `start`."""

    start: Any
    end: Any


def compile_markers(start: str, end: str, template: str) -> Markers:
    """Compile the settings of the markers; raise `ValueError`, which names the setting at fault."""
    if template:
        if start or end:
            raise ValueError("set otel.context_template, or otel.context_start and .context_end, not both")
        return _of_template(template)
    if not start:
        raise ValueError(
            "otel.contexts_from_prompt = delimited needs otel.context_start, or otel.context_template: the text around "
            "each chunk in the prompt"
        )
    return _compile(start, end)


def _of_template(template: str) -> Markers:
    import re2

    before, *after = template.split(PLACE)
    if len(after) != 1 or not before:
        raise ValueError(f"otel.context_template needs {PLACE} once, with a text before it, e.g. <doc>{PLACE}</doc>")
    return _compile(re2.escape(before), re2.escape(after[0]))


def _compile(start: str, end: str) -> Markers:
    from ragtide.evaluators.conditions.patterns import Malformed, Patterns

    patterns = Patterns()
    try:
        made = Markers(
            patterns.compile(start, "otel.context_start"), patterns.compile(end, "otel.context_end") if end else None
        )
    except Malformed as error:
        raise ValueError(str(error)) from None
    for name, pattern in (("start", made.start), ("end", made.end)):
        if pattern is not None and pattern.fullmatch(b"") is not None:
            raise ValueError(f"otel.context_{name} matches an empty text, which is everywhere: let it match a marker")
    return made
