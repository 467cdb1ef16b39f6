"""The figures of `benchmarks.validity`: hand-worked, on data in RAGTruth's two layouts."""

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.support import __main__ as support_benchmark
from benchmarks.support.__main__ import Goal
from benchmarks.support.fit import cross_validated, fit
from benchmarks.validity.__main__ import CLAIM, JUDGED, main
from benchmarks.validity.measures import auroc, best_f1, best_f1_interval, calibration, f1, interval, length_quartiles
from benchmarks.validity.ragtruth import read_answers
from ragtide.evaluators import registry
from tests.stream.judge.chat_server import Sent, by_rule, chat_server

RISK = np.array([0.9, 0.8, 0.7, 0.6, 0.6, 0.1])
BAD = np.array([True, False, True, True, False, False])


def test_auroc_counts_pairs_in_order_and_ties_half() -> None:
    # Of 9 pairs: 0.9 beats three, 0.7 beats two, 0.6 beats one and ties one.
    assert auroc(RISK, BAD) == pytest.approx((3 + 2 + 1.5) / 9)
    assert np.isnan(auroc(RISK, np.ones(6, np.bool_)))


def test_f1_is_that_of_the_flagged() -> None:
    assert f1(RISK > 0.65, BAD) == pytest.approx(2 * 2 / (3 + 3))
    assert f1(RISK > 1, BAD) == 0


def test_the_best_threshold_flags_answers_of_one_risk_together() -> None:
    assert list(best_f1(RISK, BAD)) == pytest.approx([2 * 3 / (5 + 3), 0.6])


def test_an_interval_draws_sources() -> None:
    found = interval(lambda rows: float(BAD[rows].mean()), ["a", "a", "b", "b", "c", "c"])
    assert found.value == 0.5
    assert 0 <= found.low < 0.5 < found.high <= 1
    same = interval(lambda rows: float(BAD[rows].mean()), ["a"] * 6)
    assert (same.low, same.high) == (0.5, 0.5)


def test_calibration_compares_predicted_and_real_in_bins_of_equal_size() -> None:
    found = calibration(RISK, BAD, 3)  # 0.1 and 0.6, 0.6 and 0.7, 0.8 and 0.9
    assert [one.answers for one in found] == [2, 2, 2]
    assert [one.predicted for one in found] == pytest.approx([0.35, 0.65, 0.85])
    assert [one.real for one in found] == [0.5, 0.5, 0.5]


def test_quartiles_of_length() -> None:
    assert list(length_quartiles(np.array([10.0, 20, 30, 40, 50, 60, 70, 80]))) == [0, 0, 1, 1, 2, 2, 3, 3]


def test_the_interval_of_the_best_f1_has_the_best_of_each_draw() -> None:
    found = best_f1_interval(RISK, BAD, ["a", "b", "c", "d", "e", "f"])
    assert found.value == best_f1(RISK, BAD)[0]
    assert 0 <= found.low < found.value < found.high <= 1


def _source(number: int) -> dict[str, object]:
    end = " It rains." * (number % 4)
    good = {"response": f"The red car {number} is in the garage.{end}", "labels": []}
    bad = {"response": f"A purple helicopter sank beneath Jupiter.{end}", "labels": [{"start": 0, "end": 8}]}
    passages = f"passage 1:The red car {number} is in the garage.\n\npassage 2:It rains.\n\n"
    return {"source_id": number, "source": {"question": "Where?", "passages": passages}, "responses": [good, bad]}


def _write(path: Path, lines: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_a_file_for_each_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write(tmp_path / "qa.jsonl", [_source(number) for number in range(8)])
    record = {"name": "Lido", "WiFi": None}
    _write(
        tmp_path / "data2txt.jsonl",
        [{"source_id": 9, "source": record, "responses": [{"response": "x", "labels": []}]}],
    )
    answers = read_answers(tmp_path)
    assert [one.hallucinated for one in answers] == [False, True] * 8 + [False]
    assert [chunk.text for chunk in answers[0].trace.contexts or ()] == ["The red car 0 is in the garage.", "It rains."]
    assert json.loads((answers[-1].trace.contexts or ())[0].text or "") == record
    assert main(["--data", str(tmp_path), "--evaluators", "support"]) == 0
    printed = capsys.readouterr().out
    assert "16 of 16 scored, 8 hallucinated" in printed
    assert "AUROC 1.000" in printed
    assert "best 1.000 [1.000, 1.000] at" in printed
    assert "      3: AUROC 1.000 [1.000, 1.000]   F1 at the shipped threshold 1.000 [1.000, 1.000]   best" in printed
    assert "data2txt  1 of 1 scored, 0 hallucinated" in printed
    assert "      1: 1 answers, 0 hallucinated" in printed


def test_the_authors_layout(tmp_path: Path) -> None:
    info: list[dict[str, object]] = [
        {"source_id": "5", "task_type": "Summary", "source": "CNN", "source_info": "It rained in June."}
    ]
    _write(tmp_path / "source_info.jsonl", info)
    _write(tmp_path / "response.jsonl", [{"source_id": "5", "response": "June was wet.", "labels": []}])
    [one] = read_answers(tmp_path)
    assert (one.part, one.trace.task, one.trace.question) == ("summary", "summarization", "It rained in June.")


def test_a_folder_without_data(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="has no RAGTruth"):
        read_answers(tmp_path)


def test_a_goal_is_reached_on_its_side_only() -> None:
    assert not Goal("AUROC", 0.8, 0.8).is_missed
    assert Goal("AUROC", 0.79, 0.8).is_missed
    assert Goal("AUROC", float("nan"), 0.8).is_missed
    assert Goal("ms", 1.2, 1.0, is_most=True).is_missed
    assert str(Goal("ms", 1.2, 1.0, is_most=True)) == "goal missed: ms 1.200, at most 1.0"


def test_every_goal_that_the_data_has_is_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    took = {"p0": 0.5, "t": 0.5, "qa-0-0": 0.9, "summary-0-0": 1.5}
    monkeypatch.setattr(support_benchmark, "milliseconds", lambda traces: took[traces[0].trace_id])
    sources = [_source(number) for number in range(12)]
    _write(tmp_path / "qa.jsonl", sources)
    assert support_benchmark.main(["--data", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    goals = [line for line in printed.splitlines() if line.startswith("goal")]
    assert [line.split(": ")[1].rpartition(" at ")[0].rpartition(" ")[0] for line in goals] == [
        "AUROC of paraphrases",
        "ms of CPU of a trace with ten contexts",
        "ms of CPU of a trace of qa",
        "AUROC of qa by words",
        "F1 of qa by words",
    ]
    assert "by fifth: " in printed
    _write(tmp_path / "summary.jsonl", [{**one, "source": "It rained."} for one in sources])
    assert support_benchmark.main(["--data", str(tmp_path)]) == 1
    assert "goal missed: ms of CPU of a trace of summary 1.500, at most 1.0" in capsys.readouterr().out


def test_evaluators_that_ask_a_judge_are_named_without_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write(tmp_path / "qa.jsonl", [_source(number) for number in range(2)])
    assert main(["--data", str(tmp_path), "--evaluators", "faithfulness"]) == 0
    assert (
        "faithfulness: not measured, off by these settings: name an endpoint of a judge in a file for --config"
        in capsys.readouterr().out
    )


def test_a_judge_of_the_settings_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write(tmp_path / "qa.jsonl", [_source(number) for number in range(4)])
    config = tmp_path / "ragtide.toml"

    def contradicts(sent: Sent) -> Any:
        return {"verdicts": [{"number": n, "verdict": "helicopter" in sent.user} for n in (1, 2)]}

    with chat_server(by_rule(contradicts)) as server:
        endpoint = f'url = "{server.url}"\nmodel = "m"\nstructured = "none"\n'
        config.write_text(f"[evaluators.judge.endpoints.local]\n{endpoint}")
        chosen = ["--config", str(config), "--evaluators", "hallucination_contradiction"]
        assert main(["--data", str(tmp_path), *chosen]) == 0
    assert len(server.sent) == 8
    printed = capsys.readouterr().out
    assert "8 of 8 scored, 4 hallucinated" in printed
    assert "AUROC 1.000 [1.000, 1.000]" in printed


def test_every_evaluator_that_claims_to_see_it_is_on_the_page() -> None:
    stated = tomllib.loads((Path(__file__).parents[2] / "docs" / "validity.toml").read_text())
    assert {*stated["evaluators"], *stated["not_measured"]} == {*CLAIM, *JUDGED} <= registry.load().keys()
    assert {one for one in JUDGED if registry.load()[one].judge is None} == set()


def test_a_fit_finds_the_feature_that_tells() -> None:
    chance = np.random.default_rng(0)
    rows = chance.normal(size=(400, 2))
    bad = rows[:, 0] + 0.3 * chance.normal(size=400) > 0
    found = fit(("told", "noise"), rows, bad)
    assert found.slopes[0] > 1
    assert 0 <= found.slopes[1] < 0.5
    assert ((found.risk(rows) > 0.5) == bad).mean() > 0.85
    assert auroc(cross_validated(("told", "noise"), rows, bad, [str(i // 4) for i in range(400)]), bad) > 0.9
