"""Finds the keyword of a JSON Schema that a value fails, without a list of all errors.

Such a list grows with the value, and exponentially with its depth if a schema is recursive in several branches.
"""

from bisect import bisect_left
from functools import cached_property
from typing import Any

DOCUMENT = "urn:ragtide:schema"
PARTS = "ragtide:parts"  # a place in the schema's own document, so that what its parts refer to is found
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")  # older drafts ignore what stands beside a reference: it is first
# What the others depend on comes before them, and they come last, in this order.
BEFORE = ("if", "minContains", "maxContains", "minimum", "maximum", "prefixItems", "properties", "patternProperties")
AFTER = ("items", "additionalItems", "additionalProperties", "unevaluatedItems", "unevaluatedProperties")


class Keywords:
    """The keywords at the root of a valid schema, in the order of evaluation."""

    def __init__(self, schema: dict[str, Any] | bool) -> None:
        self._schema = schema
        self._names = [] if isinstance(schema, bool) else sorted(filter(_asserts, schema), key=_order)

    def failing(self, value: Any) -> str:
        """Return the first keyword that an invalid value fails; "falseSchema" if the schema is false.

        It is found by bisection: all keywords before it hold together.
        """
        if not self._names:
            return "falseSchema"
        return self._names[bisect_left(self._heads, True, key=lambda head: not head.is_valid(value))]

    @cached_property
    def _heads(self) -> list[Any]:
        """Validators of the first keyword, of the first two, and so on, but not of all."""
        import jsonschema_rs

        assert isinstance(self._schema, dict)
        heads = [{name: self._schema[name] for name in self._names[:count]} for count in range(1, len(self._names))]
        registry = jsonschema_rs.Registry([(DOCUMENT, {**self._schema, PARTS: heads})])
        draft = {"$schema": self._schema["$schema"]} if "$schema" in self._schema else {}
        return [
            jsonschema_rs.validator_for(
                {**draft, "$ref": f"{DOCUMENT}#/{PARTS}/{place}"},
                registry=registry,
                offline=True,
                pattern_options=jsonschema_rs.RegexOptions(),
            )
            for place in range(len(heads))
        ]


def _asserts(name: str) -> bool:
    return name in REFERENCES or not (name.startswith("$") or name in ("id", "definitions"))


def _order(name: str) -> tuple[int, int]:
    if name in REFERENCES:
        return 0, REFERENCES.index(name)
    if name in BEFORE:
        return 1, BEFORE.index(name)
    return (3, AFTER.index(name)) if name in AFTER else (2, 0)
