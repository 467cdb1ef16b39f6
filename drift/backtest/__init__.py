"""Find the problems that settings would have raised on stored windows; nothing is written.

`backtest` evaluates as the jobs do; `diff_with_raised` compares its problems with those that were raised.
"""

from ragtide.drift.backtest.run import Diff, backtest, diff_with_raised, not_covered
from ragtide.drift.backtest.simulate import SimulatedProblem

__all__ = [
    "Diff",
    "SimulatedProblem",
    "backtest",
    "diff_with_raised",
    "not_covered",
]
