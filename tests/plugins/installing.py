"""A folder that packages are installed into, and commands that find them there: nothing comes from a network."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


def environ(packages: Path) -> dict[str, str]:
    """In which `pip install .` fills that folder, and everything in it is found."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RAGWATCH_", "PIP_", "PYTEST_"))}
    return {
        **kept,
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": f"{packages}{os.pathsep}{ROOT}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PIP_TARGET": str(packages),
        "PIP_NO_INDEX": "1",
        "PIP_NO_DEPS": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip reads it as --no-build-isolation=0: the backend of this environment
        "PIP_NO_CACHE_DIR": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_CONFIG_FILE": os.devnull,
    }


def shell(command: str, folder: Path, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run in bash, whatever comes of it."""
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, env=variables, capture_output=True, text=True, timeout=150, check=False
    )
