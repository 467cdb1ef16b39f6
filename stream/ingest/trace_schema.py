"""The JSON Schema of a trace, from the types. A message may differ from it by the rules of `normalisations`."""

from typing import Any

import msgspec

from ragtide.evaluators.trace import Trace

_TIME = [
    {"type": "string", "format": "date-time"},
    {"type": "number", "minimum": 100_000_000_000, "description": "Milliseconds since 1970."},
]


def trace_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a message on a topic of traces.

    Null means "not recorded" wherever a field is not required. Unknown fields are accepted and stored, not measured.
    """
    definitions: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(msgspec.json.schema(Trace)["$defs"]))
    for definition in definitions.values():
        definition.pop("additionalProperties", None)
        required = definition.get("required", [])
        for name, described in definition["properties"].items():
            if name not in required:
                definition["properties"][name] = _or_null(described)
    trace, chunk = definitions.pop("Trace"), definitions["Chunk"]
    del trace["properties"]["source"], definitions["Source"]  # set on ingest
    about_time = trace["properties"]["time"]["description"]
    trace["properties"]["time"] = {"description": about_time, "anyOf": _TIME}
    for name in ("trace_id", "app"):
        trace["properties"][name]["minLength"] = 1
    trace["anyOf"] = _one_of_these(trace, "question", "answer")
    chunk["required"] = []
    chunk["anyOf"] = _one_of_these(chunk, "id", "text")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **trace, "$defs": definitions}


def _or_null(described: dict[str, Any]) -> dict[str, Any]:
    if {"type": "null"} in described.get("anyOf", ()):
        return described
    about: dict[str, Any] = {key: described.pop(key) for key in ("description", "default") if key in described}
    return {**about, "anyOf": [described, {"type": "null"}]}


def _one_of_these(definition: dict[str, Any], *names: str) -> list[dict[str, Any]]:
    """One of the fields is there and not null."""
    return [{"required": [name], "properties": {name: {"not": {"type": "null"}}}} for name in names]
