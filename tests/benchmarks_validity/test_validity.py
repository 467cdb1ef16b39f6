"""The figures of `benchmarks.validity`: hand-worked, on data in RAGTruth's two layouts."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.support.fit import cross_validated, fit
from benchmarks.validity.__main__ import main
from benchmarks.validity.measures import auroc, best_f1, f1, interval
from benchmarks.validity.ragtruth import read_answers

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


def _source(number: int) -> dict[str, object]:
    good = {"response": f"The red car {number} is in the garage.", "labels": []}
    bad = {"response": "A purple helicopter sank beneath Jupiter.", "labels": [{"start": 0, "end": 8}]}
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


def test_a_fit_finds_the_feature_that_tells() -> None:
    chance = np.random.default_rng(0)
    rows = chance.normal(size=(400, 2))
    bad = rows[:, 0] + 0.3 * chance.normal(size=400) > 0
    found = fit(("told", "noise"), rows, bad)
    assert found.slopes[0] > 1
    assert 0 <= found.slopes[1] < 0.5
    assert ((found.risk(rows) > 0.5) == bad).mean() > 0.85
    assert auroc(cross_validated(("told", "noise"), rows, bad, [str(i // 4) for i in range(400)]), bad) > 0.9
