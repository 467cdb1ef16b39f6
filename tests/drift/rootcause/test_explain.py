"""Planted causes are found, and none where there is none, on the real engine."""

import json
import math
from collections.abc import Iterator
from typing import Any

import pytest

from ragtide.drift.rootcause import query, slice_queries
from ragtide.drift.rootcause.explain import RootCause
from ragtide.drift.rootcause.messages import root_cause_message
from ragtide.drift.rules.model import Rule, Series
from ragtide.drift.rules.resolve import coverage_rule_for, rule_for
from ragtide.drift.settings import RuleOverride, RuleSettings
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from tests.drift.rootcause.scenarios import AFTER, BEFORE, END, METRICS, ONSET, Trace, explain_app, world_of
from tests.drift.world import World
from tests.infra.fresh_database import fresh_database

pytestmark = pytest.mark.clickhouse


def tenant(trace: Trace) -> None:
    """German questions of one tenant are answered badly, from contexts as good as ever."""
    trace.segments["language"] = "de" if trace.random.random() < 0.7 else "en"
    hit = trace.after and trace.segments["tenant"] == "acme" and trace.segments["language"] == "de"
    bad = hit or trace.random.random() < 0.1
    trace.good, trace.near = trace.noisy(0.3 if bad else 0.9), trace.noisy(0.9)


def rollout(trace: Trace) -> None:
    """A new prompt version for all; whichever answers are bad have bad contexts. And `checked` is another evaluator."""
    trace.prompt_version = "v4" if trace.after else "v3"
    bad = trace.random.random() < (0.5 if trace.after else 0.1)
    trace.good, trace.near = trace.noisy(0.3 if bad else 0.9), trace.noisy(0.4 if bad else 0.9)
    trace.passes, trace.fingerprint = float(not bad), "f2" if trace.after else "f1"


def mix(trace: Trace) -> None:
    """Simpson: both languages are answered better than before, and the whole is worse: the harder one is asked more."""
    trace.segments["language"] = "de" if trace.random.random() < (0.7 if trace.after else 0.1) else "en"
    hard = trace.segments["language"] == "de"
    trace.good, trace.words = trace.noisy((0.4 if hard else 0.9) + 0.02 * trace.after), 10.0


def ill(trace: Trace) -> None:
    """A second model is slow, and times out; of two tenants without windows of their own one fails a check."""
    trace.model = "m2" if trace.random.random() < 0.4 else "m1"
    hit = trace.after and trace.model == "m2"
    trace.seconds = float(trace.random.lognormal(0.0, 0.4)) * (2 if hit else 1)
    failed = trace.random.random() < (0.6 if hit else 0.05)
    trace.good, trace.reason = (None if failed else trace.noisy(0.9)), "timeout" if hit else "crashed"
    if trace.segments["tenant"] == "gamma" and trace.random.random() < 0.5:
        trace.segments["tenant"] = "delta"
    trace.passes = float(trace.random.random() > (0.9 if trace.after and trace.segments["tenant"] == "delta" else 0.05))


@pytest.fixture(scope="module")
def world(clickhouse_server: EmbeddedClickHouse) -> Iterator[World]:
    with fresh_database(clickhouse_server) as database:
        yield world_of(database, {"tenant": tenant, "rollout": rollout, "mix": mix, "ill": ill})


def path(cause: RootCause) -> list[tuple[str, str]]:
    return [(one.dimension, one.value) for one in cause.contributors]


def rule(metric: str, **said: Any) -> Rule:
    """Of the metric anywhere in `ill`."""
    overrides = (RuleOverride(metric=metric, **said),) if said else ()
    series = Series("ill", "prod", metric, "", "", "")
    found = rule_for(series, METRICS[metric], RuleSettings(overrides=overrides))
    assert found is not None
    return found


def test_a_culprit_is_found_and_the_one_within_it(world: World) -> None:
    cause = explain_app(world, "tenant")
    assert path(cause) == [("tenant", "acme"), ("language", "de")]
    acme, german = cause.contributors
    assert acme.share > 0.8
    assert german.share > 0.8
    assert acme.is_rate_effect
    assert acme.traffic_before == pytest.approx(0.3, abs=0.03)
    assert (cause.stage and cause.stage.verdict, cause.question_mix and cause.question_mix.verdict) == (
        "generation",
        "answers",
    )
    assert (cause.versions, cause.failure_reasons, cause.sample_share) == ((), (), 1.0)
    said = root_cause_message(cause)
    assert said.startswith("Tenant acme explains ")
    assert " of the drop (mean 0." in said
    assert ". Within that, language de explains 100 % (" in said
    assert said.endswith("bad contexts: look at generation. The mix of questions does not explain the drop.")


def test_what_all_have_alike_is_no_culprit_but_a_version_that_came_then_is_told(world: World) -> None:
    cause = explain_app(world, "rollout")
    assert (path(cause), cause.dimensions) == ([], ("language", "prompt_version", "tenant"))
    (change,) = cause.versions
    assert change[:4] == ("prompt_version", "v3", "v4", world.at(ONSET * 60))
    assert (change.share_before, change.share_after) == (0.0, 1.0)
    assert cause.stage is not None
    assert cause.stage.verdict == "retrieval"
    assert cause.stage.bad_of_failing == cause.stage.failing > 40
    said = root_cause_message(cause)
    assert said.startswith("No single language or tenant explains the drop. Prompt version changed from v3 to v4")
    assert "failing traces have bad contexts: look at retrieval." in said


def test_a_harder_mix_of_questions_is_told_apart_from_worse_answers(world: World) -> None:
    cause = explain_app(world, "mix")
    (german,) = cause.contributors
    assert (german.dimension, german.value, german.is_rate_effect) == ("language", "de", False)
    assert german.rate > 0  # by itself it is better
    assert cause.question_mix is not None
    assert (cause.question_mix.verdict, cause.question_mix.strata) == ("questions", 2)
    assert cause.question_mix.mix > 1  # the answers made up for some
    assert "explains 100 % of the drop: the answers are as good as before." in root_cause_message(cause)


def test_latency_is_told_by_the_share_of_slow_traces(world: World) -> None:
    cause = explain_app(world, "ill", "speed.seconds")
    assert path(cause) == [("model", "m2")]
    assert cause.quantity is not None
    assert cause.quantity.max == pytest.approx(math.exp(0.4 * 1.2816), rel=0.1)  # nine tenths of a log-normal
    assert cause.contributors[0].mean_before == pytest.approx(0.1, abs=0.03)
    line = explain_app(world, "ill", "speed.seconds", rule("speed.seconds", max=2.0))
    assert (path(line), line.quantity and line.quantity.max) == ([("model", "m2")], 2.0)
    assert root_cause_message(line).startswith("Model m2 explains ")
    assert " of the rise (" in root_cause_message(line)
    assert " out of bounds, " in root_cause_message(line)


def test_coverage_is_told_by_reason_too(world: World) -> None:
    coverage = coverage_rule_for(
        Series("ill", "prod", "quality.good", "", "", ""), METRICS["quality.good"], RuleSettings()
    )
    cause = explain_app(world, "ill", rule=coverage)
    assert path(cause) == [("model", "m2")]
    assert [one.kind for one in cause.failure_reasons] == ["timeout", "crashed"]
    assert sum(one.share for one in cause.failure_reasons) == pytest.approx(1)
    assert cause.stage is None
    assert "% without a score, " in root_cause_message(cause)
    assert "Failure reason timeout explains " in root_cause_message(cause)


def test_values_without_windows_of_their_own_are_told_by_their_rows(world: World) -> None:
    cause = explain_app(world, "ill", "checked.passes", rule("checked.passes"))
    assert path(cause) == [("tenant", "__other__"), ("tenant", "delta")]
    assert root_cause_message(cause).startswith("All tenants without windows of their own explain ")


def test_a_metric_that_windows_are_not_cut_for_is_read_from_rows(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    cause = explain_app(world, "tenant", "quality.other")
    assert path(cause) == [("tenant", "acme"), ("language", "de")]
    monkeypatch.setattr(slice_queries, "MOST_ROWS", 1000)
    some = explain_app(world, "tenant", "quality.other")
    assert path(some)[0] == ("tenant", "acme")
    assert some.sample_share == pytest.approx(1000 / 1644)
    assert ". This is estimated from 61 % of the traces." in root_cause_message(some)


def test_millions_of_rows_are_looked_at_for_a_shorter_time_or_not_at_all(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query, "_LEAST_BEFORE", 30)  # so that 48 windows are compared with 6, at first
    monkeypatch.setattr(slice_queries, "MOST_SCANNED", 32 * BEFORE + 4 * AFTER + 20)
    late = explain_app(world, "tenant")
    assert late.shift is not None
    assert (late.shift.n_before, late.shift.n_after) == (32 * BEFORE, 4 * AFTER)
    assert (late.sample_share, late.stage is not None) == (1.0, True)
    assert (late.too_few, path(late)) == (True, [])  # 36 windows
    assert root_cause_message(late).startswith("Too few windows have traffic to attribute the drop. ")
    monkeypatch.undo()
    monkeypatch.setattr(slice_queries, "MOST_SCANNED", 50)
    none = explain_app(world, "tenant")
    assert (path(none), none.stage, none.question_mix, none.sample_share) == ([("tenant", "acme")], None, None, 0.0)


def test_within_a_series_that_is_cut_already_the_other_segments_are_tried(world: World) -> None:
    cause = explain_app(world, "tenant", segment="tenant", segment_value="acme", model="m1")
    assert (path(cause), cause.dimensions) == ([("language", "de")], ("language",))
    others = explain_app(world, "ill", "checked.passes", segment="tenant", segment_value="__other__")
    assert path(others) == [("tenant", "delta")]


def test_what_scored_by_another_fingerprint_is_not_compared(world: World) -> None:
    cause = explain_app(world, "rollout", "checked.passes")
    assert (cause.shift, cause.contributors) == (None, ())
    assert root_cause_message(cause).endswith(". There is no data from before and after the onset to compare.")


def test_nothing_before_or_after_is_no_number(world: World) -> None:
    for since, until in ((0, 10), (END, END + 10)):
        cause = explain_app(world, "tenant", since=world.at(since * 60), until=world.at(until * 60))
        assert (cause.shift, cause.contributors, cause.stage) == (None, (), None)


def test_all_of_it_goes_into_json_and_the_same_question_has_the_same_answer(world: World) -> None:
    told = [
        json.dumps(explain_app(world, app).attributes, sort_keys=True, allow_nan=False) for app in ("rollout", "mix")
    ]
    assert json.dumps(explain_app(world, "mix").attributes, sort_keys=True) == told[-1]
