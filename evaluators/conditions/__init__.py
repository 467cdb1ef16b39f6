"""Conditions on a text: a boolean expression over strings and regular expressions, in linear time."""

from ragtide.evaluators.conditions.condition import Condition, Subject, holds, steps, unmet_terms
from ragtide.evaluators.conditions.constraints import from_constraints
from ragtide.evaluators.conditions.expression import parse
from ragtide.evaluators.conditions.patterns import Malformed

__all__ = ["Condition", "Malformed", "Subject", "from_constraints", "holds", "parse", "steps", "unmet_terms"]
