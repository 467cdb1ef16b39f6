"""Logistic regression with a squared penalty, by Newton's method. Pure."""

from typing import NamedTuple

import numpy as np

from drift.detectors.series import Flags, Floats

_MOST_STEPS = 50
_SETTLED = 1e-8  # largest move of a weight, relative to the largest weight or 1


class Line(NamedTuple):
    """log odds = x @ weights + intercept."""

    weights: Floats
    intercept: float

    def log_odds(self, x: Floats) -> Floats:
        """Of each row of x [n, dimension]."""
        found: Floats = x @ self.weights + self.intercept
        return found


def fitted(x: Floats, yes: Flags, penalty: float) -> Line:
    """The line of least sum of log losses over x [n, dimension], plus penalty / 2 of the squared weights.

    The intercept has no penalty, so some rows must say yes and some no.
    """
    rows = np.column_stack([x, np.ones(len(x))])
    ridge = np.full(rows.shape[1], penalty)
    ridge[-1] = 0.0
    w = np.zeros(rows.shape[1])
    loss = _loss(rows, yes, ridge, w)
    for _ in range(_MOST_STEPS):
        p = 1 / (1 + np.exp(-np.clip(rows @ w, -500, 500)))
        curve = (rows * (p * (1 - p))[:, None]).T @ rows + np.diag(ridge)
        step = np.linalg.solve(curve, rows.T @ (p - yes) + ridge * w)
        while (better := _loss(rows, yes, ridge, w - step)) > loss and np.abs(step).max() > _SETTLED:
            step = step / 2
        w, loss = w - step, better
        if np.abs(step).max() <= _SETTLED * max(1.0, np.abs(w).max()):
            break
    return Line(w[:-1], float(w[-1]))


def _loss(rows: Floats, yes: Flags, ridge: Floats, w: Floats) -> float:
    z = rows @ w
    return float(np.logaddexp(0.0, np.where(yes, -z, z)).sum() + ridge @ w**2 / 2)
