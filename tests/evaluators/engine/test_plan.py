"""From settings to what runs."""

import hashlib
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from ragtide.evaluators.describe import describe, setting_names
from ragtide.evaluators.encoder import Encoders
from ragtide.evaluators.encoder.hashing import HashingEncoder
from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.fingerprint import fingerprint
from ragtide.evaluators.judge.calls import Conversation, JudgeUse
from ragtide.evaluators.judge.settings import NO_ENDPOINT
from ragtide.evaluators.outcome import NotApplicable, Outcome
from ragtide.evaluators.plan import Plan, prepare, wanted_encoders
from ragtide.evaluators.settings import EncoderSettings, EvaluatorSettings
from ragtide.evaluators.spec import Evaluator, Extra, Lane, Need
from tests.evaluators.engine.examples import Limit, brevity, nearness, trace

REGISTRY: dict[str, Evaluator] = {"brevity": brevity, "nearness": nearness}
ENDPOINT = {"url": "http://judge/v1", "model": "m"}
NO_PACKAGE = EncoderSettings(backend="onnx")


def ids(settings: EvaluatorSettings, lane: Lane | None = None) -> list[str]:
    plan = prepare(REGISTRY, settings, lane, HashingEncoder())
    return [prepared.evaluator.id for prepared in plan.prepared]


def test_everything_runs_unless_told_otherwise() -> None:
    assert ids(EvaluatorSettings()) == ["brevity", "nearness"]
    assert ids(EvaluatorSettings(), "fast") == ["brevity"]
    assert ids(EvaluatorSettings(), "model") == ["nearness"]
    assert ids(EvaluatorSettings(), "judge") == []
    assert ids(EvaluatorSettings(enabled=("nearness",))) == ["nearness"]
    assert ids(EvaluatorSettings(enabled=())) == []
    assert ids(EvaluatorSettings(disabled=("nearness",))) == ["brevity"]
    assert ids(EvaluatorSettings(enabled=("brevity", "nearness"), disabled=("brevity",))) == ["nearness"]


def test_an_evaluator_that_needs_configuring_is_off_until_it_is() -> None:
    registry = {"brevity": replace(brevity, off_until_set=("limit",))}

    def runs(**settings: Any) -> bool:
        return bool(prepare(registry, EvaluatorSettings(**settings), None, None).prepared)

    default = brevity.params().model_dump()["limit"]
    assert not runs()
    assert runs(params={"brevity": {"limit": default}})  # a person says that it fits
    assert not runs(params={"brevity": {"limit": 3}}, disabled=("brevity",))
    assert runs(enabled=("brevity",))
    assert not runs(enabled=(), params={"brevity": {"limit": 3}})
    [info] = describe(registry, EvaluatorSettings())
    assert (info.available, info.enabled, info.configured) == (True, False, False)


def test_without_an_encoder_the_rest_works_and_the_reason_names_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    away = ("onnxruntime", "torch")
    monkeypatch.setattr(
        "ragtide.evaluators.runtime.packages.find_spec", lambda name: None if name in away else find_spec(name)
    )
    plan = prepare(REGISTRY, EvaluatorSettings(), None, None)
    assert [prepared.evaluator.id for prepared in plan.prepared] == ["brevity"]
    assert "onnxruntime" in plan.unavailable["nearness"]
    assert "pip install 'ragtide[local]'" in plan.unavailable["nearness"]
    with pytest.raises(ConfigError, match=r"enabled names 'nearness', which cannot run: onnxruntime.*pip install"):
        prepare(REGISTRY, EvaluatorSettings(enabled=("nearness",)), "model", None)


def test_without_its_extra_an_evaluator_is_unavailable_and_the_rest_works() -> None:
    extra = Extra("ragtide[vision]", ("json", "no_such_module", "nor_this_one"))
    registry = {"brevity": brevity, "seeing": replace(brevity, id="seeing", extra=extra)}
    plan = prepare(registry, EvaluatorSettings(), None, None)
    assert [prepared.evaluator.id for prepared in plan.prepared] == ["brevity"]
    reason = "no_such_module and nor_this_one not installed: pip install 'ragtide[vision]'"
    assert plan.unavailable == {"seeing": reason}
    there = {"seeing": replace(brevity, id="seeing", extra=Extra("ragtide[vision]", ("json",)))}
    assert prepare(there, EvaluatorSettings(), None, None).unavailable == {}


def test_a_missing_resource_of_another_lane_is_no_error() -> None:
    plan = prepare(REGISTRY, EvaluatorSettings(enabled=("brevity", "nearness")), "fast", None)
    assert [prepared.evaluator.id for prepared in plan.prepared] == ["brevity"]
    assert plan.unavailable == {}


def test_an_agent_that_asks_no_judge_needs_no_endpoint() -> None:
    walker = replace(brevity, id="walker", method="agent")
    [prepared] = prepare({"walker": walker}, EvaluatorSettings(), "judge", None).prepared
    assert prepared.evaluator.id == "walker"
    [info] = describe({"walker": walker}, EvaluatorSettings())
    assert (info.configured, info.enabled, setting_names(info)) == (True, True, "")


def test_a_judge_evaluator_is_off_until_there_is_an_endpoint_and_its_fingerprint_names_model_and_prompts(
    tmp_path: Path,
) -> None:
    def converse(row: object, shared: object, params: object) -> Conversation[Outcome]:
        yield []
        return NotApplicable("never")

    needs = frozenset({Need.JUDGE})
    judged = replace(brevity, id="judged", method="judge", needs=needs, judge=JudgeUse(("statements",), converse))

    def mark(**judge: Any) -> str:
        settings = EvaluatorSettings.model_validate({"judge": judge})
        [prepared] = prepare({"judged": judged}, settings, "judge", None).prepared
        [info] = describe({"judged": judged}, settings)
        assert info.fingerprint == prepared.fingerprint
        return prepared.fingerprint

    assert prepare({"judged": judged}, EvaluatorSettings(), "judge", None) == Plan((), {})
    [info] = describe({"judged": judged}, EvaluatorSettings())
    assert (info.available, info.enabled, info.reason) == (False, False, NO_ENDPOINT)
    with pytest.raises(ConfigError, match="enabled names 'judged', which cannot run: no judge endpoint is set"):
        prepare({"judged": judged}, EvaluatorSettings(enabled=("judged",)), "judge", None)
    one, other = ({"url": "http://a/v1", "model": name} for name in ("m", "n"))
    base = mark(endpoints={"a": one})
    assert base == mark(endpoints={"b": one | {"url": "http://b/v1", "timeout_s": 1}}), "where it runs does not matter"
    assert base != mark(endpoints={"a": other})
    assert base != mark(endpoints={"a": one | {"revision": "2"}})
    changes = ({"temperature": 1.0}, {"max_tokens": 7}, {"parameters": {"reasoning_effort": "high"}})
    assert len({base, *(mark(endpoints={"a": one | change}) for change in changes)}) == 4
    orders = ({"top_p": 1, "n": 1}, {"n": 1, "top_p": 1})
    assert len({mark(endpoints={"a": one | {"parameters": order}}) for order in orders}) == 1
    assert base != mark(endpoints={"a": one, "b": other}, endpoint="a", endpoint_by_evaluator={"judged": "b"})
    prompt = tmp_path / "mine.md"
    prompt.write_text("List the statements.")
    mine = mark(endpoints={"a": one}, prompts={"statements": str(prompt)})
    prompt.write_text("List all statements.")
    assert len({base, mine, mark(endpoints={"a": one}, prompts={"statements": str(prompt)})}) == 3


@pytest.mark.parametrize(
    ("judge", "says"),
    [
        ({"endpoints": {"a": ENDPOINT, "b": ENDPOINT}}, r"set endpoint to the endpoint .*\(valid: a, b\)"),
        ({"endpoints": {"a": ENDPOINT}, "endpoint": "c"}, r"endpoint: there is no endpoint 'c' \(valid: a\)"),
        ({"endpoints": {"a": ENDPOINT | {"url": "ftp://a"}}}, "must be an http:// or https:// URL"),
        ({"endpoints": {"a": ENDPOINT | {"url": "http://me:secret@a"}}}, "must not contain a name or password"),
    ],
)
def test_bad_settings_of_judges_are_refused(judge: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        EvaluatorSettings.model_validate({"judge": judge})


@pytest.mark.parametrize(
    ("judge", "says"),
    [
        ({"prompts": {"statments": "x.md"}}, r"there is no prompt 'statments' \(valid: bias, .*statements"),
        ({"prompts": {"statements": "/no/such/file.md"}}, r"judge\.prompts\.statements: .* cannot be read"),
        (
            {"endpoints": {"a": ENDPOINT}, "endpoint_by_evaluator": {"x": "a"}},
            "judge.endpoint_by_evaluator: there is no",
        ),
    ],
)
def test_names_in_settings_of_judges_are_checked(judge: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        prepare(REGISTRY, EvaluatorSettings.model_validate({"judge": judge}), None, HashingEncoder())


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"enabled": ("nearnes",)}, r"evaluators\.enabled: there is no evaluator 'nearnes'; did you mean 'nearness'\?"),
        ({"disabled": ("zzz",)}, r"evaluators\.disabled: there is no evaluator 'zzz' \(valid: brevity, nearness\)"),
        ({"params": {"zzz": {}}}, r"evaluators\.params: there is no evaluator 'zzz'"),
        ({"tasks": {"zzz": ["qa"]}}, r"evaluators\.tasks: there is no evaluator 'zzz'"),
        (
            {"params": {"brevity": {"limt": 3}}},
            r"evaluators\.params\.brevity\.limt: there is no such parameter \(parameters of brevity: limit\)",
        ),
        ({"params": {"brevity": {"limit": 0}}}, r"evaluators\.params\.brevity\.limit: Input should be greater than"),
        ({"params": {"nearness": {"limit": 1}}}, r"parameters of nearness: none: it has no parameters"),
    ],
)
def test_a_wrong_name_or_value_is_an_error_in_every_lane(settings: dict[str, object], says: str) -> None:
    for lane in ("fast", "model", "judge", None):
        with pytest.raises(ConfigError, match=says):
            prepare(REGISTRY, EvaluatorSettings.model_validate(settings), lane, HashingEncoder())


def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises(ValidationError, match="extra_forbidden"):
        EvaluatorSettings.model_validate({"enabledd": ["brevity"]})
    with pytest.raises(ValidationError, match="extra_forbidden"):
        EncoderSettings.model_validate({"modell": "x"})


def test_parameters_and_tasks_come_from_settings() -> None:
    settings = EvaluatorSettings(params={"brevity": {"limit": "4"}}, tasks={"brevity": ("agent",), "nearness": ("*",)})
    short, near = prepare(REGISTRY, settings, None, HashingEncoder()).prepared
    assert short.params == Limit(limit=4)
    assert (short.tasks, near.tasks) == (("agent",), ())
    assert [short.selects(trace(task=task)) for task in ("agent", "extraction", None)] == [True, False, False]
    assert near.selects(trace(task="anything"))


def test_an_encoder_is_needed_only_where_something_embeds() -> None:
    assert wanted_encoders(REGISTRY, EvaluatorSettings(), "model") == ("shared",)
    assert wanted_encoders(REGISTRY, EvaluatorSettings(), None) == ("shared",)
    assert wanted_encoders(REGISTRY, EvaluatorSettings(), "fast") == ()
    assert wanted_encoders(REGISTRY, EvaluatorSettings(disabled=("nearness",)), "model") == ()


def test_a_fingerprint_moves_with_all_that_scores_depend_on_and_nothing_else() -> None:
    one, other = "m@1", "m@2"
    base = fingerprint(nearness, nearness.params(), one)
    canonical = b'{"encoder":"m@1","id":"nearness","params":{},"version":3}'
    assert base == hashlib.sha256(canonical).hexdigest()[:16], "were it to move, every baseline would start anew"
    assert base == fingerprint(replace(nearness, description="x", tasks=()), nearness.params(), one)
    assert base != fingerprint(replace(nearness, version=4), nearness.params(), one)
    assert base != fingerprint(replace(nearness, id="other"), nearness.params(), one)
    assert base != fingerprint(nearness, nearness.params(), other)
    assert fingerprint(brevity, Limit(), one) == fingerprint(brevity, Limit(limit=10), other), "it embeds nothing"
    assert fingerprint(brevity, Limit(), None) != fingerprint(brevity, Limit(limit=11), None)


def test_an_encoder_of_its_own_is_loaded_marked_and_missed_by_its_name() -> None:
    own = replace(nearness, id="own", encoder=lambda params: "org/other")
    none = replace(nearness, id="none", encoder=lambda params: None)
    registry = {"nearness": nearness, "none": none, "own": own}
    settings = EvaluatorSettings(encoder=EncoderSettings(model="org/shared"))
    assert wanted_encoders(registry, settings, None) == ("shared", "org/other")
    shared, other = HashingEncoder(8), HashingEncoder(16)
    plan = prepare(registry, settings, None, shared, encoders=Encoders({"org/other": other}))
    assert [one.encoder for one in plan.prepared] == ["shared", "shared", "org/other"]
    marks = {one.evaluator.id: one.fingerprint for one in plan.prepared}
    assert marks["own"] == fingerprint(own, own.params(), other.revision)
    assert marks["none"] == fingerprint(none, none.params())
    missed = prepare(registry, settings, None, None, encoders=Encoders(missing={"org/other": "fetch it"}))
    assert [one.evaluator.id for one in missed.prepared] == ["none"]
    assert missed.unavailable["own"] == "fetch it"
    same = EvaluatorSettings(encoder=EncoderSettings(model="org/other"))
    assert wanted_encoders(registry, same, None) == ("shared",), "the shared one is that very model"
