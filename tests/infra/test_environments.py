"""An environment is made once for each file of requirements, and one that is incomplete is made again."""

import subprocess
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.infra.environments import RegistryUnreachable, kept_python


def test_an_environment_is_made_once_for_each_file_of_requirements(tmp_path: Path) -> None:
    requirements = tmp_path / "none.txt"
    requirements.write_text("# nothing\n")
    python = kept_python(requirements, tmp_path / "kept")
    found = subprocess.run([python, "-c", "import sys; print(sys.prefix)"], capture_output=True, text=True, check=True)
    assert Path(found.stdout.strip()) == python.parents[1]
    sign = python.parents[1] / "sign"
    sign.touch()
    assert kept_python(requirements, tmp_path / "kept") == python
    assert sign.exists()

    (python.parents[1] / "complete").unlink()  # as after a kill
    assert kept_python(requirements, tmp_path / "kept") == python
    assert not sign.exists()

    requirements.write_text("# nothing again\n")
    assert kept_python(requirements, tmp_path / "kept") != python
    assert not python.exists(), "the outdated one"


def test_without_a_registry_it_says_so_and_leaves_nothing_that_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_NO_CONFIG", "1")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    requirements = tmp_path / "one.txt"
    requirements.write_text("opentelemetry-sdk==1.45.2\n")
    with pytest.raises(RegistryUnreachable):
        kept_python(requirements, tmp_path / "kept")
    assert not [*(tmp_path / "kept").rglob("complete")]


def test_requirements_that_no_registry_has_are_an_error(tmp_path: Path) -> None:
    requirements = tmp_path / "bad.txt"
    requirements.write_text("this is no requirement\n")
    with pytest.raises(AssertionError, match="requirement"):
        kept_python(requirements, tmp_path / "kept")


def test_a_registry_that_answers_with_an_error_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(500)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Broken) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("UV_DEFAULT_INDEX", f"http://127.0.0.1:{server.server_port}/simple")
        monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
        monkeypatch.setenv("UV_NO_CONFIG", "1")
        monkeypatch.setenv("UV_HTTP_RETRIES", "0")
        requirements = tmp_path / "one.txt"
        requirements.write_text("opentelemetry-sdk==1.45.2\n")
        with pytest.raises(AssertionError, match="500"):
            kept_python(requirements, tmp_path / "kept")
        server.shutdown()
