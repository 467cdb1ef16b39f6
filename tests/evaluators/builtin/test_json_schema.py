import json
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from jsonschema.validators import validator_for

from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.outcome import NotApplicable
from ragtide.evaluators.text.json_text import DEEPEST, NotJson, TooDeep, check, read
from ragtide.evaluators.text.pattern_size import TooLarge, pattern_size
from tests.evaluators.builtin.scoring import chunks, outcome, scored

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "minLength": 1}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("answer", "failure"),
    [
        ('{"name": "Ada", "age": 36}', None),
        (' \n{"name": "Ada"}\t', None),
        ('{"name": "Ada", "age": 1.0}', None),  # an integer to JSON Schema since draft 6
        ("{}", "required"),
        ('{"name": ""}', "properties"),
        ('{"name": "Ada", "age": -1}', "properties"),
        ('{"name": "Ada", "city": "London"}', "additionalProperties"),
        ("[]", "type"),
        ("", "not_json"),
        ("Ada", "not_json"),
        ('{"name": "Ada",}', "not_json"),
        ('```json\n{"name": "Ada"}\n```', "not_json"),
    ],
)
def test_worked_examples(answer: str, failure: str | None) -> None:
    given = scored("json_schema", {"json_schema": PERSON}, answer=answer)
    passes = float(failure is None)
    assert given.metrics == {"passes": passes, "failures": 1 - passes, "generation_failures": 1 - passes}
    assert given.categories == ({"failure": failure} if failure else {})


@pytest.mark.parametrize(
    ("answer", "passes"),
    [("{}", 1), ("null", 1), ('"text"', 1), ("[1, 2", 0), ("NaN", 0), ("01", 0), ('"\\ud800"', 0), ("{} {}", 0)],
)
def test_without_a_schema_only_parsing_is_checked(answer: str, passes: float) -> None:
    assert scored("json_schema", answer=answer).metrics["passes"] == passes


def test_contexts_are_not_looked_at() -> None:
    assert "retrieval_failures" not in scored("json_schema", answer="{}", contexts=chunks("no JSON")).metrics


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"type": "strnig"}, 'at /type: "strnig" is not valid'),
        ({"properties": {"zip": {"pattern": "^(?=1)\\d+$"}}}, "at /properties/zip/pattern: .* linear time"),
        ({"pattern": "(a)\\1"}, "linear time"),
        ({"pattern": "(a{1000}){1000}"}, "linear time"),
        (
            {"$defs": {"long": {"pattern": ".{1,2000}$"}}, "$ref": "#/$defs/long"},
            "too large, 1,048,576 bytes together",
        ),
        ({"enum": [date(2026, 11, 21)]}, "a value that is not JSON"),
        ({"patternProperties": {"(?!x)": {}}}, "linear time"),
        ({"$ref": "http://127.0.0.1:9/person.json"}, "Retrieval is disabled"),
        ({"$ref": "file:///etc/hostname"}, "Retrieval is disabled"),
        ({"$ref": "#/$defs/missing"}, "does not exist"),
    ],
)
def test_a_schema_that_cannot_work_is_refused_at_start(schema: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=rf"evaluators\.params\.json_schema\..*no JSON Schema.*: .*{says}"):
        outcome("json_schema", {"json_schema": schema}, answer="{}")


def test_a_hostile_text_meets_a_pattern_in_linear_time() -> None:
    schema = {"pattern": "^(a+)+$"}
    assert scored("json_schema", {"json_schema": schema}, answer='"' + "a" * 1_000_000 + '!"').metrics["passes"] == 0


@pytest.mark.parametrize(
    ("pattern", "least", "most"),
    [
        ("^.{1,2000}$", 1, 2_000),
        ("^[\\s\\S]{0,4000}$", 0, 4_000),
        ("^(.|\\n){10,2000}$", 10, 2_000),
        ("(?s)^.{1,2000}$", 1, 2_000),
        ("^\\S.{0,1998}\\S$", 2, 2_000),
        ("^[^<>]{3,3000}$", 3, 3_000),
        ("^[A-Z]{2}-.{0,1997}$", 3, 2_000),
    ],
)
def test_a_pattern_that_counts_characters_once_is_asked_of_long_texts(pattern: str, least: int, most: int) -> None:
    def passes(*lengths: int) -> float:
        texts = ["AB-\u65e5\u672c"[:length].ljust(length, "\u8a9e") for length in lengths]
        schema = {"json_schema": {"items": {"pattern": pattern}}}
        return scored("json_schema", schema, answer=json.dumps(texts, ensure_ascii=False)).metrics["passes"]

    assert passes(*[most] * 30, least, least + 7) == 1
    assert passes(most + 1) == 0
    assert passes(least - 1) == 0 if least else passes(0) == 1


@pytest.mark.parametrize(
    "pattern",
    [".{1,2000}$", "^.{1,900}.{1,900}$", "^(..){1,900}$", "^x*.{1,1900}$", "^x|.{1,1900}$", "^.{1,900}@.{1,900}$"],
)
def test_a_pattern_that_may_be_at_many_places_at_once_counts_each(pattern: str) -> None:
    assert pattern_size({"pattern": "^.{1,1900}$"}) <= 1 << 11
    with pytest.raises(TooLarge):
        pattern_size({"pattern": pattern})


def test_json_nested_too_deep_is_not_judged() -> None:
    assert scored("json_schema", answer="[" * DEEPEST + "]" * DEEPEST).metrics["passes"] == 1
    assert outcome("json_schema", answer="[" * (DEEPEST + 1) + "]" * (DEEPEST + 1)) == NotApplicable("too_deep")
    assert outcome("json_schema", answer='{"a":' * 200_000) == NotApplicable("too_deep")
    recursive = {"items": {"$ref": "#"}, "type": "array"}
    deep = "[" * DEEPEST + "]" * DEEPEST
    assert scored("json_schema", {"json_schema": recursive}, answer=deep).metrics["passes"] == 1


@pytest.mark.parametrize("text", ['"' + "[" * 1_000 + '"', "[" + "[]," * 1_000 + "{}]", '["\\"' + "{" * 1_000 + '"]'])
def test_brackets_in_strings_and_beside_each_other_are_not_deep(text: str) -> None:
    assert read(text) == json.loads(text)


def test_a_number_that_no_double_holds_meets_no_schema() -> None:
    assert scored("json_schema", answer="1e999").metrics["passes"] == 1
    assert scored("json_schema", {"json_schema": {"type": "number"}}, answer="1e999").metrics["passes"] == 0


@given(st.text('[]{}",:\\ue012-.tuflsrn d8\n\ud800', max_size=12))
def test_checking_and_reading_agree(text: str) -> None:
    def sound(reads: Callable[[str], object]) -> bool:
        try:
            reads(text)
        except NotJson:
            return False
        return True

    assert sound(check) == (sound(read) or (sound(check) and "e" in text))  # 1e999 is JSON, and no double


def test_a_string_without_an_end_is_no_json() -> None:
    with pytest.raises(NotJson):
        read('"' + "[" * 1_000)
    with pytest.raises(TooDeep):
        read("[" * 1_000 + '"')


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3),
    max_leaves=8,
)
SCHEMAS = st.sampled_from(
    [
        {},
        {"type": ["object", "array"]},
        {"type": "array", "items": {"type": "number"}, "minItems": 1, "uniqueItems": True},
        {"type": "object", "properties": {"a": {"type": "string", "maxLength": 2}}, "required": ["a"]},
        {"anyOf": [{"type": "null"}, {"type": "integer", "multipleOf": 2}, {"type": "string", "pattern": "^[a-z]+$"}]},
        {"type": "object", "patternProperties": {"^a": {"type": "boolean"}}, "additionalProperties": False},
        {"not": {"enum": [None, 0, "", [], {}]}},
        {"anyOf": [{"type": "array", "items": {"$ref": "#"}}, {"type": "object"}, {"const": 1}], "maxItems": 2},
        {"additionalProperties": {"$ref": "#"}, "type": ["object", "integer"], "minProperties": 1},
        {"contains": {"type": "null"}, "minContains": 0, "maxContains": 1, "unevaluatedItems": False, "type": "array"},
        {"then": {"minItems": 1}, "else": {"type": "null"}, "if": {"type": "array"}},
        {
            "$schema": "http://json-schema.org/draft-04/schema#",
            "exclusiveMinimum": True,
            "minimum": 0,
            "type": "number",
        },
        False,
    ]
)


@given(JSON, SCHEMAS)
def test_agrees_with_the_reference_implementation(value: Any, schema: dict[str, Any] | bool) -> None:
    """jsonschema (Python) is the reference: of what passes, and of the keywords at the root that fail."""
    reference = validator_for(schema, Draft202012Validator)(schema)
    failing = {
        str(error.schema_path[0]) if error.schema_path else "falseSchema" for error in reference.iter_errors(value)
    }
    given = scored("json_schema", {"json_schema": schema}, answer=json.dumps(value))
    assert given.metrics["passes"] == float(not failing)
    if failing:
        assert given.categories["failure"] in failing
