"""What is found, and what stops start-up."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from evaluators.errors import ConfigError
from evaluators.registry import load, unsound
from evaluators.spec import Evaluator, Metric, Need
from tests.evaluators.engine.examples import brevity, nearness

PLUGIN = '''
from dataclasses import dataclass
from evaluators.outcome import Scored
from evaluators.spec import Metric, evaluator

@dataclass(frozen=True)
class Inputs:
    answer: str

@evaluator("{id}", version=1, domain="generation", method="rule", inputs=Inputs, metrics=[Metric("shout")])
def scored(rows, shared, params):
    """{doc}"""
    yield from (Scored({{"shout": float(row.answer.isupper())}}) for row in rows)
'''
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs a package the way pip leaves it: a module and its metadata on the path."""
    monkeypatch.syspath_prepend(str(tmp_path))
    modules: list[str] = []

    def installed(module: str, source: str, value: str | None = None) -> None:
        (tmp_path / f"{module}.py").write_text(source, "utf-8")
        info = tmp_path / f"{module}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.2\n", "utf-8")
        (info / "entry_points.txt").write_text(f"[ragwatch.evaluators]\n{module} = {value or module}\n", "utf-8")
        modules.append(module)

    yield installed
    for module in modules:
        sys.modules.pop(module, None)


def test_every_builtin_module_holds_the_evaluator_it_is_named_after() -> None:
    import evaluators.builtin

    [folder] = evaluators.builtin.__path__
    modules = {path.stem for path in Path(folder).glob("*.py")} - {"__init__"}
    assert set(load()) == modules
    assert list(load()) == sorted(modules)


@pytest.mark.parametrize("value", ["loud_module", "loud_module:scored"])
def test_a_plug_in_is_a_module_or_an_evaluator(install: Install, value: str) -> None:
    install("loud_module", PLUGIN.format(id="loud", doc="Shouts."), value)
    found = load()["loud"]
    assert (found.description, found.lane) == ("Shouts.", "fast")


def test_one_object_seen_twice_is_one_evaluator(install: Install) -> None:
    install("again_module", "from evaluators.builtin.rouge import rouge\n" + PLUGIN.format(id="again", doc="Twice."))
    assert {"rouge", "again"} <= set(load())


def test_two_with_one_id_stop_start_up(install: Install) -> None:
    install("rival_module", PLUGIN.format(id="rouge", doc="Another."))
    with pytest.raises(
        ConfigError, match=r"two evaluators have the id 'rouge': one in evaluators\.builtin\.rouge, one"
    ) as e:
        load()
    assert "rival_module 1.2" in str(e.value)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("import no_such_thing", r"cannot be loaded: ModuleNotFoundError: No module named 'no_such_thing'"),
        ("1 / 0", r"cannot be loaded: ZeroDivisionError"),
        ("x = 1", r"holds no Evaluator"),
        (PLUGIN.format(id="Loud!", doc="Shouts."), r"is unsound: its id must match"),
        (PLUGIN.format(id="loud", doc=""), r"is unsound: its function has no docstring"),
    ],
)
def test_a_broken_plug_in_stops_start_up_and_is_named(install: Install, source: str, says: str) -> None:
    install("broken_module", source)
    with pytest.raises(ConfigError, match=says) as error:
        load()
    assert "broken_module 1.2" in str(error.value)


def test_an_entry_point_to_nothing_is_named(install: Install) -> None:
    install("empty_module", "x = 1", "empty_module:missing")
    with pytest.raises(ConfigError, match=r"empty_module:missing.*AttributeError"):
        load()


@pytest.mark.parametrize(
    ("evaluator", "says"),
    [
        (replace(brevity, version=0), "version must be 1"),
        (replace(brevity, version=1 << 16), "version must be 1"),
        (replace(brevity, metrics=(Metric("a"), Metric("a"))), "metric 'a' is declared twice"),
        (replace(brevity, metrics=(Metric("A b"),)), "metric 'A b' must match"),
        (replace(brevity, metrics=(Metric("a", 1.0, 0.0),)), "has the range"),
        (replace(brevity, metrics=(Metric("a", threshold=2.0),)), "outside its range"),
        (replace(nearness, needs=frozenset()), "method embedding needs Need.EMBEDDING"),
        (replace(nearness, method="rule", needs=frozenset({Need.NLI})), "embeds needs Need.EMBEDDING"),
    ],
)
def test_an_unsound_spec_is_told(evaluator: Evaluator, says: str) -> None:
    assert any(says in fault for fault in unsound(evaluator)), unsound(evaluator)


def test_a_sound_one_has_no_faults() -> None:
    assert unsound(brevity) == unsound(nearness) == []
