"""How long `ragtide --help` takes, beside Python with click alone.

`python -m benchmarks.command_help`: the quickest of twenty starts each, in turn, since whatever else runs only makes
one slower; a process that imports click is the least that a command line on click can take.
"""

import subprocess
import sys
import time

STARTS = 20
LIMIT_S = 0.3
OURS = ["-c", "import sys; sys.argv = ['ragtide', '--help']; from ragtide.stream.cli import main; main()"]
RIVAL = ["-c", "import click"]


def seconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, *command], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def main() -> int:
    seconds(OURS)  # the first one compiles
    took = [(seconds(OURS), seconds(RIVAL)) for _ in range(STARTS)]
    ours_s, rival_s = map(min, zip(*took, strict=True))
    print(f"ragtide --help {ours_s:.3f} s (limit {LIMIT_S} s), import click {rival_s:.3f} s: {ours_s / rival_s:.2f}")
    return int(ours_s > LIMIT_S)


if __name__ == "__main__":
    raise SystemExit(main())
