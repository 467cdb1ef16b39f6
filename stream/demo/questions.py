"""Questions of the demo's users: made from the corpus by templates, the same for the same seed."""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ragtide.stream.demo.corpus import Passage

GOLDEN_SHARE = 0.25  # questions that come with a reference answer and a condition on the answer

_ABOUT = (
    "What does {subject} do?",
    "What is {subject} for?",
    "Can you explain {subject} to me?",
    "When would I use {subject}?",
)
_TASK = (
    "How do I {task} with {module}?",
    "What in {module} can {task}?",
    "I need to {task}: what does {module} offer?",
)
_TASK_LIKE = re.compile(
    r"(?:add|append|change|check|choose|clear|convert|copy|count|create|delete|expand|extract|find|"
    r"format|generate|get|insert|iterate|join|list|load|make|mark|match|merge|move|normalize|open|"
    r"parse|print|put|read|record|recursively|release|remove|replace|return|save|search|send|set|"
    r"shuffle|sort|split|start|stop|transform|turn|unpack|update|wait|wrap|write)\s",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Question:
    """A question, the passage that answers it, and whether it is one of the golden ones."""

    text: str
    passage: Passage
    golden: bool


def ask_about(passages: Sequence[Passage], rng: random.Random) -> Question:
    """Make one question about one passage, both chosen by `rng`."""
    passage = rng.choice(passages)
    golden = rng.random() < GOLDEN_SHARE
    if _TASK_LIKE.match(passage.purpose) and rng.random() < 0.5:
        task = passage.purpose[0].lower() + passage.purpose[1:]
        return Question(rng.choice(_TASK).format(task=task, module=passage.module), passage, golden)
    return Question(rng.choice(_ABOUT).format(subject=passage.subject), passage, golden)
