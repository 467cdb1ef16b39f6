"""Topics that stage assemble may not share."""

import pytest

from ragtide.evaluators.errors import ConfigError
from ragtide.stream.settings.loader import load_values
from ragtide.stream.worker.assembly.runtime import topics_of_stage


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"kafka.spans_topic": "rag.traces"}, "needs a topic of its own"),
        ({"kafka.topics": ["rag.traces", "rag.spans"]}, "needs a topic of its own"),
        ({"otel.topics": ["rag.spans"]}, "which stage assemble writes"),
    ],
)
def test_the_topic_of_spans_is_of_its_own(values: dict[str, object], problem: str) -> None:
    nested: dict[str, dict[str, object]] = {}
    for name, value in values.items():
        section, _, key = name.partition(".")
        nested.setdefault(section, {})[key] = value
    with pytest.raises(ConfigError, match=problem):
        topics_of_stage(load_values(nested).settings)
