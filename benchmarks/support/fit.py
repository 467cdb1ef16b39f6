"""Fits the coefficients of `evaluators/support/coefficients.toml` on people's labels, cross-validated by source."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from benchmarks.validity.measures import Flags, Floats

FOLDS, SEEDS = 10, (0, 1, 2)
PENALTY = 3.0  # of the squared coefficients of features of unit variance
# Errors of polarity are too few in the labels to fit. Their coefficient is given: higher, it finds more of the changed
# negations of `paraphrases.toml`, and costs AUROC on the labels.
GIVEN = {"reversed": 2.0}


@dataclass(frozen=True, slots=True)
class Fit:
    """Coefficients in the units of the features."""

    names: tuple[str, ...]
    constant: float
    slopes: Floats

    def risk(self, rows: Floats) -> Floats:
        """Return the probability of a hallucination for each row."""
        return 1.0 / (1.0 + np.exp(-(self.constant + rows @ self.slopes)))


def fit(names: Sequence[str], rows: Floats, bad: Flags) -> Fit:
    """Fit a logistic model with an L2 penalty; no coefficient is below 0, and those of `GIVEN` are as they are."""
    free = [i for i, name in enumerate(names) if name not in GIVEN]
    offset = sum((rows[:, i] * GIVEN[name] for i, name in enumerate(names) if name in GIVEN), np.zeros(len(rows)))
    chosen = rows[:, free]
    mean, deviation = chosen.mean(axis=0), chosen.std(axis=0)
    deviation[deviation == 0] = 1.0
    unit = (chosen - mean) / deviation
    sign = np.where(bad, 1.0, -1.0)

    def loss(given: Floats) -> tuple[float, Floats]:
        log_odds = given[0] + unit @ given[1:] + offset
        missed = 1.0 / (1.0 + np.exp(sign * log_odds))
        slope = -sign * missed
        value = np.logaddexp(0.0, -sign * log_odds).sum() + 0.5 * PENALTY * (given[1:] ** 2).sum()
        return float(value), np.concatenate([[slope.sum()], unit.T @ slope + PENALTY * given[1:]])

    bounds = [(None, None)] + [(0.0, None)] * len(free)
    found = minimize(loss, np.zeros(1 + len(free)), jac=True, bounds=bounds, method="L-BFGS-B").x
    slopes = np.array([GIVEN.get(name, 0.0) for name in names])
    slopes[free] = found[1:] / deviation
    return Fit(tuple(names), float(found[0] - (found[1:] * mean / deviation).sum()), slopes)


def cross_validated(names: Sequence[str], rows: Floats, bad: Flags, sources: Sequence[str]) -> Floats:
    """Return the risk of each row by a fit without any answer to its source, averaged over several divisions."""
    distinct, of_row = np.unique(np.array(sources), return_inverse=True)
    risk = np.zeros(len(rows))
    for seed in SEEDS:
        fold: npt.NDArray[np.intp] = np.random.default_rng(seed).permutation(len(distinct))[of_row] % FOLDS
        for one in range(FOLDS):
            held = fold == one
            risk[held] += fit(names, rows[~held], bad[~held]).risk(rows[held]) / len(SEEDS)
    return risk


def table(found: Mapping[str, Fit]) -> str:
    """Return the fits as `coefficients.toml` has them."""
    lines = []
    for name, one in found.items():
        lines += [f"[{name}]", f"constant = {one.constant:.3f}"]
        lines += [f"{feature} = {slope:.3f}" for feature, slope in zip(one.names, one.slopes, strict=True)]
        lines.append("")
    return "\n".join(lines)
