"""Prompts of users: each becomes an evaluator like the built-in ones, and a mistake is an error at the start."""

import ast
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ragtide.dashboards.build import build
from ragtide.evaluators.checks import check_evaluator
from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.judge.calls import Judge, JudgeCall
from ragtide.evaluators.judge.fences import instructions, render_inputs
from ragtide.evaluators.judge.hashing import HashingJudge
from ragtide.evaluators.judge.prompt_files import load_prompt, prompt_names
from ragtide.evaluators.judge.reading import UnreadableReply, read_reply
from ragtide.evaluators.judge.replies import Grade, TrueOrFalse
from ragtide.evaluators.judge.user_prompt import LONGEST_PROMPT, evaluator_of
from ragtide.evaluators.outcome import NotApplicable, Outcome, Scored
from ragtide.evaluators.plan import PreparedEvaluator, prepare
from ragtide.evaluators.registry import load
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.run import run_all
from ragtide.evaluators.settings import EvaluatorSettings
from ragtide.evaluators.trace import Trace
from ragtide.stream.settings.loader import load as load_settings
from ragtide.stream.settings.loader import load_values
from tests.evaluators.builtin.scoring import chunks, trace
from tests.evaluators.judge.scripted import ScriptedJudge
from tests.evaluators.judge.test_fences import INJECTIONS, read

ROOT = Path(__file__).parents[3]
POLITE: dict[str, Any] = {"prompt": "Is {answer} a polite reply to {question}?"}
FULL = trace(question="When?", answer="At nine.", contexts=chunks("It opens at nine."), expected=("Nine.",))


def settings_of(**prompts: Any) -> EvaluatorSettings:
    judge = {"endpoints": {"fake": {"url": "http://judge", "model": "m"}}, "byop": prompts}
    return load_values({"evaluators": {"judge": judge}}).settings.evaluators


def prepared(id: str, settings: EvaluatorSettings) -> PreparedEvaluator:
    chosen = settings.model_copy(update={"enabled": (id,)})
    [found] = prepare(load(settings), chosen, "judge", None).prepared
    return found


def outcomes(settings: EvaluatorSettings, traces: Sequence[Trace], judge: Judge) -> list[Outcome | None]:
    plan = [prepared(id, settings) for id in settings.judge.byop]
    return [one for of_prompt in run_all(plan, traces, Resources(judge=judge).batch()) for one in of_prompt]


def answers(verdict: bool, *ids: str) -> ScriptedJudge:
    return ScriptedJudge({f"byop.{id}": lambda call: TrueOrFalse(verdict) for id in ids})


def fault(**prompt: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        settings_of(mine=prompt)
    return str(caught.value)


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ({}, "set one of prompt (the text) and file (its path)"),
        ({**POLITE, "file": "a.md"}, "set one of prompt (the text) and file (its path)"),
        ({"prompt": " \n"}, "the prompt is empty"),
        ({"prompt": "Is it good?"}, "the prompt has no placeholder"),
        ({"prompt": "Is {anwser} good? {answer}"}, "unknown placeholder {anwser} (valid: {question}, {answer},"),
        ({"prompt": "Is { anwser } good? {answer}"}, "unknown placeholder {anwser} (valid: {question}, {answer},"),
        ({"prompt": "Is {текст} good? {answer}"}, "unknown placeholder {текст} (valid: {question}, {answer},"),
        ({"prompt": "Is {{answer}} good?"}, "the prompt has no placeholder"),
        ({"prompt": "{answer}" + "x" * LONGEST_PROMPT}, "the prompt is longer than 20,000 characters"),
        ({"prompt": "{answer} \ud800"}, "the prompt is not UTF-8"),
        ({"file": "/nowhere/a.md"}, "file /nowhere/a.md cannot be read: FileNotFoundError"),
        ({"file": "/"}, "file / cannot be read: IsADirectoryError"),
    ],
)
def test_a_prompt_that_cannot_be_used_is_an_error_that_names_its_setting(prompt: dict[str, Any], said: str) -> None:
    found = fault(**prompt)
    assert "evaluators.judge.byop.mine: " in found
    assert said in found


def test_braces_that_are_no_placeholder_are_text() -> None:
    prompt = settings_of(mine={"prompt": 'Like {"a": {"b": 1}}, {{answer}} and { answer }?'}).judge.byop["mine"]
    assert prompt.fields == ("answer",)
    assert prompt.instructions.startswith('Like {"a": {"b": 1}}, {answer} and the input "answer"?')


def test_a_file_that_is_no_text_or_too_long_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "p.md"
    file.write_bytes(b"{answer} \xff")
    assert "cannot be read: UnicodeDecodeError" in fault(file=str(file))
    file.write_text("{answer}" + "x" * 10 * LONGEST_PROMPT)
    assert "longer than 20,000 characters" in fault(file=str(file))


def test_the_error_has_the_line_of_the_settings_file(tmp_path: Path) -> None:
    file = tmp_path / "r.toml"
    file.write_text('[kafka]\n\n[evaluators.judge.byop.mine]\nfile = "/nowhere/a.md"\n')
    with pytest.raises(ConfigError, match=rf"{file}:3: evaluators\.judge\.byop\.mine: file /nowhere/a\.md cannot"):
        load_settings(file, {})


@pytest.mark.parametrize("name", ["", "Mine", "a.b", "a b", "x" * 65])
def test_a_name_that_is_no_id_is_an_error(name: str) -> None:
    with pytest.raises(ConfigError, match=r"evaluators\.judge\.byop: '.*' cannot name an evaluator"):
        settings_of(**{name: POLITE})


def test_a_name_of_another_evaluator_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"evaluators\.judge\.byop\.rouge: there is an evaluator 'rouge' already"):
        load(settings_of(rouge=POLITE))


def test_a_built_in_prompt_may_have_the_same_name() -> None:
    settings = settings_of(safety=POLITE)
    assert "safety" in prompt_names()
    assert load_prompt("byop.safety", settings.judge) != load_prompt("safety", settings.judge)
    assert not [name for name in prompt_names() if evaluator_of(name) is not None]


def test_without_settings_there_is_none() -> None:
    assert load(settings_of(polite=POLITE)).keys() - load().keys() == {"polite"}


@pytest.mark.parametrize(
    "prompt", ["{answer}", "{question} {expected}", "{contexts}: {answer}", "{answer}{question}{contexts}{expected}"]
)
def test_its_evaluator_keeps_the_contract(prompt: str) -> None:
    check_evaluator(load(settings_of(mine={"prompt": prompt}))["mine"], [FULL])


def test_the_verdict_that_is_good_passes() -> None:
    settings = settings_of(polite=POLITE, rude={**POLITE, "good_verdict": False})
    passes = {"passes": 1.0, "failures": 0.0, "generation_failures": 0.0}
    fails = {"passes": 0.0, "failures": 1.0, "generation_failures": 1.0}
    assert outcomes(settings, [FULL], answers(True, "polite", "rude")) == [Scored(passes), Scored(fails)]
    assert outcomes(settings, [FULL], answers(False, "polite", "rude")) == [Scored(fails), Scored(passes)]


def test_fields_that_the_prompt_names_are_needed_and_no_others() -> None:
    settings = settings_of(all={"prompt": "{answer} {question} {contexts} {expected}"}, one={"prompt": "{question}?"})
    known = load(settings)
    assert known["all"].required == ("question", "answer", "contexts", "expected")
    assert known["one"].required == ("question",)
    lacking = [
        trace(answer="a"),
        trace(question=" ", answer="a", contexts=chunks("c"), expected=("e",)),
        trace(question="q", answer="a", contexts=chunks("", " "), expected=("e",)),
        trace(question="q", answer="a", contexts=chunks("c"), expected=()),
    ]
    reasons = ["missing_question", "empty_question", "empty_contexts", "empty_expected"]
    judge = answers(True, "all", "one")
    found = outcomes(settings, lacking, judge)
    assert found[:4] == [NotApplicable(reason) for reason in reasons]
    assert found[4:6] == [NotApplicable("missing_question"), NotApplicable("empty_question")]
    assert [call.prompt for call in judge.calls] == ["byop.one"], "the two traces ask the same"


def test_an_input_that_is_too_long_for_one_call_is_not_cut() -> None:
    settings = settings_of(polite=POLITE)
    judge = answers(True, "polite")
    assert outcomes(settings, [trace(question="q", answer="a" * 100_000)], judge) == [NotApplicable("too_long")]
    assert judge.calls == []


def calls_of(settings: EvaluatorSettings, *traces: Trace) -> list[JudgeCall]:
    judge = HashingJudge()
    outcomes(settings, traces, judge)
    return judge.calls


def test_the_constant_part_has_the_prompt_and_no_text_of_a_trace() -> None:
    settings = settings_of(mine={"prompt": 'Does {answer} follow from {contexts}?\nA JSON example: {"a": {"b": 1}}'})
    [call] = calls_of(settings, trace(answer="SECRET one", contexts=chunks("SECRET two", "SECRET three")))
    constant = instructions(load_prompt(call.prompt, settings.judge), call.reply)
    assert constant.startswith(
        'Does the input "answer" follow from the input "contexts"?\nA JSON example: {"a": {"b": 1}}'
    )
    assert "SECRET" not in constant
    answer, contexts = read(render_inputs(call))
    assert (answer.name, answer.body) == ("answer", "SECRET one")
    assert (contexts.name, contexts.items) == ("contexts", ["SECRET two", "SECRET three"])


@pytest.mark.parametrize("text", [*INJECTIONS, "{question} {contexts} {answer}", '"answer"'])
def test_an_injection_stays_within_its_fence(text: str) -> None:
    settings = settings_of(mine={"prompt": "{question} {answer} {contexts}"})
    given = trace(question=text, answer=f"{text} ", contexts=chunks(text, "b"))
    [call] = calls_of(settings, given)
    sections = read(render_inputs(call))
    assert [one.name for one in sections] == ["question", "answer", "contexts"]
    assert len(sections[2].items) == 2


def test_what_changes_scores_is_a_new_version_and_nothing_else(tmp_path: Path) -> None:
    def version(**more: Any) -> str:
        return prepared("mine", settings_of(mine={**POLITE, **more})).fingerprint

    first = version()
    assert version(description="Tone") == first
    assert version(prompt=f"{POLITE['prompt']}!") != first
    assert version(good_verdict=False) != first
    file = tmp_path / "p.md"
    file.write_text(POLITE["prompt"])
    from_file = settings_of(mine={"file": str(file)})
    assert prepared("mine", from_file).fingerprint == first
    file.write_text("Is {answer} short?")
    assert prepared("mine", from_file).fingerprint == first, "the file is read with the settings, and never again"
    assert prepared("mine", settings_of(mine={"file": str(file)})).fingerprint != first


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ('{"verdict": true}', True),
        ('{"verdict": "no"}', False),
        ('Sure!\n```json\n{"verdict": false}\n```', False),
        ("true", True),
        ('"False"', False),
        (" Yes.\n", True),
        ("**true**", True),
        ("0", False),
        ('<think>{"verdict": true}</think>false', False),
    ],
)
def test_a_verdict_is_read_from_what_judges_write(text: str, verdict: bool) -> None:
    assert read_reply(text, TrueOrFalse) == TrueOrFalse(verdict)


@pytest.mark.parametrize(
    "text", ["", "null", "maybe", '{"verdict": "unsure"}', '{"verdict": null}', "[true, false]", "2"]
)
def test_what_is_no_verdict_is_never_read_as_one(text: str) -> None:
    with pytest.raises(UnreadableReply):
        read_reply(text, TrueOrFalse)


def test_a_bare_value_is_the_only_field_of_another_form_too() -> None:
    assert read_reply("3", Grade, (1, 5)) == Grade(3)
    with pytest.raises(UnreadableReply):
        read_reply("true", Grade, (0, 5))


def test_dashboards_have_its_panels_and_its_description() -> None:
    settings = settings_of(polite={**POLITE, "description": "Tone of\nour replies"}, rude=POLITE)
    known = load(settings)
    before, after = str(build(load())), str(build(known, evaluators=settings))
    for id in ("polite", "rude"):
        assert f"{id}.passes" not in before
        assert f"{id}.passes" in after
    assert "Tone of our replies" in after


# Whoever loads evaluators without the settings' prompts: there are no settings, or prompts cannot matter.
WITHOUT_PROMPTS = {"stream/cli/evaluators.py", "docs/generate.py"}  # the first gives names of new evaluators


def test_product_code_loads_evaluators_with_the_prompts_of_the_settings() -> None:
    without = set()
    for folder in ("stream", "drift", "dashboards", "sinks", "docs"):
        for file in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Call) and ast.unparse(node.func) == "registry.load" and not node.args:
                    without.add(str(file.relative_to(ROOT)))
    assert without == WITHOUT_PROMPTS
