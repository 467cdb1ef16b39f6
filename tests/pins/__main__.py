"""Runs the tests of this package one after the other; with `--write` they write their golden files first."""

import os
import subprocess
import sys
from pathlib import Path

from tests.pins.golden import WRITE


def main() -> int:
    arguments = [one for one in sys.argv[1:] if one != "--write"]
    environment = {**os.environ, WRITE: "1" if "--write" in sys.argv[1:] else ""}
    folder = Path(__file__).parent
    chosen = [str(folder / f"test_{one}.py") for one in arguments] or [str(folder)]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen]
    return subprocess.run(command, env=environment, cwd=folder.parents[1], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
