"""A path that cannot be used is one line with the path, whichever command met it; a bug keeps its traceback."""

import errno
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ragtide.stream.cli import main


def run(*args: str) -> Result:
    return CliRunner().invoke(main, args, env={"RAGTIDE_CONFIG": None})


@pytest.mark.parametrize("args", [("dashboards", "build"), ("dashboards", "alerts")], ids=" ".join)
def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path, args: tuple[str, ...]) -> None:
    taken = tmp_path / "taken"
    taken.write_text("a file, and no folder")
    found = run(*args, "--out", str(taken / "made" / "out"))
    assert (found.exit_code, type(found.exception)) == (2, SystemExit)
    (line,) = found.stderr.splitlines()
    assert line.startswith(f"ragtide: {taken}")
    assert "Not a directory; check the path" in line


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (PermissionError(errno.EACCES, "Permission denied", "/srv/out"), "/srv/out cannot be used: Permission denied"),
        (OSError(errno.ENOSPC, "No space left on device"), "No space left on device; free space"),
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"), None),
    ],
)
def test_only_a_bug_has_a_traceback(monkeypatch: pytest.MonkeyPatch, error: OSError, said: str | None) -> None:
    def failing(*_: object) -> None:
        raise error

    monkeypatch.setattr("ragtide.stream.cli.migrate.settings_from", failing)
    found = run("migrate")
    if said is None:
        assert found.exception is error
    else:
        assert found.exit_code == 2
        assert said in found.stderr
