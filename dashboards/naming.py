"""Give a built dashboard the names and selectors of the settings; nothing else knows that they can change."""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote
from zlib import crc32

from ragtide.dashboards.settings import DEFAULT_PREFIX, DashboardSettings

Json = dict[str, Any]

_LINK = f"/d/{DEFAULT_PREFIX}"  # start of every link between dashboards, in data links and in SQL
_HIDDEN = 2


def apply_settings(document: Json, settings: DashboardSettings) -> Json:
    """Return the dashboard with uid, title, tags, time range, links, data source and choices of the settings."""
    named: Json = _replace_strings(document, lambda text: text.replace(_LINK, f"/d/{settings.uid_prefix}"))
    named["uid"] = settings.uid(named["uid"].removeprefix(DEFAULT_PREFIX))
    named["title"] = f"{settings.title_prefix}{named['title']}"
    named["tags"] = list(settings.tags)
    named["timezone"] = settings.time_zone
    if settings.refresh:
        named["refresh"] = settings.refresh
    if settings.time_range:
        named["time"] = {"from": f"now-{settings.time_range}", "to": "now"}
    for link in named["links"]:
        if link["type"] == "dashboards":
            link["tags"] = [settings.tags[0]]
    variables = named["templating"].setdefault("list", [])
    for variable in variables:
        if variable["type"] == "datasource":
            variable["current"] |= {"text": settings.data_source_name, "value": settings.data_source_uid}
        elif (value := settings.fixed.get(variable["name"])) is not None:
            _fix(variable, value)
        elif (value := settings.selected.get(variable["name"])) is not None:
            variable["current"] = _choice(variable, value)
    return named


def panel_id(name: str) -> int:
    """Return the id of a panel by its type and title, as in "text: drift": links to it stay valid if it moves."""
    return crc32(name.encode()) >> 1


def _fix(variable: Json, value: str) -> None:
    """Make it a variable of one value, which no address changes."""
    choice = _choice(variable, value)
    kept = {name: variable[name] for name in ("name", "label", "multi", "includeAll") if name in variable}
    variable.clear()
    variable |= kept | {
        "type": "custom",
        "hide": _HIDDEN,
        "skipUrlSync": True,
        "includeAll": False,
        "allowCustomValue": False,
        "query": _escape(choice["value"][0] if isinstance(choice["value"], list) else value),
        "current": choice,
        "options": [choice],
    }


def _choice(variable: Json, value: str) -> Json:
    """Return the chosen option. Values of variables with several are encoded as `variable_sql.options` offers them."""
    if variable.get("multi"):
        return {"selected": True, "text": [value], "value": [quote(value, safe="-_.~")]}
    return {"selected": True, "text": value, "value": value}


def _escape(value: str) -> str:
    """Write a value as a custom variable's query, which commas divide."""
    return value.replace(",", "\\,")


def _replace_strings(node: Any, replace: Callable[[str], str]) -> Any:
    if isinstance(node, str):
        return replace(node)
    if isinstance(node, dict):
        return {key: _replace_strings(item, replace) for key, item in node.items()}
    return [_replace_strings(item, replace) for item in node] if isinstance(node, list) else node
