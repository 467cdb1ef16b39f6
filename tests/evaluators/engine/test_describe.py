"""What `ragtide evaluators --json` prints."""

import json
from dataclasses import asdict, replace

import pytest

from ragtide.evaluators.describe import EvaluatorInfo, describe, describe_budget
from ragtide.evaluators.encoder.hashing import HashingEncoder
from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.leaks import PERSONAL
from ragtide.evaluators.plan import prepare
from ragtide.evaluators.registry import load
from ragtide.evaluators.settings import EncoderSettings, EvaluatorSettings
from ragtide.evaluators.spec import Budget, Extra, Metric
from tests.evaluators.engine.examples import brevity, nearness

NOTHING = EvaluatorSettings()
REGISTRY = {"brevity": brevity, "nearness": nearness}
PROMISED = {
    *("id", "description", "domain", "method", "lane", "tasks", "inputs", "needs", "standards", "params", "available"),
    *("reason", "budget", "version", "fingerprint", "metrics"),
}


def test_every_promised_field_is_there_and_is_json() -> None:
    told = json.loads(json.dumps([asdict(info) for info in describe(load(), EvaluatorSettings())], allow_nan=False))
    assert [info["id"] for info in told] == sorted(load())
    for info in told:
        assert set(info) >= PROMISED
        assert info["metrics"]
        assert info["description"]
        for metric in info["metrics"]:
            assert set(metric) >= {"key", "range", "better", "threshold", "primary", "rule"}
        for param in info["params"]:
            assert set(param) >= {"name", "description", "default", "range"}


def test_one_evaluator_in_full() -> None:
    info: EvaluatorInfo = describe(REGISTRY, EvaluatorSettings(params={"brevity": {"limit": 5}}), HashingEncoder())[0]
    assert (info.id, info.version, info.lane, info.domain, info.method) == ("brevity", 1, "fast", "generation", "rule")
    assert (info.inputs, info.also_reads, info.needs, info.tasks) == (("answer",), (), (), ())
    assert info.budget == Budget(characters=2_000_000, items=10_000, tokens=None, sentences=None, regions=None)
    assert info.description == "One word scores 1, `limit` words or more 0."
    assert info.standards == ("Valid and Reliable", "Outcomes Analysis")
    [param] = info.params
    assert (param.name, param.description, param.default, param.value) == ("limit", "Words of a full score.", 10, 5)
    assert (param.range, param.choices) == ((1, 1000), None)
    [metric] = info.metrics
    assert (metric.key, metric.range, metric.better, metric.threshold) == ("brevity", (0.0, 1.0), "higher", 0.5)
    assert (metric.primary, metric.rule) == (True, "mean")
    assert (info.available, info.reason, info.enabled) == (True, "", True)


def test_the_words_that_a_parameter_takes_are_told() -> None:
    told = {info.id: {param.name: param.choices for param in info.params} for info in describe(load(), NOTHING)}
    assert told["rouge"] == {"use_stemmer": None, "rouge_types": ("rouge_1", "rouge_2", "rouge_l", "rouge_lsum")}
    assert told["classification"]["labels_from"] == ("auto", "labels", "answer")
    assert told["pii_leakage"]["kinds"] == ("usual", "all", *PERSONAL)
    assert told["pii_leakage"]["allow"] is None


def test_a_budget_is_told_in_words() -> None:
    assert describe_budget(Budget(sentences=20)) == "at most 2,000,000 characters, 10,000 items, 20 sentences"
    assert describe_budget(Budget(characters=None, items=None, tokens=8_192)) == "at most 8,192 tokens"
    assert describe_budget(Budget(None, None, regions=10_000)) == "at most 10,000 regions expected or predicted"
    assert describe_budget(Budget(characters=None, items=None)) == "any length"


def test_every_evaluator_declares_a_budget() -> None:
    assert [info.id for info in describe(load(), NOTHING) if describe_budget(info.budget) == "any length"] == []


def test_an_open_range_has_none_for_its_end() -> None:
    open_ended = replace(brevity, metrics=(Metric("brevity", 0.0, float("inf")),))
    [info] = describe({"brevity": open_ended}, EvaluatorSettings())
    assert info.metrics[0].range == (0.0, None)


def test_fingerprints_are_those_that_scores_carry() -> None:
    settings, encoder = EvaluatorSettings(params={"brevity": {"limit": 5}}), HashingEncoder()
    told = {info.id: info.fingerprint for info in describe(REGISTRY, settings, encoder)}
    assert told == {p.evaluator.id: p.fingerprint for p in prepare(REGISTRY, settings, None, encoder).prepared}


@pytest.mark.onnx
def test_no_model_is_loaded_to_tell_what_it_would_be() -> None:
    from ragtide.evaluators.encoder import load_encoder

    settings = EvaluatorSettings(encoder=EncoderSettings(backend="onnx"))
    encoder = load_encoder(settings.encoder)
    [_, told], [_, known] = describe(REGISTRY, settings), prepare(REGISTRY, settings, None, encoder).prepared
    assert (told.available, told.fingerprint) == (True, known.fingerprint)


def test_what_is_missing_is_told_and_no_fingerprint_invented(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragtide.evaluators.runtime.packages.find_spec", lambda name: None)
    fast, model = describe(REGISTRY, EvaluatorSettings(disabled=("brevity",)))
    assert (fast.available, fast.enabled) == (True, False)
    assert (model.available, model.fingerprint) == (False, None)
    assert "pip install 'ragtide[local]'" in model.reason


def test_an_extra_that_is_missing_is_told_whether_or_not_an_encoder_is_there() -> None:
    seeing = replace(nearness, extra=Extra("ragtide[vision]", ("no_such_module",)))
    for encoder in (None, HashingEncoder()):
        [info] = describe({"nearness": seeing}, EvaluatorSettings(), encoder)
        assert not info.available
        assert info.reason == "no_such_module not installed: pip install 'ragtide[vision]'"


def test_settings_are_checked_as_for_a_run() -> None:
    with pytest.raises(ConfigError, match="no evaluator 'zzz'"):
        describe(REGISTRY, EvaluatorSettings(disabled=("zzz",)))
