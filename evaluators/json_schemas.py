"""JSON Schemas of the settings, compiled: offline, and with regular expressions that take linear time."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator

Schema = dict[str, Any] | bool


def compiled(schema: Schema) -> Any:
    """A `jsonschema_rs` validator; the draft is that of `$schema`, else 2020-12, and `format` is as the draft has it.

    Raises `ValueError` with place and reason where the schema is none, refers to another document (nothing is fetched),
    or holds a regular expression that has no linear time.
    """
    import jsonschema_rs

    try:
        return jsonschema_rs.validator_for(schema, offline=True, pattern_options=jsonschema_rs.RegexOptions())
    except jsonschema_rs.ValidationError as error:
        place = "/".join(("", *map(str, error.instance_path))) or "/"
        regex = error.kind.name == "format" and error.message.endswith('"regex"')
        linear = " that runs in linear time (look-around and back-references do not, and repeats have a limit)"
        raise ValueError(f"no JSON Schema: at {place}: {error.message}{linear if regex else ''}") from None


def _sound(schema: Schema) -> Schema:
    compiled(schema)
    return schema


def _each_sound(schemas: Mapping[str, Schema]) -> Mapping[str, Schema]:
    for schema in schemas.values():
        compiled(schema)
    return schemas


SoundSchema = Annotated[Schema, AfterValidator(_sound)]
SoundSchemas = Annotated[Mapping[str, Schema], AfterValidator(_each_sound)]
