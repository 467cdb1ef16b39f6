"""Places that packages are installed into, and commands that find them there: nothing comes from a network."""

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


def environ(packages: Path) -> dict[str, str]:
    """In which `pip install .` fills that folder, and everything in it is found."""
    return _environ(BIN) | {"PYTHONPATH": str(packages), "PIP_TARGET": str(packages)}


def of_a_wheel(folder: Path) -> dict[str, str]:
    """In which ragtide is installed from its wheel, and `pip install .` installs beside it: a new virtual environment.

    It borrows this one's other packages, and not its editable ragtide: Python reads the .pth files of its own folder of
    packages alone.
    """
    made = folder / "venv"
    venv.create(made)
    (packages,) = made.glob("lib/python*/site-packages")
    (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib"))
    (made / "bin" / "pip").write_text('#!/bin/sh\nexec python -m pip "$@"\n')
    (made / "bin" / "pip").chmod(0o755)
    variables = _environ(made / "bin")
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(folder / "dist"), versions=["standard"])
    done = shell(f"pip install --quiet --ignore-installed '{wheel}'", folder, variables)
    assert done.returncode == 0, done.stderr
    return variables


def shell(command: str, folder: Path, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run in bash, whatever comes of it."""
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, env=variables, capture_output=True, text=True, timeout=150, check=False
    )


def _environ(programs: Path) -> dict[str, str]:
    ours = ("RAGTIDE_", "PIP_", "PYTEST_", "PYTHONPATH")
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(ours)},
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PIP_NO_INDEX": "1",
        "PIP_NO_DEPS": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip reads it as --no-build-isolation=0: the backend of this environment
        "PIP_NO_CACHE_DIR": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_CONFIG_FILE": os.devnull,
    }
