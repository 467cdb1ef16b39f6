"""Errors that an evaluator raises while it is checked, with their tracebacks: only `run` catches them."""

import dataclasses
import functools
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from ragtide.evaluators.declaration import mistaken_rows
from ragtide.evaluators.run import where
from ragtide.evaluators.spec import Evaluator

_LONGEST_LINE, _MOST_LINES = 200, 30


class Crashes:
    """Records the errors of the functions of an evaluator. `first` is the first one, None if there were none."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._module = evaluator.score.__module__
        self._errors: dict[str, BaseException] = {}
        self._explained: set[str] = set()
        self.first: BaseException | None = None

    def recorded(self) -> Evaluator:
        """Return the evaluator with functions that record what they raise."""
        one = self._evaluator
        return dataclasses.replace(
            one,
            score=self._record(one.score),
            embeds=self._record(one.embeds) if one.embeds else None,
            asks=self._record(one.asks) if one.asks else None,
        )

    def explain(self, detail: str) -> str:
        """Return what is known of the crash with this `Failed.detail`: once its traceback, then nothing."""
        error = self._errors.get(detail)
        if error is None or detail in self._explained:
            return ""
        self._explained.add(detail)
        lines = self._traceback(error)[-_MOST_LINES:]
        shown = "".join(f"\n    {line[:_LONGEST_LINE]}" for line in lines)
        return f"{mistaken_rows(error, self._evaluator.inputs)}{shown}"

    def _record(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def recorded(*given: Any) -> Any:
            try:
                result = function(*given)
            except Exception as error:
                self._add(error)
                raise
            return self._iterate(result) if isinstance(result, Iterator) else result

        return recorded

    def _iterate(self, result: Iterator[Any]) -> Iterator[Any]:
        try:
            yield from result
        except Exception as error:
            self._add(error)
            raise

    def _add(self, error: BaseException) -> None:
        self._errors.setdefault(where(error, self._module), error)
        self.first = self.first or error

    def _traceback(self, error: BaseException) -> list[str]:
        """Format the steps from the first one in the evaluator's module on."""
        steps = error.__traceback__
        while steps is not None and steps.tb_frame.f_globals.get("__name__") != self._module:
            steps = steps.tb_next
        return "".join(traceback.format_exception(type(error), error, steps)).rstrip().split("\n")
