"""Find clusters in a child process: clustering holds the interpreter for seconds, and a leader must answer.

Run as `python -m ragtide.drift.topics.cluster_process MIN_SIZE SEED`: reads an .npy of vectors, writes one of labels.
"""

import io
import os
import subprocess
import sys

import numpy as np

from ragtide.drift.topics.clusters import Labels, find_clusters, missing_package
from ragtide.evaluators.errors import Transient
from ragtide.evaluators.spec import Vectors

MAX_IN_PROCESS = 1_000  # vectors; their clusters take a fraction of a second
_TIMEOUT_S = 600.0


def find_clusters_apart(vectors: Vectors, min_size: int, seed: int, max_in_process: int = MAX_IN_PROCESS) -> Labels:
    """Run `find_clusters`, in a child process if there are more than `max_in_process` vectors.

    Raises `Unavailable`, and `Transient` if the child was killed or took ten minutes.
    """
    if len(vectors) <= max_in_process or missing_package():
        return find_clusters(vectors, min_size, seed)
    command = [sys.executable, "-m", "ragtide.drift.topics.cluster_process", str(min_size), str(seed)]
    try:
        done = subprocess.run(command, input=_pack(vectors), capture_output=True, timeout=_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise Transient(f"clusters of {len(vectors)} questions were not found in {_TIMEOUT_S:.0f} s") from None
    if done.returncode < 0:
        raise Transient(f"the search for clusters of questions was ended by signal {-done.returncode}")
    if done.returncode:
        raise RuntimeError(f"the search for clusters of questions failed:\n{done.stderr.decode(errors='replace')}")
    return _unpack(done.stdout).astype(np.int64)


def _pack(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


def _unpack(data: bytes) -> np.ndarray:
    found: np.ndarray = np.load(io.BytesIO(data), allow_pickle=False)
    return found


if __name__ == "__main__":
    os.nice(5)  # lanes may run on the same machine
    sys.stdout.buffer.write(
        _pack(find_clusters(_unpack(sys.stdin.buffer.read()), min_size=int(sys.argv[1]), seed=int(sys.argv[2])))
    )
