"""Bring your own prompt: makes an evaluator of each prompt in the settings."""

from collections.abc import Iterator, Mapping
from dataclasses import make_dataclass, replace
from typing import Any

from ragtide.evaluators.judge.calls import Conversation, JudgeCall, JudgeUse, Section
from ragtide.evaluators.judge.rag import chunks_with_text, texts_of
from ragtide.evaluators.judge.replies import TrueOrFalse
from ragtide.evaluators.judge.user_prompt import PromptField, UserPrompt, prompt_name
from ragtide.evaluators.outcome import NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Budget, Evaluator, Need, NoParams, Shared, evaluator
from ragtide.evaluators.text.pass_metrics import PASS_METRICS, pass_metrics
from ragtide.evaluators.text.references import no_reference, references
from ragtide.evaluators.trace import Chunk

BUDGET = Budget(characters=100_000, items=1_000)  # all inputs go into one call
_TYPES: Mapping[PromptField, Any] = {
    "question": str,
    "answer": str,
    "contexts": tuple[Chunk, ...],
    "expected": tuple[str, ...],
}


def user_evaluators(prompts: Mapping[str, UserPrompt]) -> Iterator[Evaluator]:
    """Yield the evaluators of the prompts, which are named by their ids."""
    for id, prompt in prompts.items():
        yield _evaluator(id, prompt)


def _evaluator(id: str, prompt: UserPrompt) -> Evaluator:
    name, fields = prompt_name(id), prompt.fields

    def converse(row: Any, shared: Shared, params: NoParams) -> Conversation[Outcome]:
        sections = []
        for field in fields:
            section = _section(field, getattr(row, field))
            if isinstance(section, NotApplicable):
                return section
            sections.append(section)
        [reply] = yield [JudgeCall(name, tuple(sections), TrueOrFalse)]
        return Scored(pass_metrics(answer_fails=reply.verdict != prompt.good_verdict))

    @evaluator(
        id,
        version=1,
        domain="generation",
        method="judge",
        per_record=True,
        inputs=make_dataclass("Inputs", [(field, _TYPES[field]) for field in fields], frozen=True, slots=True),
        params=NoParams,
        metrics=PASS_METRICS,
        needs={Need.JUDGE},
        judge=JudgeUse((name,), converse),
        budget=BUDGET,
    )
    def judged(row: Any, shared: Shared, params: NoParams) -> Outcome:
        """Ask the judge."""
        return shared.judge(converse(row, shared, params))

    own = f"Whether a judge answers the prompt {id} with {str(prompt.good_verdict).lower()}."
    return replace(judged, description=" ".join(prompt.description.split()) or own)


def _section(field: PromptField, value: Any) -> Section | NotApplicable:
    """Return the section of a field, or why it has nothing to judge."""
    if field == "contexts":
        chunks = chunks_with_text(value)
        return chunks if isinstance(chunks, NotApplicable) else Section(field, tuple(texts_of(chunks)))
    if field == "expected":
        found = tuple(one.text for one in references(value))
        return Section(field, found) if found else no_reference(value)
    return Section(field, value) if value.strip() else NotApplicable(f"empty_{field}")
