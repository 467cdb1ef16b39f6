"""Seeds each fault in a copy of the tree and runs its tests: ends with 1 where a fault is missed.

`python -m tests.faults [NAME ...]`: those faults; without a name all. First the tests must pass without any fault.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from tests.faults.seeded import ROOT, Fault, faults, product

_FAILED = 1  # pytest's exit status where tests ran and some failed
_LINKED = ("deploy/kafka/libs",)  # ignored by git, and needed by tests


def main() -> int:
    """The exit status: 0 all are found, 1 one is missed, 2 no such fault, or tests that fail without one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of faults; default: all")
    parser.add_argument("--unchecked", action="store_true", help="do not run the tests without a fault first")
    options = parser.parse_args()
    known = {one.name: one for one in faults()}
    if wrong := [name for name in options.names if name not in known]:
        parser.error(f"no fault {', '.join(wrong)}; there are: {', '.join(known)}")
    chosen = [known[name] for name in options.names] or list(known.values())
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        copy = copied(Path(folder) / "tree")
        tests = sorted({test for one in chosen for test in one.tests})
        if not options.unchecked and _status(copy, tests) != 0:
            click.echo("\n  ".join(["tests fail without any fault, some of:", *tests]))
            return 2
        texts = product(copy)
        missed = [one.name for one in chosen if not _is_found(one, copy, texts)]
    missing = [f"missed: {name}" for name in missed]
    click.echo("\n".join([f"{len(chosen) - len(missed)} of {len(chosen)} faults found", *missing]))
    return 1 if missed else 0


def _is_found(fault: Fault, copy: Path, texts: Mapping[Path, str]) -> bool:
    """Whether each of its tests fails with it; the copy is as before when this returns."""
    began, path = time.monotonic(), fault.place(texts)
    path.write_text(fault.changed(texts[path]))
    try:
        found = all(_status(copy, [test]) == _FAILED for test in fault.tests)
    finally:
        path.write_text(texts[path])
    click.echo(f"{'found ' if found else 'MISSED'} {fault.name} ({time.monotonic() - began:.0f} s)")
    return found


def _status(copy: Path, tests: Sequence[str]) -> int:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    # The copy's own package, and no compiled modules: a change within the same second must be seen.
    environment = {**os.environ, "PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=copy, env=environment, capture_output=True, check=False).returncode


def copied(to: Path) -> Path:
    """Copy the files that git knows or would add, with the links of the package, and link to what it ignores."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        source, target = ROOT / name, to / name
        if source.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)
    for name in _LINKED:
        if (ROOT / name).exists():
            (to / name).symlink_to(ROOT / name)
    return to


if __name__ == "__main__":
    sys.exit(main())
