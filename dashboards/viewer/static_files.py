"""The viewer's own files: read once, compressed once, under a path that names their contents.

So browsers keep them for good, and a new version of ragtide is never shown with files of an old one.
"""

import gzip
import hashlib
import mimetypes
from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from typing import NamedTuple

from aiohttp import hdrs, web

_FOREVER = "public, max-age=31536000, immutable"
_LEAST_TO_COMPRESS = 1024  # bytes


class _File(NamedTuple):
    body: bytes
    compressed: bytes | None
    content_type: str


class StaticFiles:
    """Every file below `static/`; pages are the ones that end with .html."""

    def __init__(self) -> None:
        found = dict(_walk(resources.files(__package__) / "static"))
        digest = hashlib.sha256()
        for name, body in sorted(found.items()):
            digest.update(f"{name}\0{len(body)}\0".encode())
            digest.update(body)
        self.prefix = f"/static/{digest.hexdigest()[:16]}/"
        self._files = {name: _file(name, body) for name, body in found.items()}
        modules = sorted(name for name in found if name.endswith(".js") and not name.startswith(("vendor/", "theme")))
        preloads = "\n".join(f'<link rel="modulepreload" href="/static/{name}">' for name in modules)
        for name, body in found.items():
            if name.endswith(".html"):
                text = body.decode().replace("<!-- modules -->", preloads).replace("/static/", self.prefix)
                self._files[name] = _file(name, text.encode())

    def page(self, request: web.Request, name: str, status: int = 200) -> web.Response:
        """Answer with a page."""
        return _response(request, self._files[name], status)

    async def serve(self, request: web.Request) -> web.Response:
        """Answer with a file."""
        file = self._files.get(request.match_info["name"])
        if file is None or file.content_type == "text/html":
            raise web.HTTPNotFound
        answer = _response(request, file)
        if request.path.startswith(self.prefix):
            answer.headers[hdrs.CACHE_CONTROL] = _FOREVER
        return answer


def _walk(folder: Traversable, above: str = "") -> Iterator[tuple[str, bytes]]:
    for each in folder.iterdir():
        if each.is_dir():
            yield from _walk(each, f"{above}{each.name}/")
        else:
            yield f"{above}{each.name}", each.read_bytes()


def _file(name: str, body: bytes) -> _File:
    content_type = "text/javascript" if name.endswith(".js") else mimetypes.guess_type(name)[0] or "text/plain"
    compressed = gzip.compress(body, 6, mtime=0) if len(body) >= _LEAST_TO_COMPRESS else None
    return _File(body, compressed, content_type)


def _response(request: web.Request, file: _File, status: int = 200) -> web.Response:
    packed = file.compressed if "gzip" in request.headers.get(hdrs.ACCEPT_ENCODING, "") else None
    charset = "utf-8" if file.content_type.startswith("text/") or file.content_type.endswith("json") else None
    answer = web.Response(body=packed or file.body, status=status, content_type=file.content_type, charset=charset)
    if packed is not None:
        answer.headers[hdrs.CONTENT_ENCODING] = "gzip"
    answer.headers[hdrs.VARY] = hdrs.ACCEPT_ENCODING
    return answer
