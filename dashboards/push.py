"""Push dashboards to a Grafana, and tell how they differ from those there. A second push does nothing."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ragtide.sinks.grafana import GrafanaGateway, Json

_OF_GRAFANA = ("id", "version")  # what Grafana adds when it stores a dashboard


@dataclass(frozen=True, slots=True)
class PushResult:
    """Names of dashboards, by what was done."""

    created: tuple[str, ...]
    changed: tuple[str, ...]
    unchanged: tuple[str, ...]


class Difference(NamedTuple):
    """A dashboard whose copy in Grafana differs; `details` says where, one phrase each."""

    name: str
    details: tuple[str, ...]


def push(
    grafana: GrafanaGateway,
    dashboards: Mapping[str, Json],
    *,
    folder_uid: str = "ragtide",
    folder_title: str = "ragtide",
    data_source: Json | None = None,
) -> PushResult:
    """Push the folder, the data source (if given) and every dashboard.

    An unchanged dashboard gets no new version. Raises the gateway's errors; dashboards pushed before stay.
    """
    grafana.ensure_folder(folder_uid, folder_title)
    if data_source is not None:
        grafana.put_data_source(data_source)
    done: dict[str, list[str]] = {"created": [], "changed": [], "unchanged": []}
    for name, document in sorted(dashboards.items()):
        stored = grafana.dashboard(document["uid"])
        if stored is not None and _own(stored) == _own(document):
            done["unchanged"].append(name)
            continue
        grafana.put_dashboard(document, folder_uid, "ragtide dashboards push")
        done["created" if stored is None else "changed"].append(name)
    return PushResult(*(tuple(names) for names in done.values()))


def diff(grafana: GrafanaGateway, dashboards: Mapping[str, Json]) -> list[Difference]:
    """Compare with the dashboards in Grafana; empty if a push would do nothing. Only reads."""
    found = []
    for name, document in sorted(dashboards.items()):
        stored = grafana.dashboard(document["uid"])
        details = ("not in Grafana",) if stored is None else tuple(_differences(_own(document), _own(stored)))
        if details:
            found.append(Difference(name, details))
    return found


def _differences(ours: Json, stored: Json) -> Iterator[str]:
    mine, theirs = dict(_panels(ours)), dict(_panels(stored))
    for title in mine:
        if title not in theirs:
            yield f"panel {title!r} is missing in Grafana"
        elif mine[title] != theirs[title]:
            yield f"panel {title!r} differs in {', '.join(_keys(mine[title], theirs[title]))}"
    yield from (f"panel {title!r} is only in Grafana" for title in theirs if title not in mine)
    if set(mine) == set(theirs) and list(mine) != list(theirs):
        yield "the order of panels differs"
    mine, theirs = _named(ours, "templating"), _named(stored, "templating")
    yield from _named_differences("variable", mine, theirs)
    yield from _named_differences("annotation", _named(ours, "annotations"), _named(stored, "annotations"))
    own = ("panels", "templating", "annotations")
    rest = [key for key in _keys(ours, stored) if key not in own]
    if rest:
        yield f"settings differ: {', '.join(rest)}"


def _named_differences(what: str, mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[str]:
    for name in {**mine, **theirs}:
        if mine.get(name) != theirs.get(name):
            where = "is missing in Grafana" if name not in theirs else "differs"
            yield f"{what} {name!r} {'is only in Grafana' if name not in mine else where}"


def _panels(document: Json) -> Iterator[tuple[str, Json]]:
    """Yield each panel with its title, and with its row's if it is in a collapsed one."""
    for panel in document.get("panels", []):
        yield panel.get("title", ""), {key: value for key, value in panel.items() if key != "panels"}
        for inner in panel.get("panels") or []:
            yield f"{panel.get('title', '')}: {inner.get('title', '')}", inner


def _named(document: Json, section: str) -> dict[str, Any]:
    return {each.get("name", ""): each for each in (document.get(section) or {}).get("list") or []}


def _keys(mine: Json, theirs: Json) -> list[str]:
    return sorted(key for key in {*mine, *theirs} if mine.get(key) != theirs.get(key))


def _own(document: Json) -> Json:
    """Return what is ours: without what Grafana adds, and without members that say nothing."""
    own: Json = _without_nulls({key: value for key, value in document.items() if key not in _OF_GRAFANA})
    return own


def _without_nulls(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _without_nulls(value) for key, value in node.items() if value is not None}
    return [_without_nulls(item) for item in node] if isinstance(node, list) else node
