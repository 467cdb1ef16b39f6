"""Checks what the decorator `evaluator` is given. Each mistake is a `TypeError` that says what to write instead."""

import dataclasses
import inspect
import types
import typing
from collections.abc import Collection, Iterable, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel

from ragtide.evaluators.trace import Trace

T = TypeVar("T")
_BATCHES = (Sequence, Iterable, Collection, list, tuple)


def required_fields(id: str, inputs: Any) -> tuple[str, ...]:
    """Return the fields of `inputs` that a trace may lack and whose type does not admit None.

    Raises TypeError unless it is a dataclass of `Trace` fields.
    """
    if not isinstance(inputs, type) or not dataclasses.is_dataclass(inputs):
        raise _mistake(
            id,
            f"inputs must be a dataclass, not {_name_of(inputs)}: write @dataclass(frozen=True) above a class whose "
            "fields are Trace fields, such as answer: str",
        )
    hints = typing.get_type_hints(inputs)
    unknown = sorted(set(hints) - set(Trace.__struct_fields__))
    if unknown:
        raise _mistake(id, f"inputs must be a dataclass of Trace fields; a Trace has no {', '.join(unknown)}")
    of_trace = typing.get_type_hints(Trace)
    return tuple(name for name, hint in hints.items() if _admits_none(of_trace[name]) and not _admits_none(hint))


def check_params(id: str, params: Any) -> None:
    """Raise TypeError unless the parameters are a pydantic model."""
    if not isinstance(params, type) or not issubclass(params, BaseModel):
        raise _mistake(
            id,
            f"params must be a pydantic model, not {_name_of(params)}: write class Params(BaseModel, frozen=True) with "
            "a default for every field, or leave params out",
        )


def check_metrics(id: str, metrics: Any, metric: type[T]) -> tuple[T, ...]:
    """Return the metrics as a tuple. Raises TypeError unless they are an iterable of `metric`."""
    given = tuple(metrics) if isinstance(metrics, Iterable) else (metrics,)
    if not isinstance(metrics, Iterable) or not all(isinstance(each, metric) for each in given):
        raise _mistake(id, f"metrics must be a tuple of Metric, not {_name_of(metrics)}: write metrics=(Metric(...),)")
    return given


def check_function(id: str, function: Any, inputs: type, per_record: bool) -> None:
    """Raise TypeError if the function cannot be called as declared: on a row with `per_record`, else on a batch."""
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise _mistake(id, "the function must not be async: write def instead of async def, and await nothing")
    if per_record and inspect.isgeneratorfunction(function):
        raise _mistake(id, "with per_record=True the function must return one outcome, not yield")
    try:
        signature = inspect.signature(function)
        signature.bind(None, None, None)
    except TypeError:
        raise _mistake(id, f"the function must take three arguments: {_arguments(per_record)}") from None
    first = _annotation_of(function, next(iter(signature.parameters)))
    if not per_record and first is inputs:
        raise _mistake(id, "the function takes one row: declare it with per_record=True, or take a batch of rows")
    if per_record and typing.get_origin(first) in _BATCHES:
        raise _mistake(id, "the function takes a batch of rows: leave out per_record=True, or take one row")


def mistaken_rows(error: BaseException, inputs: type) -> str:
    """Say what to write if the error shows that a function took a batch for a row, or a row for a batch. Else ""."""
    if isinstance(error, AttributeError) and type(error.obj) is list:
        if error.name in {field.name for field in dataclasses.fields(inputs)}:
            return "; the function got a batch and takes one row: declare it with per_record=True"
    elif isinstance(error, TypeError) and f"'{inputs.__name__}' object is not" in str(error):
        return "; the function got one row and takes a batch: leave out per_record=True"
    return ""


def _arguments(per_record: bool) -> str:
    return "row, shared, params" if per_record else "rows, shared, params"


def _annotation_of(function: Any, name: str) -> Any:
    try:
        return typing.get_type_hints(function).get(name)
    except (NameError, TypeError):  # a name that only a type checker imports
        return None


def _name_of(value: Any) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else f"a {type(value).__name__}"


def _mistake(id: str, sentence: str) -> TypeError:
    return TypeError(f"evaluator {id!r}: {sentence}")


def _admits_none(hint: Any) -> bool:
    return type(None) in typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else False
