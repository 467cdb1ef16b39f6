"""What others say of two samples of embeddings: Evidently's methods for them by their defaults, and MMD."""

from collections.abc import Callable, Mapping

import numpy as np

from ragtide.evaluators.spec import Vectors

Rival = Callable[[Vectors, Vectors], bool]
_PERMUTATIONS = 100
_LEVEL = 0.05
_MOST = 400  # questions of either sample by which MMD is judged


def ratio(new: Vectors, old: Vectors) -> bool:
    """More than a fifth of the components are further apart than a tenth of their standard deviation (Wasserstein)."""
    from scipy.stats import wasserstein_distance

    apart = [wasserstein_distance(a, b) / b.std() > 0.1 for a, b in zip(new.T, old.T, strict=True)]
    return bool(np.mean(apart) > 0.2)


def model(new: Vectors, old: Vectors) -> bool:
    """A linear classifier by stochastic gradients has an area of more than 0.55 on the half that it did not see."""
    from sklearn.linear_model import SGDClassifier
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import train_test_split

    x, y = np.concatenate([new, old]), np.repeat([1, 0], [len(new), len(old)])
    seen, held, of_seen, of_held = train_test_split(x, y, test_size=0.5, random_state=1)
    found = SGDClassifier(loss="log_loss", random_state=1).fit(seen, of_seen)
    return bool(roc_auc_score(of_held, found.predict_proba(held)[:, 1]) > 0.55)


def distance(new: Vectors, old: Vectors) -> bool:
    """The means are more than 0.2 apart."""
    return bool(np.linalg.norm(new.mean(axis=0) - old.mean(axis=0)) > 0.2)


def mmd(new: Vectors, old: Vectors) -> bool:
    """Maximum mean discrepancy, Gaussian kernel of the median distance, above 95 of 100 permutations (Gretton 2012)."""
    from scipy.spatial.distance import cdist

    rng = np.random.default_rng(1)
    each = min(_MOST, len(new), len(old))
    x = np.concatenate([rng.permutation(new)[:each], rng.permutation(old)[:each]])
    squared = cdist(x, x, "sqeuclidean")
    kernel = np.exp(-squared / np.median(squared[squared > 0]))
    sign = np.repeat([1.0, -1.0], each)
    found = sign @ kernel @ sign
    by_chance = [mixed @ kernel @ mixed for mixed in (rng.permutation(sign) for _ in range(_PERMUTATIONS))]
    return bool(np.mean(np.array(by_chance) >= found) < _LEVEL)


RIVALS: Mapping[str, Rival] = {
    "Evidently, ratio": ratio,
    "Evidently, model": model,
    "Evidently, distance": distance,
    "MMD, p < 0.05": mmd,
}
