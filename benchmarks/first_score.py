"""From a fresh checkout to the demo's first score: installed size, seconds and what comes over the network.

`python -m benchmarks.first_score`: copies the tracked files, lets `make local` fill an empty environment with an empty
cache of packages, and starts the demo until it says that the first trace is scored. Installing is bounded by the
network, so that the goal is for a line of `MEGABYTES_S`: the time of the install from a cache that is full, the bytes
of the packages at that rate, and the demo's start.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

GOAL_S = 90.0
MEGABYTES_S = 20.0
ROOT = Path(__file__).parents[1]


def checkout(folder: Path) -> Path:
    """The tracked files, as a clone has them."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file() or (ROOT / name).is_symlink():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name, follow_symlinks=False)
    return folder


def installed_s(folder: Path, environment: Mapping[str, str]) -> float:
    """Seconds of `make local` into an environment that is not there yet."""
    shutil.rmtree(folder / ".venv", ignore_errors=True)
    began = time.perf_counter()
    subprocess.run(["make", "local"], cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


def first_score_s(folder: Path, environment: Mapping[str, str]) -> float:
    """Seconds from the command to the line that begins with 00:00."""
    command = ["make", "demo", "DEMO_ARGS=--minutes 0.1"]
    began = time.perf_counter()
    demo = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
    assert demo.stdout is not None
    seen = next((time.perf_counter() - began for line in demo.stdout if line.startswith("00:00")), None)
    said, _ = demo.communicate(timeout=60)
    if seen is None or demo.returncode:
        raise SystemExit(f"the demo did not come to its first score, or ended with {demo.returncode}:\n{said}")
    return seen


def wheels_mb(environment: Mapping[str, str], folder: Path) -> float:
    """Megabytes of the packages as they come, by a download of just what is installed."""
    python, listed, wheels = str(folder / ".venv/bin/python"), folder / "installed.txt", folder / "wheels"
    freeze = [python, "-m", "pip", "freeze", "--exclude-editable"]
    listed.write_text(subprocess.run(freeze, capture_output=True, text=True, check=True).stdout)
    download = [python, "-m", "pip", "download", "--quiet", "--no-deps", "--requirement", str(listed)]
    subprocess.run([*download, "--dest", str(wheels)], env=environment, check=True)
    return sum(file.stat().st_size for file in wheels.iterdir()) / 1e6


def main() -> int:
    """0 where install and start stay within `GOAL_S` on a line of `MEGABYTES_S`."""
    with tempfile.TemporaryDirectory() as place:
        folder = checkout(Path(place) / "checkout")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("RAGTIDE_", "VENV"))}
        environment |= {"UV_CACHE_DIR": f"{place}/cache"}
        fetched_s = installed_s(folder, environment)
        cached_s = installed_s(folder, environment)
        start_s = first_score_s(folder, environment)
        megabytes = wheels_mb(environment, folder)
    there_s = cached_s + megabytes / MEGABYTES_S + start_s
    print(f"install {fetched_s:.0f} s here, {cached_s:.0f} s from a full cache; {megabytes:.0f} MB of packages")
    print(f"from `make demo` to the first score, installed: {start_s:.0f} s")
    print(f"total here {fetched_s + start_s:.0f} s; at {MEGABYTES_S:.0f} MB/s {there_s:.0f} s of {GOAL_S:.0f} s")
    return 0 if there_s <= GOAL_S else 1


if __name__ == "__main__":
    sys.exit(main())
