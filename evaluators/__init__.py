"""Everything to write and test an evaluator with. Importing it loads nothing else.

    from ragtide.evaluators import Metric, Scored, evaluator

Names are imported when they are first used: the command line imports this package and must not wait for numpy.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__all__ = ["Budget", "Chunk", "Evaluator", "Evidence", "Failed", "Finding", "Metric", "Need", "NoParams"]
__all__ += ["NotApplicable", "Outcome", "Scored", "Sentence", "Shared", "Trace", "Vectors"]
__all__ += ["check_evaluator", "check_golden", "evaluator", "golden_traces"]
__all__ += ["ClassValue", "Combined", "class_label", "name_and_labels", "part_key"]

if TYPE_CHECKING:
    from ragtide.evaluators.checks import check_evaluator, check_golden, golden_traces
    from ragtide.evaluators.outcome import Evidence, Failed, Finding, NotApplicable, Outcome, Scored
    from ragtide.evaluators.parts import ClassValue, Combined, class_label, name_and_labels, part_key
    from ragtide.evaluators.spec import Budget, Evaluator, Metric, Need, NoParams, Sentence, Shared, Vectors, evaluator
    from ragtide.evaluators.trace import Chunk, Trace
else:

    def __getattr__(name: str) -> object:
        """Import the public name from the first module that has it."""
        if name in __all__:
            for home in ("outcome", "trace", "parts", "spec", "checks"):  # the lightest first
                found = getattr(import_module(f"{__name__}.{home}"), name, None)
                if found is not None:
                    return found
        raise AttributeError(f"module 'ragtide.evaluators' has no attribute {name!r}")
