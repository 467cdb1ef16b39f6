"""States where an application is weak: groups of questions of one meaning, topics, and what all failures share."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from drift.insights.answered import Answered, Sample
from drift.insights.failing_groups import FailingGroup, failing_groups
from drift.insights.insight import Finding
from drift.insights.shared_traits import Trait, shared
from drift.insights.shares import Interval, Share
from drift.insights.weak_topics import WeakTopic, weak_topics
from drift.phrases import percent
from drift.topics.clusters import what_is_missing

TYPE = "weak_point"
_EXAMPLES = 10
_READ = "Read the example traces: is the answer in the index at all, and is it retrieved?"
_WRITE = "Add or rewrite the documents that should answer them, then replay the examples."
_COMPARE = "Compare the example traces with good ones that lack what they share: a setting, a source or a prompt."


def weak_points(sample: Sample, most: int) -> list[Finding]:
    """At most `most` groups, `most` topics, and one finding on what failures share; each is sure, none has a text."""
    groups = [] if what_is_missing() else failing_groups(sample)
    topics = weak_topics(sample.answered)
    return [
        *(_of_group(sample, group, rank) for rank, group in enumerate(groups[:most], start=1)),
        *(_of_topic(sample, topic) for topic in topics[:most]),
        *_of_all(sample),
    ]


def _of_group(sample: Sample, group: FailingGroup, rank: int) -> Finding:
    topics = Counter(one.traits["topic"] for one in group.failing if "topic" in one.traits)
    topic = topics.most_common(1)[0][0] if topics else ""
    return Finding(
        type=TYPE,
        app=sample.app,
        environment=sample.environment,
        identity=("group", rank),
        description=(
            f"{sample.whereabouts}: questions of one meaning{f' (topic {topic})' if topic else ''} "
            f"{_more_than(group.share, group.rest, group.more)}{_in_words(group.traits)}."
        ),
        attributes={
            "kind": "group",
            "rank": rank,
            **_counts(group.share, group.rest, group.interval, group.more, group.p),
            "failing": len(group.failing),
            "metrics": _metrics(group.failing),
            "topic": topic,
            "shared": [_told(trait) for trait in group.traits],
        },
        examples=[one.trace_id for one in group.failing[:_EXAMPLES]],
        actions=(_READ, _WRITE),
    )


def _of_topic(sample: Sample, found: WeakTopic) -> Finding:
    about = f"questions of topic {found.topic}"
    if found.question_type:
        about = f"{found.question_type.replace('_', ' ')} questions of topic {found.topic}"
    return Finding(
        type=TYPE,
        app=sample.app,
        environment=sample.environment,
        identity=("topic", found.topic, found.question_type),
        description=f"{sample.whereabouts}: {about} {_more_than(found.share, found.rest, found.more)}.",
        attributes={
            "kind": "topic",
            "topic": found.topic,
            "question_type": found.question_type,
            **_counts(found.share, found.rest, found.interval, found.more, found.p),
        },
        examples=found.examples,
        actions=(_READ, _WRITE),
    )


def _of_all(sample: Sample) -> list[Finding]:
    failing = sorted((one for one in sample.answered if one.failed), key=lambda one: (-len(one.failed), one.lot))
    traits = shared(failing, [one for one in sample.answered if not one.failed])
    if not traits:
        return []
    first = traits[0]
    having = [one.trace_id for one in failing if one.traits.get(first.name) == first.value]
    return [
        Finding(
            type=TYPE,
            app=sample.app,
            environment=sample.environment,
            identity=("failures",),
            description=(
                f"{sample.whereabouts}: {len(failing)} of {len(sample.answered)} answers failed{_in_words(traits)}."
            ),
            attributes={
                "kind": "failures",
                "asked": len(sample.answered),
                "failed": len(failing),
                "shared": [_told(trait) for trait in traits],
            },
            examples=having[:_EXAMPLES],
            actions=(_COMPARE,),
        )
    ]


def _more_than(share: Share, rest: Share, more: Interval) -> str:
    return (
        f"failed {share.hits} of {share.n} times ({percent(share.value)}), all others {rest.hits} of {rest.n} "
        f"({percent(rest.value)}): {more.low * 100:.0f} to {more.high * 100:.0f} points more"
    )


def _in_words(traits: Sequence[Trait]) -> str:
    """The first of them; the attributes hold all."""
    if not traits:
        return ""
    trait = traits[0]
    return (
        f"; {percent(trait.failing.value)} of those that failed have {trait.name} {trait.value}, "
        f"{trait.lift.value:.1f} times ({trait.lift.low:.1f} to {trait.lift.high:.1f}) as common as elsewhere"
    )


def _counts(share: Share, rest: Share, interval: Interval, more: Interval, p: float) -> dict[str, Any]:
    return {
        "asked": share.n,
        "failed": share.hits,
        "failed_share": share.value,
        "failed_share_interval": list(interval),
        "rest_asked": rest.n,
        "rest_failed": rest.hits,
        "more_than_rest": share.value - rest.value,
        "more_than_rest_interval": list(more),
        "p": p,
    }


def _metrics(failing: Sequence[Answered]) -> Mapping[str, int]:
    return dict(Counter(metric for one in failing for metric in one.failed).most_common())


def _told(trait: Trait) -> dict[str, Any]:
    return {
        "name": trait.name,
        "value": trait.value,
        "failing": list(trait.failing),
        "others": list(trait.others),
        "lift": trait.lift.value,
        "lift_interval": [trait.lift.low, trait.lift.high],
        "p": trait.p,
    }
