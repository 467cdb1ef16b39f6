"""What is found, and what stops start-up."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ragtide.evaluators import Evaluator, Metric, Need, NotApplicable, Scored, check_evaluator
from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.judge.calls import Conversation, JudgeUse, ask
from ragtide.evaluators.plan import prepare
from ragtide.evaluators.registry import load, spec_faults
from ragtide.evaluators.run import run_all
from ragtide.evaluators.settings import EvaluatorSettings
from tests.evaluators.engine.examples import batch, brevity, nearness, trace

PLUGIN = '''
from dataclasses import dataclass
from ragtide.evaluators import Metric, Scored, evaluator

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
        (info / "entry_points.txt").write_text(f"[ragtide.evaluators]\n{module} = {value or module}\n", "utf-8")
        modules.append(module)

    yield installed
    for module in modules:
        sys.modules.pop(module, None)


def test_every_builtin_module_holds_the_evaluator_it_is_named_after() -> None:
    import ragtide.evaluators.builtin

    [folder] = ragtide.evaluators.builtin.__path__
    modules = {path.stem for path in Path(folder).glob("*.py")} - {"__init__"}
    assert set(load()) == modules
    assert list(load()) == sorted(modules)


@pytest.mark.parametrize("value", ["loud_module", "loud_module:scored"])
def test_a_plug_in_is_a_module_or_an_evaluator(install: Install, value: str) -> None:
    install("loud_module", PLUGIN.format(id="loud", doc="Shouts."), value)
    found = load()["loud"]
    assert (found.description, found.lane) == ("Shouts.", "fast")


def test_a_plug_in_that_is_installed_scores_traces(install: Install) -> None:
    install("loud_module", PLUGIN.format(id="loud", doc="Shouts."))
    check_evaluator(load()["loud"])
    plan = prepare(load(), EvaluatorSettings(enabled=("loud", "operations")), "fast", None)
    loud, operations = run_all(plan.prepared, [trace(0, "STOP"), trace(1, "stop"), trace(2, None)], batch())
    assert loud == [Scored({"shout": 1.0}), Scored({"shout": 0.0}), NotApplicable("missing_answer")]
    assert all(isinstance(outcome, Scored) for outcome in operations)


def test_a_process_of_its_own_finds_a_plug_in_that_is_installed(install: Install, tmp_path: Path) -> None:
    install("loud_module", PLUGIN.format(id="loud", doc="Shouts."))
    program = "from ragtide.stream.cli import main; main(['evaluators', '--json', 'loud'])"
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True, env=environ
    )
    [info] = json.loads(told.stdout)
    assert (info["id"], info["lane"], info["available"], info["version"]) == ("loud", "fast", True, 1)


def test_one_object_seen_twice_is_one_evaluator(install: Install) -> None:
    install(
        "again_module", "from ragtide.evaluators.builtin.rouge import rouge\n" + PLUGIN.format(id="again", doc="Twice.")
    )
    assert {"rouge", "again"} <= set(load())


def test_two_with_one_id_stop_start_up(install: Install) -> None:
    install("rival_module", PLUGIN.format(id="rouge", doc="Another."))
    with pytest.raises(
        ConfigError, match=r"two evaluators have the id 'rouge': one in ragtide\.evaluators\.builtin\.rouge, one"
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


def changed(of: Any, **fields: Any) -> Any:
    """As a plug-in has it that nobody type-checked."""
    return replace(of, **fields)


def plain(row: object, shared: object, params: object) -> Conversation[object]:
    return ask()


@pytest.mark.parametrize(
    ("evaluator", "says"),
    [
        (replace(brevity, version=0), "version must be 1"),
        (replace(brevity, version=1 << 16), "version must be 1"),
        (replace(brevity, metrics=(Metric("a"), Metric("a"))), "metric 'a' is declared twice"),
        (replace(brevity, metrics=(Metric("A b"),)), "metric 'A b' must match"),
        (replace(brevity, metrics=(Metric("a", 1.0, 0.0),)), "has the range"),
        (replace(brevity, metrics=(Metric("a", threshold=2.0),)), "outside its range"),
        (replace(brevity, metrics=(Metric("a", high=5, binary=True),)), "'a' is binary with the range [0.0, 5], not"),
        (changed(brevity, domain="privat"), "domain must be one of generation, retrieval, privacy,"),
        (changed(brevity, method="regex"), "method must be one of rule, ngram,"),
        (changed(brevity, own_lane="slow"), "lane must be one of fast, model, judge"),
        (replace(brevity, metrics=(changed(Metric("a"), better="up"),)), "better of metric 'a' must be one of higher,"),
        (replace(brevity, metrics=(changed(Metric("a"), rule="worst"),)), "rule of metric 'a' must be one of mean,"),
        (replace(brevity, off_until_set=("words",)), "off_until_set names 'words', which is no parameter"),
        (
            replace(brevity, needs=frozenset({Need.JUDGE}), judge=JudgeUse(("statements",), plain)),
            "converse of judge must be a generator function",
        ),
        (
            replace(brevity, judge=JudgeUse(("statements",), plain, limits=("words",))),
            "limits of judge names 'words', which is no parameter",
        ),
        (replace(nearness, needs=frozenset()), "method embedding needs Need.EMBEDDING"),
        (replace(nearness, method="rule", needs=frozenset({Need.NLI})), "embeds needs Need.EMBEDDING"),
    ],
)
def test_an_unsound_spec_is_told(evaluator: Evaluator, says: str) -> None:
    assert any(says in fault for fault in spec_faults(evaluator)), spec_faults(evaluator)


def test_a_sound_one_has_no_faults() -> None:
    assert spec_faults(brevity) == spec_faults(nearness) == []
