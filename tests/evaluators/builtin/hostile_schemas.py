"""JSON Schemas that stall a validator which was not written for them, and JSON of any length that does so."""

import json
import random
from collections.abc import Callable, Mapping
from typing import Any

ITSELF = {"$ref": "#"}
OPERATORS = ("add", "divide", "multiply", "subtract")


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _list(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


TERMS = [_object(args=_list(ITSELF), op={"const": operator}) for operator in OPERATORS]
SCHEMAS: dict[str, dict[str, Any]] = {
    "objects": {"items": {"type": "object"}},
    "filter": {
        "anyOf": [
            _object(**{"and": _list(ITSELF)}),
            _object(**{"or": _list(ITSELF)}),
            _object(**{"not": ITSELF}),
            _object(field={"type": "string"}),
        ]
    },
    "expression": {"anyOf": [*TERMS, _list(ITSELF), {"type": "number"}]},
    "nested lists": {"anyOf": [{"type": "string"}, _list(ITSELF)]},
    "each way twice": {"type": ["array", "number"], "allOf": [{"items": ITSELF}, {"items": ITSELF, "minItems": 0}]},
    "all but what it is not": {"not": {"anyOf": [_list({"not": ITSELF}), _list(ITSELF)]}},
    "no two alike": {"uniqueItems": True, "items": {"type": ["array", "object", "number"]}},
    "no two alike in any list": {"uniqueItems": True, "items": ITSELF, "type": ["array", "integer"]},
    "many states": {"pattern": "a[ab]{200}x"},
    "more states": {"items": {"pattern": "a[ab]{900}x"}, "pattern": "a[ab]{900}x"},
    "counted characters": {"items": {"pattern": "^.{1,2000}$"}, "pattern": "^[\\s\\S]{0,4000}$"},
    "counted between two": {"items": {"pattern": "^\\S.{0,1998}\\S$"}},
    "states ten times": {
        "$defs": {"long": {"pattern": "a[ab]{200}x"}},
        "anyOf": [{"minLength": least, "$ref": "#/$defs/long"} for least in range(10)],
    },
    "states of names": {"patternProperties": {"a[ab]{200}x": False}, "additionalProperties": {"pattern": "b[ab]{99}x"}},
}


def _nested(depth: int, leaf: str, before: str, after: str) -> str:
    return before * depth + leaf + after * depth


def _many(value: str) -> Callable[[int], str]:
    return lambda size: "[" + ",".join([value] * max(size // (len(value) + 1), 1)) + "]"


def _of_all_scripts(size: int) -> str:
    characters = random.Random(size).choices("aé\u0416\u65e5\ud55c\U0001f600", k=size // 3)
    return json.dumps(
        ["".join(characters[at : at + 2_000]) for at in range(0, len(characters), 2_000)], ensure_ascii=False
    )


def _letters(size: int) -> str:
    return "".join(random.Random(size).choices("ab", k=size))


TEXTS: dict[str, Callable[[int], str]] = {
    "integers": lambda size: json.dumps(list(range(size // 8))),
    "lists of one": lambda size: json.dumps([[number] for number in range(size // 11)]),
    "bad leaves": lambda size: '{"and":' + _many('{"x":1}')(size) + "}",
    "an expression of depth 14": lambda size: _nested(14, '"x"', '{"op":"subtract","args":[', "]}"),
    "expressions of depth 14": _many(_nested(14, '"x"', '{"op":"subtract","args":[', "]}")),
    "300 nested lists": lambda size: "[" * 300 + "]" * 300,
    "many times 400 nested lists": _many(_nested(400, "1", "[", "]")),
    "a long list in 250 lists": lambda size: _nested(250, json.dumps(list(range(size // 8))), "[0,1,2,", "]"),
    "integers that are one double": lambda size: json.dumps([2**64 - 1 - number for number in range(size // 22)]),
    "a string of two letters": lambda size: f'"{_letters(size)}"',
    "strings of 2,000 characters": _of_all_scripts,
    "a list of a string": lambda size: f'["{_letters(size)}"]',
    "a name of two letters": lambda size: f'{{"{_letters(size // 2)}":"{_letters(size // 2)}"}}',
}


def params(id: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that put the schema to use."""
    return {"json_schema": schema} if id == "json_schema" else {"schemas": {"*": schema}}
