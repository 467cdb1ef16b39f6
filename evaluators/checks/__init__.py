"""What tests of an evaluator call: `check_evaluator` and `check_golden`."""

from ragtide.evaluators.checks.check import CountingEncoder, CountingModel, check_evaluator, same
from ragtide.evaluators.checks.golden import check_golden, golden_traces

__all__ = ["CountingEncoder", "CountingModel", "check_evaluator", "check_golden", "golden_traces", "same"]
