"""Clusters found in a process of their own: finding them holds the interpreter for seconds, and a leader must answer.

Run as `python -m drift.topics.apart LEAST SEED`: an .npy of vectors comes in, one of labels goes out.
"""

import io
import os
import subprocess
import sys

import numpy as np

from drift.topics.clusters import Labels, clusters, what_is_missing
from evaluators.errors import Transient
from evaluators.spec import Vectors

FEW = 1_000  # whose clusters take a fraction of a second
_LONGEST_S = 600.0


def clusters_of(vectors: Vectors, least: int, seed: int, few: int = FEW) -> Labels:
    """As `clusters`; more than `few` vectors are another process's work.

    Raises `Unavailable`, and `Transient` where that process was killed or took ten minutes; a bug of it is one here.
    """
    if len(vectors) <= few or what_is_missing():
        return clusters(vectors, least, seed)
    command = [sys.executable, "-m", "drift.topics.apart", str(least), str(seed)]
    try:
        done = subprocess.run(command, input=_packed(vectors), capture_output=True, timeout=_LONGEST_S, check=False)
    except subprocess.TimeoutExpired:
        raise Transient(f"clusters of {len(vectors)} questions were not found in {_LONGEST_S:.0f} s") from None
    if done.returncode < 0:
        raise Transient(f"the search for clusters of questions was ended by signal {-done.returncode}")
    if done.returncode:
        raise RuntimeError(f"the search for clusters of questions failed:\n{done.stderr.decode(errors='replace')}")
    return _unpacked(done.stdout).astype(np.int64)


def _packed(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


def _unpacked(data: bytes) -> np.ndarray:
    found: np.ndarray = np.load(io.BytesIO(data), allow_pickle=False)
    return found


if __name__ == "__main__":
    os.nice(5)  # it is in no hurry, and lanes may run beside it
    sys.stdout.buffer.write(
        _packed(clusters(_unpacked(sys.stdin.buffer.read()), least=int(sys.argv[1]), seed=int(sys.argv[2])))
    )
