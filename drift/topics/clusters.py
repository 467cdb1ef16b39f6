"""Cluster vectors: dense regions (HDBSCAN, Campello et al. 2013), or k-means if there are none.

Distances in hundreds of dimensions are slow and nearly equal, so vectors are first projected on their principal
components. The same vectors in the same order give the same clusters.
"""

import io
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import numpy.typing as npt

from ragtide.drift.topics.model import principal_components
from ragtide.evaluators.errors import Transient, Unavailable
from ragtide.evaluators.spec import Vectors

Labels = npt.NDArray[np.int64]

NO_CLUSTER = -1
MAX_IN_PROCESS = 1_000  # vectors; their clusters take a fraction of a second
_TIMEOUT_S = 600.0
INSTALL = "pip install 'ragtide[insights]'"
_DIMENSIONS = 32
_NEIGHBOURS = 5  # that make a vector part of a dense region
_CLUSTER_COUNTS = range(2, 9)
_MIN_SILHOUETTE = 0.15  # mean silhouette of a cluster: in noise 0.1 at most, of true ones 0.2 to 0.6
_DIGITS = 9
_SILHOUETTE_SAMPLE = 2_000  # vectors


def find_clusters(vectors: Vectors, min_size: int, seed: int) -> Labels:
    """Return the cluster of each vector [n, dimension], from 0 on; -1: none. Each has `min_size` vectors at least.

    Takes O(n²) time and holds the interpreter: see `find_clusters_apart`. Raises `Unavailable` without scikit-learn.
    """
    if missing := missing_package():
        raise Unavailable(missing)
    from sklearn.cluster import HDBSCAN

    if len(vectors) < 2 * min_size:
        return np.full(len(vectors), NO_CLUSTER)
    projected = principal_components(vectors, _DIMENSIONS)
    found = HDBSCAN(min_cluster_size=min_size, min_samples=_NEIGHBOURS, copy=True).fit_predict(projected)
    found = _drop_weak(projected, found.astype(np.int64), seed)
    return found if found.max() > 0 else _k_means(projected, min_size, seed)


def find_clusters_apart(vectors: Vectors, min_size: int, seed: int, max_in_process: int = MAX_IN_PROCESS) -> Labels:
    """Run `find_clusters`, in a child process if there are more than `max_in_process` vectors.

    Raises `Unavailable`, and `Transient` if the child was killed or took ten minutes.
    """
    if len(vectors) <= max_in_process or missing_package():
        return find_clusters(vectors, min_size, seed)
    command = [sys.executable, "-m", "ragtide.drift.topics.cluster_process", str(min_size), str(seed)]
    try:
        done = subprocess.run(command, input=pack(vectors), capture_output=True, timeout=_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise Transient(f"clusters of {len(vectors)} questions were not found in {_TIMEOUT_S:.0f} s") from None
    if done.returncode < 0:
        raise Transient(f"the search for clusters of questions was ended by signal {-done.returncode}")
    if done.returncode:
        raise RuntimeError(f"the search for clusters of questions failed:\n{done.stderr.decode(errors='replace')}")
    return unpack(done.stdout).astype(np.int64)


def missing_package() -> str | None:
    """Return the missing package and how to install it, or None. Loads nothing."""
    return None if find_spec("sklearn") else f"scikit-learn is not installed: {INSTALL}"


def _drop_weak(projected: npt.NDArray[np.float64], labels: Labels, seed: int) -> Labels:
    """Keep clusters that are separated from the others: HDBSCAN finds a few small ones in noise, too."""
    from sklearn.metrics import silhouette_samples

    some = np.flatnonzero(labels != NO_CLUSTER)
    some = np.random.default_rng(seed).permutation(some)[:_SILHOUETTE_SAMPLE]
    if len(np.unique(labels[some])) < 2:
        return np.full(len(labels), NO_CLUSTER)
    silhouette = silhouette_samples(projected[some], labels[some])
    kept = [label for label in np.unique(labels[some]) if silhouette[labels[some] == label].mean() >= _MIN_SILHOUETTE]
    renumbered = np.full(int(labels.max()) + 2, NO_CLUSTER)  # the last item stands for NONE
    renumbered[kept] = np.arange(len(kept))
    return renumbered[labels]


def _k_means(projected: npt.NDArray[np.float64], min_size: int, seed: int) -> Labels:
    """Return the number of clusters with the best silhouette; none if it is poor or a cluster too small."""
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score

    best, silhouette = np.full(len(projected), NO_CLUSTER), _MIN_SILHOUETTE
    most = min(len(projected) // min_size, len(np.unique(projected.round(_DIGITS), axis=0)))
    for parts in _CLUSTER_COUNTS:
        if parts > most:
            break
        labels = KMeans(parts, n_init=4, random_state=seed).fit_predict(projected).astype(np.int64)
        if np.bincount(labels, minlength=parts).min() < min_size:
            continue
        size = min(_SILHOUETTE_SAMPLE, len(projected))
        mean = silhouette_score(projected, labels, sample_size=size, random_state=seed)
        if mean > silhouette:
            best, silhouette = labels, mean
    return best


def pack(array: np.ndarray) -> bytes:
    """Serialize for the other process."""
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


def unpack(data: bytes) -> np.ndarray:
    """Deserialize; refuse pickles."""
    found: np.ndarray = np.load(io.BytesIO(data), allow_pickle=False)
    return found
