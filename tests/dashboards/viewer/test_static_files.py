"""The viewer's own files: small, of this host, compressed, and those of others unchanged."""

import hashlib
import re
from pathlib import Path

from tests.dashboards.viewer.serving import serving
from tests.dashboards.viewer.test_access import NOWHERE

STATIC = Path(__file__).parents[3] / "dashboards" / "viewer" / "static"
MARKUP = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
INLINE = r"<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle="  # what the policy of every page forbids
OURS = [path for path in STATIC.rglob("*") if path.is_file() and "vendor" not in path.parts]


def test_no_file_is_longer_than_400_lines() -> None:
    assert len(OURS) > 20
    assert not [path.name for path in OURS if len(path.read_text().splitlines()) > 400]


def test_vendored_files_are_those_of_their_packages() -> None:
    vendor = STATIC / "vendor"
    recorded = dict(
        re.findall(r"^\| `([^`]+)` \|.*\| `([0-9a-f]{64})` \|$", (vendor / "VENDORED.md").read_text(), re.M)
    )
    files = {str(path.relative_to(vendor)): path for path in vendor.rglob("*") if path.is_file()}
    files.pop("VENDORED.md")
    assert recorded == {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}


def test_no_file_names_another_host_or_makes_markup_of_data() -> None:
    for path in OURS:
        text = path.read_text().replace("http://www.w3.org/", "")
        assert not re.findall(r"https?://[a-z0-9]", text), path.name
        assert not re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text), (
            path.name
        )
        assert not re.findall(r"<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=", text) or path.suffix != ".html", (
            path.name
        )


def test_pages_name_files_by_their_contents_and_browsers_keep_them() -> None:
    with serving(NOWHERE) as served:
        page = served.get("/d/ragtide-application").text
        paths = set(re.findall(r'(?:src|href)="(/static/[^"]+)"', page))
        assert {f"/{path.relative_to(STATIC)}" for path in OURS if path.suffix == ".js"} == {
            "/" + path.split("/", 3)[3] for path in paths if path.endswith(".js") and "/vendor/" not in path
        }
        for path in paths:
            answer = served.get(path)
            assert answer.status_code == 200
            assert "immutable" in answer.headers["Cache-Control"]
        script = served.get(next(path for path in paths if path.endswith("uPlot.iife.min.js")))
        assert script.headers["Content-Encoding"] == "gzip"
        assert script.headers["Content-Type"].startswith("text/javascript")
        for wrong in (
            "/static/x/../server.py",
            "/static/x/%2e%2e/server.py",
            "/static/x/index.html",
            "/static/x/no.js",
        ):
            assert served.get(wrong).status_code == 404
