"""A user's prompt: its settings, and its template with placeholders for the fields of a trace."""

import re
from functools import cached_property
from pathlib import Path
from typing import Literal, Self, get_args

from pydantic import BaseModel, Field, model_validator

PromptField = Literal["question", "answer", "contexts", "expected"]
FIELDS: tuple[PromptField, ...] = get_args(PromptField)
LONGEST_PROMPT = 20_000  # characters: every call pays for them
VERDICT = "Your verdict is true or false."
_PREFIX = "byop."
_PLACEHOLDER = re.compile(r"\{\{(?P<text>\w+)\}\}|\{\s*(?P<field>[^\W\d]\w*)\s*\}")  # {{word}} stands for {word}


class UserPrompt(BaseModel, extra="forbid", frozen=True):
    """A prompt that leads the judge to true or false. Its file is read once, when the settings are."""

    prompt: str | None = Field(default=None, description="The prompt, with placeholders such as {answer}.")
    file: Path | None = Field(default=None, description="File with the prompt, in place of `prompt`.")
    good_verdict: bool = Field(default=True, description="Verdict of a trace that passes.")
    description: str = Field(default="", max_length=500, description="What it measures, for dashboards.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        _check_template(self.template)
        return self

    @cached_property
    def template(self) -> str:
        """The prompt with its placeholders, read once. Raises `ValueError`."""
        if (self.prompt is None) == (self.file is None):
            raise ValueError("set one of prompt (the text) and file (its path)")
        if self.prompt is not None:
            return self.prompt
        assert self.file is not None
        try:
            with self.file.open(encoding="utf-8") as file:
                return file.read(LONGEST_PROMPT + 1)
        except (OSError, ValueError) as error:  # ValueError: no UTF-8, or no path
            raise ValueError(f"file {self.file} cannot be read: {type(error).__name__}") from None

    @property
    def fields(self) -> tuple[PromptField, ...]:
        """The fields of a trace that the prompt needs."""
        named = _named(self.template)
        return tuple(field for field in FIELDS if field in named)

    @property
    def instructions(self) -> str:
        """The constant part of its calls: each placeholder names the input that follows in the fenced message."""
        return f"{_PLACEHOLDER.sub(_input_name, self.template).strip()}\n\n{VERDICT}"


def prompt_name(evaluator: str) -> str:
    """Return the name of a user's prompt in calls: no built-in prompt has a dot."""
    return f"{_PREFIX}{evaluator}"


def evaluator_of(prompt: str) -> str | None:
    """Return the evaluator of a user's prompt; None for a built-in prompt."""
    return prompt.removeprefix(_PREFIX) if prompt.startswith(_PREFIX) else None


def _named(template: str) -> list[str]:
    """Return the fields that its placeholders name, valid or not."""
    return [field for found in _PLACEHOLDER.finditer(template) if (field := found["field"])]


def _input_name(placeholder: re.Match[str]) -> str:
    field = placeholder["field"]
    return f'the input "{field}"' if field else f"{{{placeholder['text']}}}"


def _check_template(text: str) -> None:
    """Raise `ValueError` for a template that cannot be used."""
    if not text.strip():
        raise ValueError("the prompt is empty")
    if len(text) > LONGEST_PROMPT:
        raise ValueError(f"the prompt is longer than {LONGEST_PROMPT:,} characters")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("the prompt is not UTF-8") from None
    valid = ", ".join(f"{{{field}}}" for field in FIELDS)
    named = _named(text)
    if unknown := next((name for name in named if name not in FIELDS), None):
        raise ValueError(f"the prompt has an unknown placeholder {{{unknown[:40]}}} (valid: {valid})")
    if not named:
        raise ValueError(f"the prompt has no placeholder, so that every trace would get the same verdict: use {valid}")
