"""Our description of Grafana is one, and comparing it with Grafana's own sees every difference."""

import copy
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV30SpecValidator

from tests.contracts.check_grafana import OURS, RESOURCES, differences, load


@pytest.mark.parametrize("file", [OURS, RESOURCES], ids=lambda file: file.name)
def test_it_is_a_valid_description(file: Path) -> None:
    OpenAPIV30SpecValidator(load(file)).validate()


@pytest.mark.parametrize(
    ("at", "says"),
    [
        (["paths", "/api/folders/{folder_uid}"], "GET /api/folders/{folder_uid}: there is no such call"),
        (["paths", "/api/annotations", "get", "parameters", 2], "there is no parameter tags in query"),
        (["components", "schemas", "Annotation", "properties", "timeEnd"], "there is no member timeEnd"),
        (["paths", "/api/folders", "post", "responses", "409"], "POST /api/folders: never answers 409"),
    ],
)
def test_the_comparison_sees_what_is_missing(at: list[Any], says: str) -> None:
    theirs = copy.deepcopy(load())
    holder: Any = theirs
    for step in at[:-1]:
        holder = holder[step]
    del holder[at[-1]]
    assert any(says in line for line in differences(load(), theirs))


def test_the_comparison_sees_another_type_and_a_new_duty() -> None:
    theirs = copy.deepcopy(load())
    body = theirs["paths"]["/api/annotations"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    body["properties"]["text"] = {"type": "integer"}
    body["required"] = [*body["required"], "dashboardUID"]
    assert set(differences(load(), theirs)) == {
        "POST /api/annotations body.text: ours is string, Grafana's integer",
        "POST /api/annotations body: Grafana requires dashboardUID",
    }
