"""What a Grafana remembers: folders, dashboards, data sources and annotations, as far as ragtide asks for them."""

import copy
import json
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from urllib.parse import unquote

from tests.contracts.grafana_alerting_state import AlertingState, Answer, refused
from tests.contracts.grafana_receivers_state import ReceiversState

Json = dict[str, Any]


@dataclass
class GrafanaState:
    folders: dict[str, Json] = field(default_factory=dict)
    dashboards: dict[str, Json] = field(default_factory=dict)
    data_sources: dict[str, Json] = field(default_factory=dict)
    annotations: dict[int, Json] = field(default_factory=dict)
    alerting: AlertingState = field(default_factory=AlertingState)
    receivers: ReceiversState = field(init=False)
    ids: "count[int]" = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        self.receivers = ReceiversState(self.alerting)

    def answer(self, verb: str, path: str, query: dict[str, list[str]], body: Any) -> Answer:
        match [verb, *path.removeprefix("/api/").split("/")]:
            case [_, "", "apis", "notifications.alerting.grafana.app", "v1beta1", *rest]:
                return self.receivers.answer(verb, [unquote(part) for part in rest], body)
            case ["GET", "frontend", "settings"]:
                return Answer(200, {"appUrl": "http://grafana.test/", "namespace": self.receivers.namespace})
            case ["GET", "health"]:
                return Answer(200, {"database": "ok", "version": "13.0.0"})
            case ["GET", "folders"]:
                limit = int(query.get("limit", ["1000"])[0])
                hits = [{"id": f["id"], "uid": uid, "title": f["title"]} for uid, f in self.folders.items()]
                return Answer(200, hits[:limit])
            case ["POST", "folders"]:
                return self._add_folder(body)
            case ["GET", "folders", uid]:
                return Answer(200, self.folders[uid]) if uid in self.folders else refused(404, "folder not found")
            case ["POST", "dashboards", "db"]:
                return self._store_dashboard(body)
            case ["GET", "dashboards", "uid", uid]:
                if uid not in self.dashboards:
                    return refused(404, "Dashboard not found")
                return Answer(200, copy.deepcopy(self.dashboards[uid]))
            case ["POST", "datasources"]:
                return self._add_data_source(body)
            case ["GET", "datasources", "uid", uid]:
                return Answer(200, self.data_sources[uid]) if uid in self.data_sources else refused(404, "not found")
            case ["PUT", "datasources", "uid", uid]:
                return self._stored(uid, body, "Datasource updated")
            case ["GET", "annotations"]:
                return self._find_annotations(query)
            case ["POST", "annotations"]:
                return self._annotate(body)
            case ["PATCH", "annotations", number]:
                return self._patch(int(number), body)
            case ["DELETE", "annotations", number]:
                self.annotations.pop(int(number), None)
                return Answer(200, {"message": "Annotation deleted"})
            case [_, "v1", "provisioning", *rest]:
                found = self.alerting.answer(verb, [unquote(part) for part in rest], body, self.folders)
                if found is not None:
                    return found
        raise AssertionError(f"the contract has {verb} {path}, this server does not")

    def _add_folder(self, body: Json) -> Answer:
        if body["uid"] in self.folders:
            return refused(409, "a folder with the same uid already exists")
        folder = {"id": next(self.ids), "uid": body["uid"], "title": body["title"], "version": 1}
        self.folders[body["uid"]] = folder
        return Answer(200, folder)

    def _store_dashboard(self, body: Json) -> Answer:
        dashboard = body["dashboard"]
        uid, known = dashboard["uid"], self.dashboards.get(dashboard["uid"])
        if body["folderUid"] not in self.folders:
            return refused(404, "folder not found")
        if known and not body["overwrite"]:
            return refused(412, "The dashboard has been changed by someone else")
        number = known["dashboard"]["id"] if known else next(self.ids)
        version = known["dashboard"]["version"] + 1 if known else 1
        stored = {**dashboard, "id": number, "version": version}
        self.dashboards[uid] = {"dashboard": stored, "meta": {"folderUid": body["folderUid"]}}
        said = {"id": number, "uid": uid, "url": f"/d/{uid}", "status": "success", "version": version}
        return Answer(200, {**said, "title": dashboard["title"]})

    def _add_data_source(self, body: Json) -> Answer:
        if body["uid"] in self.data_sources or body["name"] in {s["name"] for s in self.data_sources.values()}:
            return refused(409, "data source with the same name already exists")
        return self._stored(body["uid"], body, "Datasource added")

    def _stored(self, uid: str, body: Json, message: str) -> Answer:
        known = self.data_sources.get(uid)
        kept = {key: value for key, value in body.items() if key != "secureJsonData"}
        secret = dict.fromkeys(body.get("secureJsonData", {}), True)
        stored = {**kept, "uid": uid, "id": known["id"] if known else next(self.ids), "secureJsonFields": secret}
        self.data_sources[uid] = stored
        said = {"datasource": stored, "id": stored["id"], "message": message, "name": stored["name"]}
        return Answer(200, said)

    def _find_annotations(self, query: dict[str, list[str]]) -> Answer:
        wanted, limit = set(query.get("tags", [])), int(query.get("limit", ["100"])[0])
        found = [a for a in self.annotations.values() if wanted <= set(a["tags"])]
        return Answer(200, copy.deepcopy(sorted(found, key=lambda a: -a["timeEnd"])[:limit]))

    def _annotate(self, body: Json) -> Answer:
        if len(json.dumps(body["tags"], ensure_ascii=False).encode()) > 500:
            return refused(400, "tags length exceeds the maximum of 500")
        number = next(self.ids)
        self.annotations[number] = {"id": number, **body}
        return Answer(200, {"id": number, "message": "Annotation added"})

    def _patch(self, number: int, body: Json) -> Answer:
        if number not in self.annotations:
            return refused(404, "Annotation not found")
        self.annotations[number].update(body)
        return Answer(200, {"message": "Annotation patched"})
