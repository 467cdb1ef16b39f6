"""What of a dashboard the viewer cannot draw, by the list that lies with the viewer's files."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ragtide.dashboards.viewer
from tests.dashboards.lint import panels

Json = dict[str, Any]
CAPABILITIES: Json = json.loads(
    (Path(ragtide.dashboards.viewer.__path__[0]) / "static" / "capabilities.json").read_text(encoding="utf-8")
)
_MACRO = re.compile(r"\$\{(__\w+(?:\.\w+)?|\w+)[^}:]*(?::(\w+))?\}")
_SHADE = re.compile(r"^(?:super-light|light|semi-dark|dark)-")
# What Grafana writes into every document and what no viewer needs.
_FRAME = {
    *("id", "type", "title", "description", "gridPos", "datasource", "targets", "fieldConfig", "options", "interval"),
    *("transformations", "transparent", "repeatDirection", "maxDataPoints", "pluginVersion", "collapsed", "panels"),
    *("links", "cacheTimeout", "queryCachingTTL"),
}


def faults(document: Json) -> Iterator[str]:
    """Every place that the viewer would draw differently from Grafana, or not at all."""
    names = {each["name"] for each in document["templating"]["list"]}
    for each in document["templating"]["list"]:
        yield from _unknown("variable", each["name"], [each["type"]], CAPABILITIES["variables"])
    for each in document["annotations"]["list"]:
        yield from _unknown("annotation", each["name"], [each["datasource"]["type"]], CAPABILITIES["annotations"])
    for panel in panels(document):
        yield from _of_panel(panel, names)


def _of_panel(panel: Json, variables: set[str]) -> Iterator[str]:
    where, kind = f"{panel['type']} {panel['title']}", panel["type"]
    yield from _unknown("panel type", where, [kind], CAPABILITIES["panels"])
    yield from _unknown("part of a panel", where, panel, _FRAME)
    if panel.get("transparent"):
        yield f"{where}: transparent panels are not drawn"
    if kind == "row" or kind not in CAPABILITIES["panels"]:
        return
    options = panel.get("options") or {}
    yield from _unknown("option", where, options, CAPABILITIES["panels"][kind])
    for name, value in options.items():
        if name in CAPABILITIES["optionValues"]:
            yield from _unknown(f"option {name}", where, [value], CAPABILITIES["optionValues"][name])
    calcs = [*options.get("reduceOptions", {}).get("calcs", []), *(options.get("legend") or {}).get("calcs", [])]
    yield from _unknown("calculation", where, calcs, CAPABILITIES["calcs"])
    for each in panel.get("transformations") or []:
        known = CAPABILITIES["transformations"]
        yield from _unknown("transformation", where, [each["id"]], known)
        yield from _unknown(f"option of {each['id']}", where, each["options"], known.get(each["id"], []))
    config = panel.get("fieldConfig") or {}
    yield from _of_config(where, config.get("defaults") or {}, variables)
    for override in config.get("overrides") or []:
        yield from _unknown("matcher", where, [override["matcher"]["id"]], CAPABILITIES["matchers"])
        flat: Json = {}
        for each in override["properties"]:
            above, _, name = each["id"].rpartition(".")
            (flat.setdefault("custom", {}) if above == "custom" else flat)[name if above else each["id"]] = each[
                "value"
            ]
        yield from _of_config(where, flat, variables)


def _of_config(where: str, config: Json, variables: set[str]) -> Iterator[str]:
    yield from _unknown("field setting", where, config, CAPABILITIES["defaults"])
    if "unit" in config:
        yield from _unknown("unit", where, [config["unit"]], CAPABILITIES["units"])
    if "color" in config:
        yield from _unknown("colour mode", where, [config["color"]["mode"]], CAPABILITIES["colorModes"])
        yield from _colours(where, [config["color"].get("fixedColor")])
    if "thresholds" in config:
        yield from _unknown("threshold mode", where, [config["thresholds"]["mode"]], CAPABILITIES["thresholdModes"])
        yield from _colours(where, [step["color"] for step in config["thresholds"]["steps"]])
    for mapping in config.get("mappings") or []:
        yield from _unknown("mapping", where, [mapping["type"]], CAPABILITIES["mappings"])
        chosen = mapping["options"].values() if mapping["type"] == "value" else [mapping["options"]["result"]]
        yield from _colours(where, [each.get("color") for each in chosen])
    texts = [config.get("displayName") or "", *(link["url"] for link in config.get("links") or [])]
    for name, form in (found for text in texts for found in _MACRO.findall(text)):
        if name not in CAPABILITIES["linkMacros"] and not name.startswith(("__data.fields", "__field.labels")):
            yield from _unknown("variable in a link", where, [name], variables)
        if form:
            yield from _unknown("format in a link", where, [form], CAPABILITIES["linkFormats"])
    yield from _of_custom(where, config.get("custom") or {})


def _of_custom(where: str, custom: Json) -> Iterator[str]:
    yield from _unknown("custom setting", where, custom, CAPABILITIES["custom"])
    for name, value in custom.items():
        if name in CAPABILITIES["customValues"]:
            yield from _unknown(f"custom {name}", where, [value], CAPABILITIES["customValues"][name])
    if "cellOptions" in custom:
        yield from _unknown("cell", where, [custom["cellOptions"]["type"]], CAPABILITIES["cells"])
    style = (custom.get("thresholdsStyle") or {}).get("mode", "off")
    yield from _unknown("threshold style", where, [style], CAPABILITIES["thresholdStyles"])
    stacking = (custom.get("stacking") or {}).get("mode", "none")
    yield from _unknown("stacking", where, [stacking], CAPABILITIES["stackingModes"])


def _colours(where: str, names: list[str | None]) -> Iterator[str]:
    plain = [_SHADE.sub("", name) for name in names if name and not name.startswith("#")]
    yield from _unknown("colour", where, plain, CAPABILITIES["colors"])


def _unknown(what: str, where: str, found: Any, known: Any) -> Iterator[str]:
    yield from (f"{where}: the viewer does not know the {what} {each!r}" for each in found if each not in known)
