"""What `from ragtide.evaluators import ...` gives, and that the package itself weighs nothing."""

import subprocess
import sys

import pytest

import ragtide.evaluators as evaluators
from ragtide.evaluators.checks import check_evaluator
from ragtide.evaluators.outcome import Scored
from ragtide.evaluators.spec import Evaluator, evaluator
from ragtide.evaluators.trace import Trace


def test_public_names_are_the_modules_own() -> None:
    assert all(getattr(evaluators, name) is not None for name in evaluators.__all__)
    assert evaluators.Evaluator is Evaluator
    assert evaluators.Scored is Scored
    assert evaluators.Trace is Trace
    assert evaluators.check_evaluator is check_evaluator
    assert evaluators.evaluator is evaluator


def test_a_name_that_is_not_public_is_not_there() -> None:
    name = "LANE_OF_METHOD"
    with pytest.raises(AttributeError, match=f"no attribute '{name}'"):
        getattr(evaluators, name)


def test_importing_the_package_loads_nothing_else() -> None:
    program = "import sys, ragtide.evaluators; print(sorted({'numpy', 'pydantic', 'msgspec'} & set(sys.modules)))"
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert output.stdout.strip() == "[]"
