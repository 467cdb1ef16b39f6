"""JSON Schemas of the settings, compiled offline so that no text can stall a worker."""

import json
import re
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Annotated, Any

from pydantic import AfterValidator

from ragtide.evaluators.text.json_text import TooDeep, depth
from ragtide.evaluators.text.pattern_size import TooLarge, objects, pattern_size
from ragtide.evaluators.text.schema_keywords import Keywords

Schema = dict[str, Any] | bool
# A regular expression takes at worst 0.1 ns for each byte of the text and of itself compiled; a record is matched once,
# and a few times more to name the keyword that fails.
MOST_STEPS = 2_000_000_000
# `uniqueItems` takes a value once for each list around it, 5 ns a byte. Integers from 2^63 on it takes for doubles, of
# which many are one, so that each is compared with each, 3 ns a pair at most.
NESTED_STEPS = 50
PAIR_STEPS = 15
BEYOND_63_BITS = re.compile(r"9[2-9]\d{17}|\d{20}")


class JsonSchema:
    """Validates values in time that grows linearly.

    Do not use it on texts that take more than `MOST_STEPS`.
    """

    def __init__(self, schema: Schema) -> None:
        import jsonschema_rs

        self._schema = schema
        self._validator = jsonschema_rs.validator_for(
            schema, offline=True, pattern_options=jsonschema_rs.RegexOptions()
        )
        self._pattern_size = pattern_size(schema)
        self._compares = any(each.get("uniqueItems") is True for each in objects(schema))

    def steps(self, text: str) -> int:
        """Return the maximum work of regular expressions and item comparisons on the text."""
        if not self._pattern_size and not self._compares:
            return 0
        size = len(text.encode("utf-8", "surrogatepass"))
        return size * self._pattern_size + (self._comparison_steps(text, size) if self._compares else 0)

    def _comparison_steps(self, text: str, size: int) -> int:
        levels = text.count("[") + text.count("{")
        if levels * size * NESTED_STEPS > MOST_STEPS:
            levels = depth(text)
        alike = sum(1 for _ in BEYOND_63_BITS.finditer(text))
        return levels * size * NESTED_STEPS + alike * alike * PAIR_STEPS

    def is_valid(self, value: Any) -> bool:
        """Whether the value satisfies the schema. Visits each value once, even if the schema is recursive.

        Raises `TooDeep` if it would have to compare values with more than 255 levels.
        """
        try:
            return bool(self._validator.is_valid(value))
        except ValueError:
            raise TooDeep from None

    def failing(self, value: Any) -> str:
        """Return the first keyword at the root that an invalid value fails. Raises like `is_valid`."""
        try:
            return self._keywords.failing(value)
        except ValueError:
            raise TooDeep from None

    @cached_property
    def _keywords(self) -> Keywords:
        return Keywords(self._schema)


def compile_schema(schema: Schema) -> JsonSchema:
    """Compile a schema. The draft is that of `$schema`, else 2020-12; `format` follows the draft.

    Raises `ValueError` with place and reason if it is no schema, refers to another document (nothing is fetched), or
    has a regular expression that is too large or not linear.
    """
    try:
        return _compile_schema(json.dumps(schema))
    except TypeError:
        raise ValueError("no JSON Schema: it contains a value that is not JSON") from None
    except RecursionError:
        raise ValueError("no JSON Schema: it is nested too deep, or its chain of references is too long") from None


@lru_cache(maxsize=64)
def _compile_schema(schema: str) -> JsonSchema:
    import jsonschema_rs

    try:
        return JsonSchema(json.loads(schema))
    except jsonschema_rs.ValidationError as error:
        place = "/".join(("", *map(str, error.instance_path))) or "/"
        regex = error.kind.name == "format" and error.message.endswith('"regex"')
        linear = " that runs in linear time (look-around and back-references do not, and repeats have a limit)"
        raise ValueError(f"no JSON Schema: at {place}: {error.message}{linear if regex else ''}") from None
    except TooLarge as error:
        raise ValueError(f"no JSON Schema that runs in time: {error}") from None


def _check_schema(schema: Schema) -> Schema:
    compile_schema(schema)
    return schema


def _check_schemas(schemas: Mapping[str, Schema]) -> Mapping[str, Schema]:
    for schema in schemas.values():
        compile_schema(schema)
    return schemas


SoundSchema = Annotated[Schema, AfterValidator(_check_schema)]
SoundSchemas = Annotated[Mapping[str, Schema], AfterValidator(_check_schemas)]
