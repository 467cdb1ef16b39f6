"""Virtual environments of their own for programs that tests run: once for each file of requirements, in deploy/bin."""

import fcntl
import os
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

from tests.infra.go_programs import FOLDER

_NICE = ("nice", "-n", "5")  # other tests run meanwhile
_NAME_DIGITS = 12
_LONGEST_S = 600
# What uv says where it cannot reach a registry, unless that answered.
_UNREACHABLE, _ANSWERED = ("Failed to fetch", "error sending request", "Could not connect", "dns error"), "HTTP status"


class RegistryUnreachable(Exception):
    """The packages are not here, and no registry can be reached."""


def kept_python(requirements: Path, folder: Path = FOLDER) -> Path:
    """The interpreter of an environment with these packages alone.

    If it is missing, uv makes it: one process at a time. Raises `RegistryUnreachable`.
    """
    digits = sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()[:_NAME_DIGITS]
    kept = f"{requirements.stem}-{sys.version_info.major}.{sys.version_info.minor}"
    environment = folder / f"{kept}-{digits}"
    python, complete = environment / "bin" / "python", environment / "complete"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f".{kept}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not complete.exists():
            for outdated in folder.glob(f"{kept}-*"):
                shutil.rmtree(outdated)
            _uv("venv", "--python", sys.executable, str(environment))
            _uv("pip", "install", "--python", str(python), "--requirement", str(requirements))
            complete.touch()
    return python


def _uv(*arguments: str) -> None:
    uv = Path(sys.executable).with_name("uv")
    assert uv.exists(), f"{uv} is missing: run make test, which installs it"
    variables = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    command = [*_NICE, str(uv), "--quiet", "--no-progress", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=variables, timeout=_LONGEST_S)
    if done.returncode and _ANSWERED not in done.stderr and any(words in done.stderr for words in _UNREACHABLE):
        raise RegistryUnreachable(done.stderr)
    assert done.returncode == 0, done.stderr[-4000:]
