"""`evaluate` gives every trace its scores, whatever the form and order of records, and loses no record."""

import json
import math
import pickle
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pydantic import BaseModel

import ragtide
from ragtide import Rejected, evaluate
from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.outcome import NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Metric, Shared, evaluator
from ragtide.evaluators.trace import Trace
from ragtide.sinks.settings import RetentionSettings
from ragtide.stream.ingest.decoding import Limits
from ragtide.stream.ingest.validation import validate
from ragtide.stream.settings.sections import IngestSettings
from tests.stream.api.results import EVALUATORS, evaluated, scores, trace, traces

LIMITS = Limits.of(IngestSettings(), RetentionSettings(), timely=False)


@dataclass(frozen=True)
class Answer:
    answer: str | None


@evaluator("answers", version=1, domain="generation", method="rule", inputs=Answer, metrics=[Metric("n", high=1e9)])
def answers(rows: Sequence[Answer], shared: Shared, params: BaseModel) -> Iterable[Outcome]:
    """How many words; fails at "boom"."""
    for row in rows:
        if row.answer == "boom":
            raise RuntimeError
        yield Scored({"n": len(row.answer.split())}) if row.answer else NotApplicable("empty")


def test_scores_reasons_and_evidence_are_by_trace() -> None:
    leak = trace(1, trace_id="leak", answer="Write to jane.doe@example.com.", expected=...)
    result = evaluate([trace(0), leak], ["exact_match", "pii_leakage", "sari"], progress=False)
    assert (len(result), result.evaluators, result.rejected) == (2, ("exact_match", "pii_leakage", "sari"), ())
    assert [(one.record, one.trace_id, one.app, one.model) for one in result.traces] == [
        (1, "t-0", "docs", "small-2"),
        (2, "leak", "docs", "small-2"),
    ]
    assert result["t-0"].keys() == {"exact_match", "pii_leakage"}, "sari is of another task"
    assert result["t-0"]["exact_match"].metrics == {"exact_match": 1.0}
    found = result["leak"]
    assert (found["exact_match"].status, found["exact_match"].reason) == ("not_applicable", "missing_expected")
    assert found["exact_match"].metrics == {}
    (place,) = found["pii_leakage"].evidence
    assert (place.field, place.kind, leak["answer"][place.start : place.end]) == (
        "answer",
        "email",
        "jane.doe@example.com",
    )
    with pytest.raises(KeyError):
        result["other"]
    assert [one.trace_id for one in result.scores("exact_match")] == ["t-0", "leak"]
    assert (found["pii_leakage"].findings, found["exact_match"].findings) == (("leaked_email",), ())
    assert found["pii_leakage"].finding_texts == ("The answer holds an e-mail address.",)


def test_a_result_can_be_pickled_with_evaluators_of_modules() -> None:
    leak = trace(1, answer="Write to jane.doe@example.com.", latency={"total_ms": 9})
    result = evaluate([trace(0), leak, b"oops"], [answers, "pii_leakage", "operations"])
    read = pickle.loads(pickle.dumps(result))
    assert [*read.scores()] == [*result.scores()]
    assert (read.traces, read.rejected, read.notes) == (result.traces, result.rejected, result.notes)
    assert (repr(read), read.summary()) == (repr(result), result.summary())
    assert {one.verdict for one in result.compare(read).metrics} <= {"same", "unknown"}
    stricter = replace(answers, metrics=(replace(answers.metrics[0], threshold=3.0),))
    changed = pickle.loads(pickle.dumps(evaluate([trace(0)], [stricter])))
    assert [one.bad for one in changed.summary()] == [0]


def test_an_evaluator_that_no_module_has_cannot_be_pickled() -> None:
    @evaluator("local", version=1, domain="generation", method="rule", inputs=Answer, metrics=[Metric("n")])
    def local(rows: Sequence[Answer], shared: Shared, params: BaseModel) -> Iterable[Outcome]:
        """Nothing."""
        return [NotApplicable("empty") for _ in rows]

    with pytest.raises(pickle.PicklingError, match="the evaluator 'local' cannot be pickled; define it at the top"):
        pickle.dumps(evaluate([trace(0)], [local]))


def test_rejected_records_have_the_words_of_validate() -> None:
    wrong = trace(1, time="2026-03-01T12:00:00", tokens=5, app=...)
    result = evaluated([trace(0), wrong, b"oops", {"trace_id": {1}}, trace(2, cost_usd=math.nan), trace(3)])
    words = validate(json.dumps(wrong).encode(), LIMITS).faults
    assert len(words) == 3
    assert result.rejected == (
        *(Rejected(2, one.key, one.reason, one.detail) for one in words),
        Rejected(3, "", "not_json", "malformed (byte 0)"),
        Rejected(4, "trace_id", "not_json", "trace_id: found a value of type set; JSON has no such value"),
        Rejected(5, "", "not_finite", "NaN and Infinity are not JSON; leave out what was not measured"),
    )
    assert result.rejected_records == 4
    assert [one.record for one in result.traces] == [1, 6]


def test_of_several_records_with_one_id_the_last_one_counts() -> None:
    late = trace(0, answer="No.", time="2026-03-01T13:00:00Z", app="other")  # another key of the tables
    records = [trace(0), trace(1), late, *traces(300)[2:], trace(1, answer="It returns a string.")]
    result = evaluated(records, "exact_match")
    assert (len(result), result.replaced) == (300, 2)
    assert [(one.record, one.trace_id) for one in result.traces][:2] == [(3, "t-0"), (4, "t-2")]
    assert result.traces[-1].record == len(records)
    assert (result["t-0"]["exact_match"].metrics, result["t-1"]["exact_match"].metrics) == (
        {"exact_match": 0.0},
        {"exact_match": 1.0},
    )
    assert (result["t-0"]["exact_match"].record, result.traces[0].app) == (3, "other")
    assert "302 records: 300 evaluated, 0 rejected, 2 replaced by a later record" in repr(result)


def test_by_default_the_evaluators_of_the_lane_fast_run() -> None:
    from ragtide.evaluators import registry

    result = evaluate([trace(0)], progress=False)
    fast = {id for id, one in registry.load().items() if one.lane == "fast" and not one.off_until_set}
    assert {*result.evaluators, *result.unavailable} == fast
    assert {"rouge", "operations", "pii_leakage"} <= {*result.evaluators}


@pytest.mark.onnx
def test_the_lane_model_loads_the_encoder_and_only_the_encoder_that_is_packaged() -> None:
    result = evaluate([trace(0), trace(1, contexts=...)], "groundedness", lanes="model", progress=False)
    first, second = result["t-0"]["groundedness"], result["t-1"]["groundedness"]
    assert first.status == "scored"
    assert all(0 <= value <= 1 for value in first.metrics.values())
    assert (second.status, second.reason) == ("not_applicable", "missing_contexts")


def test_own_evaluators_run_beside_the_installed_ones_and_a_failure_is_no_score() -> None:
    records = [trace(0, answer="one two"), trace(1, answer="boom"), trace(2, answer="")]
    result = evaluate(records, [answers, "inputs"], progress=False)
    states = [(one.status, one.reason, one.metrics) for one in result.scores("answers")]
    assert states == [("scored", "", {"n": 2}), ("failed", "crashed", {}), ("not_applicable", "empty", {})]
    with pytest.raises(ConfigError, match="evaluator 'answers' is not declared correctly: version must be 1 or more"):
        evaluate(records, [replace(answers, version=0)])


def test_settings_and_a_file_change_parameters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [trace(0, answer="It returned strings.")]
    stems = {"evaluators": {"params": {"rouge": {"use_stemmer": True}}}}
    plain = evaluated(records, "rouge")["t-0"]["rouge"]
    stemmed = evaluated(records, "rouge", **stems)["t-0"]["rouge"]
    assert stemmed.metrics["rouge_1"] > plain.metrics["rouge_1"]
    assert stemmed.fingerprint != plain.fingerprint
    file = tmp_path / "ragtide.toml"
    file.write_text("[evaluators.params.rouge]\nuse_stemmer = true\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAGTIDE_CONFIG", str(file))
    assert evaluated(records, "rouge")["t-0"]["rouge"] == plain, "neither file nor variables are read unasked"
    assert evaluate(records, ["rouge"], config=file)["t-0"]["rouge"] == stemmed
    monkeypatch.setenv("RAGTIDE_EVALUATORS__PARAMS__ROUGE__USE_STEMMER", "false")
    assert evaluate(records, ["rouge"], config=file)["t-0"]["rouge"] == plain
    assert evaluate(records, ["rouge"], config=file, settings=stems)["t-0"]["rouge"] == stemmed


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ({"evaluators": ["rogue"]}, "there is no evaluator 'rogue'; did you mean 'rouge'?"),
        ({"evaluators": []}, "evaluators: the list is empty; name at least one, or leave it out"),
        ({"evaluators": [3]}, "evaluators: a int is neither a name nor an Evaluator"),
        ({"evaluators": ["groundedness"], "lanes": "fast"}, "groundedness (model); only fast is chosen"),
        ({"lanes": ["slow"]}, "there is no lane 'slow' (valid: fast, model, judge)"),
        ({"lanes": "judge"}, "no evaluator can run; `ragtide evaluators` lists all"),
        ({"settings": {"evaluators": {"rouge": {}}}}, "settings: evaluators.rouge: no such setting"),
        ({"settings": {"evaluators": {"params": {"rouge": {"stem": 1}}}}}, "there is no such parameter"),
        ({"config": "missing.toml"}, "missing.toml: no such settings file"),
    ],
)
def test_mistakes_are_errors_that_name_what_is_valid(call: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        evaluate([trace(0)], **call)
    assert words in str(refused.value)


def test_arguments_of_a_result_that_cannot_be_are_errors() -> None:
    result = evaluated([trace(0)], "rouge")
    with pytest.raises(ConfigError, match="confidence is 95; it must lie between 0 and 1"):
        result.summary(95)
    with pytest.raises(ConfigError, match=r"there is no form 'wde' \(valid: wide, long\)"):
        result.to_pandas("wde")  # type: ignore[arg-type]  # what the check is for
    with pytest.raises(ConfigError, match=r"scores: 'rogue' did not run; did you mean rouge\?"):
        result.scores("rogue")
    with pytest.raises(ConfigError, match="compare: found a value of type int; give the result of `evaluate`"):
        result.compare(5)  # type: ignore[arg-type]  # what the check is for


def test_an_evaluator_without_its_packages_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    from ragtide.evaluators import plan

    monkeypatch.setattr(plan, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"'object_detection', which cannot run: .*pip install 'ragtide\[vision\]'"):
        evaluate([trace(0)], "object_detection")


def test_notes_say_how_records_were_read() -> None:
    result = evaluated([trace(0, user_id=7, latency={"total_ms": 9})])
    assert result.notes[0].startswith("read: number_as_text at user_id in 1 record: ")
    assert result.notes[1].startswith("unknown: in 1 record: app docs: no trace has a field latency.total_ms")


def test_no_records_give_an_empty_result() -> None:
    result = evaluated([])
    assert (len(result), list(result.scores()), result.rejected) == (0, [], ())
    assert "0 records: 0 evaluated, 0 rejected" in repr(result)
    assert "no score: rouge: there is no trace" in repr(result)


def test_a_sample_is_that_of_live_traffic() -> None:
    result = evaluated(traces(200), "rouge", sampling={"evaluators": {"rouge": 0.25}})
    states = [one.status for one in result.scores("rouge")]
    assert 20 < states.count("scored") < 80
    assert states.count("sampled_out") == 200 - states.count("scored")
    (first, *_) = result.summary()
    assert (first.seen, first.sampled, first.scored) == (200, states.count("scored"), states.count("scored"))
    assert first.skipped == {"not_sampled": states.count("sampled_out")}


def test_forms_of_records_change_no_score(tmp_path: Path) -> None:
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    records = traces(40)
    file = tmp_path / "traces.jsonl"
    file.write_text("".join(f"{json.dumps(one)}\n" for one in records))
    wanted = evaluated(records)
    forms: dict[str, object] = {
        "generator": (one for one in records),
        "texts": [json.dumps(one) for one in records],
        "traces": [msgspec.json.decode(json.dumps(one), type=Trace) for one in records],
        "file": file,
        "pandas": pandas.DataFrame(records),
        "arrow": pyarrow.Table.from_pylist(records),
    }
    for name, form in forms.items():
        found = evaluated(form)
        assert (found.traces, scores(found)) == (wanted.traces, scores(wanted)), name


@hypothesis_settings(max_examples=15)
@given(st.permutations(range(12)), st.integers(1, 5), st.data())
def test_the_order_of_records_and_their_slices_change_no_score(
    order: list[int], batch: int, data: st.DataObject
) -> None:
    answer = st.sampled_from(["", "It returns a string.", "A dict.", "yes yes yes yes"])
    records = [trace(n, answer=data.draw(answer), expected=... if n % 5 == 0 else ["A dict."]) for n in range(12)]
    wanted = evaluated(records)
    found = evaluated([records[at] for at in order], worker={"batch_records": batch})
    assert scores(found) == scores(wanted)
    assert [one.trace_id for one in found.traces] == [f"t-{at}" for at in order]


def test_the_package_shows_its_names_and_imports_the_rest_when_they_are_used() -> None:
    program = (
        "import sys, ragtide; loaded = [name for name in sys.modules if name.startswith('ragtide.')]; "
        "assert not loaded, loaded; assert {'evaluate', 'connect', 'label'} <= {*dir(ragtide)}; "
        "from ragtide import evaluate; assert 'pandas' not in sys.modules and 'pyarrow' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
    assert {*ragtide.__all__} <= {*dir(ragtide)}
    with pytest.raises(AttributeError, match="module 'ragtide' has no attribute 'evaluator'"):
        ragtide.evaluator  # type: ignore[attr-defined]  # noqa: B018  # there is none


def test_times_of_traces_are_aware() -> None:
    assert evaluated([trace(0)], EVALUATORS[0]).traces[0].time == datetime(2026, 3, 1, 12, tzinfo=UTC)
