"""Programs that are built from Go modules for tests: once for each version, and kept in deploy/bin."""

import fcntl
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

GO = shutil.which("go")
FOLDER = Path(__file__).parents[2] / "deploy" / "bin"
_NICE = ("nice", "-n", "5")  # other tests run meanwhile


def kept(name: str, build: Callable[[Path], Path], folder: Path = FOLDER) -> Path:
    """The program of that name. If it is missing, `build` makes it in an empty folder: one process at a time."""
    program = folder / name
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            with TemporaryDirectory() as scratch:
                made = build(Path(scratch))
                aside = program.with_name(f".{name}")
                shutil.copy2(made, aside)
                aside.rename(program)
    return program


def go(*arguments: str, at: Path) -> bytes:
    """Run Go there, so that it does not hold up other tests; what it prints."""
    assert GO is not None, "Go is missing"
    done = subprocess.run([*_NICE, GO, *arguments], capture_output=True, check=False, cwd=at)
    assert done.returncode == 0, done.stderr[-4000:].decode(errors="replace")
    return done.stdout
