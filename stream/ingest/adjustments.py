"""What decoding changed in records: names cut, values normalised, and unknown fields that nothing measures."""

from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import msgspec
from rapidfuzz.distance import OSA

from ragtide.evaluators.trace import Chunk, Trace
from ragtide.stream.ingest.fields import all_fields, leaf_names
from ragtide.stream.ingest.normalisations import snake_case

_MOST_UNKNOWN = 200  # pairs of app and field that a slice counts; names are the producer's to choose
_MOST_OF_TRACE = 32  # unknown fields of one trace that are looked at
_LONGEST_FIELD = 64
_LONGEST_APP = 256
_OPEN = (Trace, Chunk)  # their unknown fields are kept as attributes or metadata, on purpose as often as not
_SHORT = 5  # characters: of a shorter name one wrong letter makes another word
# Names that other tools use, where the meaning or the unit is not certain enough to read them as the field.
_MEANT = {
    "prompt_tokens": "tokens.input",
    "input_tokens": "tokens.input",
    "completion_tokens": "tokens.output",
    "output_tokens": "tokens.output",
    "cached_tokens": "tokens.cached",
    "total_tokens": "tokens.input and tokens.output",
    "usage": "tokens",
    "token_usage": "tokens",
    "total_ms": "latency.total_s, in seconds",
    "retrieval_ms": "latency.retrieval_s, in seconds",
    "generation_ms": "latency.generation_s, in seconds",
    "first_token_ms": "latency.first_token_s, in seconds",
    "latency_ms": "latency.total_s, in seconds",
    "latency_s": "latency.total_s",
    "latency_seconds": "latency.total_s",
    "duration_ms": "latency.total_s, in seconds",
    "duration_s": "latency.total_s",
    "duration": "latency.total_s, in seconds",
    "response_time": "latency.total_s, in seconds",
    "elapsed": "latency.total_s, in seconds",
    "ttft": "latency.first_token_s, in seconds",
    "time_to_first_token": "latency.first_token_s, in seconds",
    "cost": "cost_usd, in US dollars",
    "total_cost": "cost_usd, in US dollars",
    "price": "cost_usd, in US dollars",
    "prompt": "question, without the template",
    "prompt_template_version": "model.prompt_version",
    "prompt_version": "model.prompt_version",
    "tenant": "segments.tenant",
    "tenant_id": "segments.tenant",
    "exception": "error",
    "error_type": "error.type",
    "error_message": "error.message",
}


class UnknownField(NamedTuple):
    """An unknown field of an application's traces, by path."""

    app: str
    field: str


class Normalised(NamedTuple):
    """A value that was read although it has another form: by which rule, in which field."""

    rule: str
    field: str


@dataclass(slots=True)
class Adjustments:
    """Counts of what decoding changed. Memory is bounded, whatever records hold."""

    cut: Counter[str] = field(default_factory=Counter)  # by field
    normalised: Counter[Normalised] = field(default_factory=Counter)
    unknown: Counter[UnknownField] = field(default_factory=Counter)

    def count_unknown(self, app: str, suspects: "set[str]") -> None:
        """Count the suspicious fields of one trace; beyond `_MOST_UNKNOWN` pairs, new ones are left out."""
        if len(app) > _LONGEST_APP or not app.isprintable():
            return
        for name in suspects:
            key = UnknownField(app, name)
            if key in self.unknown or len(self.unknown) < _MOST_UNKNOWN:
                self.unknown[key] += 1


@dataclass(slots=True)
class Suspects:
    """Unknown fields of one trace that a producer probably meant to be measured."""

    fields: set[str] = field(default_factory=set)
    _looked_at: int = 0

    def add(self, struct: type[msgspec.Struct], path: str, name: str) -> None:
        """Add `name` at `path` if it looks like a mistake; names that are no identifiers may be texts of users."""
        self._looked_at += 1
        if self._looked_at <= _MOST_OF_TRACE and len(name) <= _LONGEST_FIELD and is_suspect(struct, name):
            self.fields.add(path + name)


@lru_cache(4096)
def is_suspect(struct: type[msgspec.Struct], name: str) -> bool:
    """Whether an unknown field was probably meant to be measured.

    Every one in an object of fixed fields; one of a trace or chunk if it is near a field, or a usual name for one.
    """
    if not name.isascii() or not name.replace(".", "_").isidentifier():
        return False
    return struct not in _OPEN or snake_case(name) in _MEANT or _nearest_of(name, leaf_names(struct)) is not None


@lru_cache(4096)
def nearest_field(path: str) -> str | None:
    """The field that the producer probably meant by this path; None if there is none."""
    above, _, name = path.rpartition(".")
    known = all_fields()
    in_place = _nearest_of(name, tuple(field.removeprefix(f"{above}.") for field in known if field.startswith(above)))
    if meant := _MEANT.get(snake_case(name)):
        return meant
    if in_place is not None:
        return f"{above}.{in_place}" if above else in_place
    by_leaf = {field.rpartition(".")[2]: field for field in reversed(known)}
    leaf = _nearest_of(name, tuple(by_leaf))
    return by_leaf[leaf] if leaf else None


def _nearest_of(name: str, known: tuple[str, ...]) -> str | None:
    most = 1 if len(name) < _SHORT else 2
    distance, nearest = min(
        ((OSA.distance(name.lower(), one, score_cutoff=most), one) for one in known), default=(9, "")
    )
    return nearest if distance <= most else None


def describe_unknown(unknown: UnknownField) -> str:
    """What happens with the field, and which one was probably meant."""
    nearest = nearest_field(unknown.field)
    hint = f"; did you mean {nearest}?" if nearest else ""
    return f"app {unknown.app}: no trace has a field {unknown.field}. It is stored and not measured{hint}"
