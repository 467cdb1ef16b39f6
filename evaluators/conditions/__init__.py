"""Conditions on a text: a boolean expression over strings and regular expressions, in linear time."""

from evaluators.conditions.condition import Condition, Subject, broken, holds, steps
from evaluators.conditions.constraints import from_constraints
from evaluators.conditions.expression import parse
from evaluators.conditions.patterns import Malformed

__all__ = ["Condition", "Malformed", "Subject", "broken", "from_constraints", "holds", "parse", "steps"]
