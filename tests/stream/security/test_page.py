"""The page on secured clusters names every setting that there is for them, and none that there is not."""

import re
from pathlib import Path

from ragtide.stream.settings.environment import leaves, variable_of
from ragtide.stream.settings.loader import Settings

PAGE = (Path(__file__).parents[3] / "docs" / "secured-kafka.md").read_text()
NAMES = {".".join(path): variable_of(path) for path, _ in leaves(Settings)}


def test_the_page_names_the_settings_that_there_are() -> None:
    named = set(re.findall(r"\bkafka\.[a-z_]+", PAGE))
    assert named <= {*NAMES, "kafka.common"}  # a package of Kafka's
    of_security = {name for name in NAMES if re.match(r"kafka\.(security|sasl|ssl)_", name)}
    assert of_security <= named


def test_the_variables_and_the_lines_of_its_examples_are_settings() -> None:
    assert set(re.findall(r"\bRAGTIDE_\w+", PAGE)) <= set(NAMES.values())
    examples = "\n".join(re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL))
    assert {f"kafka.{name}" for name in re.findall(r"^(\w+) = ", examples, re.MULTILINE)} <= set(NAMES)
