"""Everyone judges by the lines of the encoder that is used."""

import logging
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from ragtide.evaluators import registry
from ragtide.evaluators.encoder.hashing import HashingEncoder
from ragtide.evaluators.encoder.thresholds import ENCODER_THRESHOLDS
from ragtide.evaluators.encoder_thresholds import with_encoder_thresholds
from ragtide.evaluators.plan import parameters, prepare
from ragtide.evaluators.registry import spec_faults
from ragtide.evaluators.settings import EncoderSettings, EvaluatorSettings
from ragtide.evaluators.spec import Evaluator, ModelRef, Need

PAGE = Path(__file__).parents[3] / "docs" / "models.md"
MINILM = EvaluatorSettings(encoder=EncoderSettings(model="all-MiniLM-L6-v2"))
BGE = EvaluatorSettings(encoder=EncoderSettings(model="BAAI/bge-small-en-v1.5"))
RANK = "context_mrr"


def thresholds(settings: EvaluatorSettings) -> dict[str, float | None]:
    return lines_of(with_encoder_thresholds(registry.load(), settings))


def lines_of(evaluators: Mapping[str, Evaluator]) -> dict[str, float | None]:
    return {f"{one.id}.{metric.key}": metric.threshold for one in evaluators.values() for metric in one.metrics}


def mark(settings: EvaluatorSettings) -> str:
    only = settings.model_copy(update={"enabled": (RANK,)})
    [prepared] = prepare(with_encoder_thresholds(registry.load(), only), only, None, HashingEncoder()).prepared
    return prepared.fingerprint


def test_an_encoder_has_its_own_thresholds_and_everything_else_keeps_the_catalogues() -> None:
    catalogue = lines_of(registry.load())
    assert catalogue["groundedness.groundedness"] == catalogue["context_relevancy_soft.recall_relevancy"] == 0.75
    own = thresholds(MINILM)
    for found, name in ((own, "all-MiniLM-L6-v2"), (thresholds(BGE), "bge-small-en-v1.5")):
        moved = {metric: line for metric, line in found.items() if line != catalogue[metric]}
        assert moved == dict(ENCODER_THRESHOLDS[name].thresholds)
    assert own == thresholds(EvaluatorSettings()), "auto: nothing was fetched"


@pytest.mark.parametrize("name", ENCODER_THRESHOLDS)
def test_every_line_is_one_of_an_evaluator_that_embeds(name: str) -> None:
    of_name = EvaluatorSettings(encoder=EncoderSettings(model=name))
    evaluators = with_encoder_thresholds(registry.load(), of_name)
    embedding = [one for one in evaluators.values() if Need.EMBEDDING in one.needs]
    known = {f"{one.id}.{metric.key}" for one in embedding for metric in one.metrics}
    assert set(ENCODER_THRESHOLDS[name].thresholds) <= known
    for id, evaluator in evaluators.items():
        assert spec_faults(evaluator) == []
        values = evaluator.params().model_dump()
        assert {**values, **ENCODER_THRESHOLDS[name].params.get(id, {})} == values


def test_defaults_of_parameters_reach_the_fingerprint_and_settings_win_over_them() -> None:
    mrr = with_encoder_thresholds(registry.load(), MINILM)[RANK]
    assert parameters(mrr, MINILM).model_dump() == {"relevant_chunk_threshold": 0.45, "max_rank": 10}
    given = MINILM.model_copy(update={"params": {RANK: {"relevant_chunk_threshold": 0.75}}})
    assert parameters(mrr, given).model_dump()["relevant_chunk_threshold"] == 0.75
    assert mark(MINILM) != mark(BGE) == mark(given)
    field = mrr.params.model_json_schema()["properties"]["relevant_chunk_threshold"]
    assert (field["default"], field["minimum"], field["maximum"]) == (0.45, 0, 1)
    assert field["description"] == "Minimum relevance of a relevant chunk."


def test_an_evaluator_that_asks_another_model_keeps_the_catalogues_lines() -> None:
    own = registry.load()["groundedness"]
    asking = replace(own, models=lambda _: [ModelRef(Need.NLI, "nli")])
    assert with_encoder_thresholds({own.id: own}, MINILM)[own.id].metrics[0].threshold == 0.55
    assert with_encoder_thresholds({own.id: asking}, MINILM)[own.id] is asking


def test_an_encoder_that_nobody_measured_has_the_catalogues_and_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    other = EvaluatorSettings(encoder=EncoderSettings(model="org/other-encoder"))
    with caplog.at_level(logging.WARNING):
        assert thresholds(other) == thresholds(other) == lines_of(registry.load())
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        "no thresholds were measured for the encoder other-encoder"
    ]


def test_the_page_on_models_has_every_line() -> None:
    rows = re.findall(r"^\| (`.*?) \| ([\d.]+) \| ([\d.]+) \|$", PAGE.read_text(), re.MULTILINE)
    told = {name: (float(bge), float(minilm)) for name, bge, minilm in rows}
    [bge, minilm] = [with_encoder_thresholds(registry.load(), settings) for settings in (BGE, MINILM)]
    lines = ENCODER_THRESHOLDS["all-MiniLM-L6-v2"]
    drawn = {f"`{metric}`": (thresholds(BGE)[metric], line) for metric, line in lines.thresholds.items()}
    for id, params in lines.params.items():
        of_bge, of_minilm = bge[id].params().model_dump(), minilm[id].params().model_dump()
        drawn |= {f"`{id}` parameter `{name}`": (of_bge[name], of_minilm[name]) for name in params}
    assert told == drawn
