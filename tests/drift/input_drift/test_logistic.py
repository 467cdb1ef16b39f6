"""The line against scikit-learn's, and where no penalty would hold it."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from ragtide.drift.input_drift.classifier_test import fit_logistic


@pytest.mark.parametrize("penalty", [0.1, 10.0, 300.0])
def test_it_is_scikit_learns(penalty: float) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(300, 7)) * [5, 3, 1, 1, 1, 0.1, 0.01]
    yes = rng.random(300) < 1 / (1 + np.exp(-x[:, 0] + 0.5 * x[:, 2] + 0.3))
    reference = LogisticRegression(C=1 / penalty, tol=1e-10, max_iter=10_000).fit(x, yes)
    found = fit_logistic(x, yes, penalty)
    assert found.weights == pytest.approx(reference.coef_[0], abs=1e-5)
    assert found.intercept == pytest.approx(reference.intercept_[0], abs=1e-5)
    assert found.log_odds(x) == pytest.approx(reference.decision_function(x), abs=1e-4)


def test_rows_that_a_plane_parts_have_a_line_all_the_same() -> None:
    x = np.linspace(-100, 100, 50)[:, None] * [1.0, 1e3]
    found = fit_logistic(x, x[:, 0] > 0, 1e-6)
    assert np.isfinite(found.weights).all()
    assert ((found.log_odds(x) > 0) == (x[:, 0] > 0)).all()
