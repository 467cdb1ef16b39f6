"""Alertmanager's newest release, built from its Go module: distributions have older ones."""

import json
import shutil
import stat
from pathlib import Path

from tests.infra.go_programs import go, kept

VERSION = "0.35.0"
MODULE = f"github.com/prometheus/alertmanager@v{VERSION}"
_NAMED = f"-X github.com/prometheus/common/version.Version={VERSION}"
_PAGES = ("elm", "mantine")  # its web pages, which the module does not hold and nothing here asks for


def program() -> Path:
    """Build it once in about two minutes of the processor."""
    return kept(f"alertmanager-{VERSION}", _build)


def _build(scratch: Path) -> Path:
    source, made = scratch / "source", scratch / "alertmanager"
    module = json.loads(go("mod", "download", "-json", MODULE, at=scratch))
    shutil.copytree(Path(module["Dir"]), source)
    for folder in (source, *(each for each in source.rglob("*") if each.is_dir())):
        folder.chmod(folder.stat().st_mode | stat.S_IWUSR)
    for page in _PAGES:
        (source / "ui" / "app" / "dist" / page).mkdir(parents=True)
        (source / "ui" / "app" / "dist" / page / "index.html").touch()
    go("build", "-ldflags", _NAMED, "-o", str(made), "./cmd/alertmanager", at=source)
    return made
