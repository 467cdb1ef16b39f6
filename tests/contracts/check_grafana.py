"""Every call of our small description exists in Grafana's own, with the same types.

    python -m tests.contracts.check_grafana PATH-OF-GRAFANA-OPENAPI3.json

Grafana's description is not in this repository (another licence): run this whenever ours or Grafana changes.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

OURS = Path(__file__).parent / "grafana.openapi.yaml"
RESOURCES = Path(__file__).parent / "grafana_resources.openapi.yaml"  # calls that Grafana's own description leaves out
VERBS = ("get", "post", "put", "patch", "delete")
Document = Mapping[str, Any]


def differences(ours: Document, theirs: Document) -> Iterator[str]:
    """One line for each thing we rely on that Grafana's own description does not have, or has otherwise."""
    for path, item in ours["paths"].items():
        for verb in VERBS:
            if verb not in item:
                continue
            where = f"{verb.upper()} {path}"
            if verb not in theirs["paths"].get(path, {}):
                yield f"{where}: there is no such call"
                continue
            their_parameters = _parameters_of(theirs["paths"][path], verb)
            mine, other = item[verb], theirs["paths"][path][verb]
            yield from _parameters(where, ours, _parameters_of(item, verb), theirs, their_parameters)
            yield from _schemas(f"{where} body", ours, _body(ours, mine), theirs, _body(theirs, other), sent=True)
            for status, response in mine["responses"].items():
                if status not in other["responses"]:
                    yield f"{where}: never answers {status}"
                    continue
                mine_given, other_given = _content(ours, response), _content(theirs, other["responses"][status])
                yield from _schemas(f"{where} {status}", ours, mine_given, theirs, other_given, sent=False)


def _parameters_of(item: Any, verb: str) -> list[Any]:
    return [*item.get("parameters", []), *item[verb].get("parameters", [])]


def _parameters(where: str, ours: Document, mine: list[Any], theirs: Document, other: list[Any]) -> Iterator[str]:
    known = {(each["in"], each["name"]): each for each in (_resolve(theirs, p) for p in other)}
    for each in (_resolve(ours, p) for p in mine):
        match = known.get((each["in"], each["name"]))
        if match is None:
            yield f"{where}: there is no parameter {each['name']} in {each['in']}"
        else:
            yield from _schemas(f"{where} ?{each['name']}", ours, each["schema"], theirs, match["schema"], sent=True)


def _schemas(
    where: str, ours: Document, mine: Any, theirs: Document, other: Any, *, sent: bool, within: tuple[str, ...] = ()
) -> Iterator[str]:
    """`within` are the schemas that this one lies in: one that holds itself is compared once."""
    name = (mine or {}).get("$ref", "")
    if name in within:
        return
    within = (*within, *([name] if name else []))
    mine, other = _resolve(ours, mine or {}), _resolve(theirs, other or {})
    if mine and not other:
        return  # Grafana says "any JSON"
    if mine.get("type") != other.get("type") and mine.get("type") and other.get("type"):
        yield f"{where}: ours is {mine['type']}, Grafana's {other['type']}"
        return
    for name, property_ in mine.get("properties", {}).items():
        if name not in other.get("properties", {}):
            yield f"{where}: there is no member {name}"
        else:
            theirs_of_name = other["properties"][name]
            yield from _schemas(f"{where}.{name}", ours, property_, theirs, theirs_of_name, sent=sent, within=within)
    if sent:
        for name in set(other.get("required", [])) - set(mine.get("required", [])):
            yield f"{where}: Grafana requires {name}"
    if "items" in mine:
        items = other.get("items")
        yield from _schemas(f"{where}[]", ours, mine["items"], theirs, items, sent=sent, within=within)


def _body(document: Document, operation: Any) -> Any:
    return _content(document, operation["requestBody"]) if "requestBody" in operation else {}


def _content(document: Document, holder: Any) -> Any:
    return _resolve(document, holder).get("content", {}).get("application/json", {}).get("schema", {})


def _resolve(document: Document, node: Any) -> Any:
    while isinstance(node, Mapping) and "$ref" in node:
        found: Any = document
        for step in node["$ref"].removeprefix("#/").split("/"):
            found = found[step]
        node = found
    return node


def load(file: Path = OURS) -> dict[str, Any]:
    """Our own description."""
    document: dict[str, Any] = yaml.safe_load(file.read_text())
    return document


if __name__ == "__main__":
    found = list(differences(load(), json.loads(Path(sys.argv[1]).read_text())))
    sys.stdout.write("".join(f"{line}\n" for line in found) or "no differences\n")
    sys.exit(bool(found))
