"""Find topics that fail more often than the rest, alone and by type of question."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ragtide.drift.insights.data import AppData
from ragtide.drift.insights.failing_sample import SampledTrace, failure_share
from ragtide.drift.insights.model import Insight, insight
from ragtide.drift.insights.weak_parts import READ, TYPE, WRITE, WeakPart, weak_parts, without
from ragtide.drift.topics import TOPIC

MIN_QUESTIONS = 20  # questions of a topic, and others


class Topic(NamedTuple):
    """A topic, or one type of question on it if `question_type` is not empty."""

    topic: str
    question_type: str


def find_weak_topics(traces: Sequence[SampledTrace]) -> list[WeakPart[Topic]]:
    """Return the topics that fail more often than all other questions with a topic."""
    known = [one for one in traces if TOPIC in one.traits]
    by_topic: dict[Topic, list[SampledTrace]] = {}
    for one in known:
        for question_type in dict.fromkeys(("", one.traits.get("question_type", ""))):
            by_topic.setdefault(Topic(one.traits[TOPIC], question_type), []).append(one)
    whole = failure_share(known)
    shares = {topic: failure_share(inside) for topic, inside in sorted(by_topic.items())}
    return weak_parts(
        [
            (topic, share, [without(whole, share)])
            for topic, share in shares.items()
            if min(share.n, whole.n - share.n) >= MIN_QUESTIONS
        ]
    )


@insight(reads=AppData)
def weak_topics(app: AppData) -> Iterator[Insight]:
    """Return the weakest topics of each environment."""
    for sample in app.samples:
        for part in find_weak_topics(sample.traces)[: app.settings.insights_questions]:
            topic, question_type = part.name
            asked = f"{question_type.replace('_', ' ')} questions" if question_type else "questions"
            traits = {TOPIC: topic} | ({"question_type": question_type} if question_type else {})
            yield Insight(
                type=TYPE,
                where=sample.where,
                identity=("topic", *part.name),
                message=f"{asked} on topic {topic} {part.message()}",
                figures={"kind": "topic", **part.name._asdict(), **part.figures},
                examples=sample.examples(traits),
                actions=(READ, WRITE),
            )
