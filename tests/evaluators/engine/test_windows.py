"""The contract of window evaluators: what parts may be, what `combine` may give, and what `check_evaluator` finds."""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from ragtide.evaluators.checks import check_evaluator
from ragtide.evaluators.combining import combine_parts
from ragtide.evaluators.outcome import Failed, NotApplicable, Outcome, Scored
from ragtide.evaluators.parts import (
    MOST_PARTS,
    ClassValue,
    Combined,
    class_label,
    name_and_labels,
    part_key,
    parts_fault,
)
from ragtide.evaluators.registry import spec_faults
from ragtide.evaluators.run import run_all
from ragtide.evaluators.spec import Evaluator, Metric, Shared, evaluator
from tests.evaluators.engine.examples import Answer, batch, ready, trace

METRICS = (Metric("rate", threshold=0.5, primary=True), Metric("other"), Metric("class_rate", per=("class",)))


def rates(parts: Mapping[str, float]) -> Combined:
    if not parts:
        return Combined()
    classes = {labels: n for key, n in parts.items() for name, labels in [name_and_labels(key)] if name == "of"}
    per = {"class_rate": {labels: ClassValue(n / parts["records"], int(n)) for labels, n in classes.items()}}
    return Combined({"rate": parts.get("good", 0.0) / parts["records"]}, per)


def windowed(
    combine: Callable[[Mapping[str, float]], Any] | None = rates,
    record: Callable[[bool], Scored] | None = None,
    metrics: Sequence[Metric] = METRICS,
) -> Evaluator:
    @evaluator(
        "windowed",
        version=1,
        domain="classification",
        method="window",
        inputs=Answer,
        metrics=metrics,
        combine=combine,
    )
    def score(rows: Sequence[Answer], shared: Shared, params: BaseModel) -> Iterator[Outcome]:
        """How many answers are long."""
        for row in rows:
            long = len(row.answer) > 10
            yield record(long) if record else of(long) if row.answer else NotApplicable("empty")

    return score


def of(long: bool) -> Scored:
    parts = {"records": 1.0, part_key("of", "long" if long else "short"): 1.0}
    return Scored({"rate": float(long)}, parts=parts | ({"good": 1.0} if long else {}))


def test_a_sound_one_passes() -> None:
    check_evaluator(windowed())


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (windowed(lambda parts: Combined({"rate": 0.5})), "metrics of no parts at all"),
        (windowed(lambda parts: Combined({"rate": math.nan} if parts else {})), "nan for metric rate"),
        (windowed(lambda parts: Combined({"rate": 1.5} if parts else {})), "1.5 for metric rate"),
        (windowed(lambda parts: {} if parts else Combined()), "gave a dict"),
        (windowed(lambda parts: Combined({"mine": 0.5} if parts else {})), "metric mine, which is not declared"),
        (windowed(lambda parts: Combined({"class_rate": 0.5} if parts else {})), "not declared as one without"),
        (
            windowed(lambda parts: Combined({}, {"class_rate": {("a", "b"): ClassValue(0.5, 1)}} if parts else {})),
            "labels that are not those of its `per`",
        ),
        (
            windowed(lambda parts: Combined({"rate": next(iter(parts.values())) / 100} if parts else {})),
            "summed in another order",
        ),
        (windowed(record=lambda long: replace(of(long), metrics={"rate": 0.25})), "makes 1.0 of it alone"),
        (windowed(record=lambda long: replace(of(long), metrics={})), "makes nothing of it alone, or the other way"),
        (windowed(record=lambda long: replace(of(long), parts={"records": 0.5})), "parts are whole numbers"),
        (windowed(None), "method window has combine"),
        (windowed(metrics=[Metric("rate")]), "needs a primary metric"),
        (windowed(metrics=[Metric("rate", primary=True, per=("class",))]), "it cannot be primary"),
    ],
)
def test_what_is_wrong_is_found(wrong: Evaluator, says: str) -> None:
    with pytest.raises(AssertionError) as error:
        check_evaluator(wrong)
    assert says in str(error.value)


def test_combine_and_per_are_for_windows_only() -> None:
    assert spec_faults(replace(windowed(), method="rule")) == ["method window has combine, and no other method has"]
    assert "which is for method window" in spec_faults(replace(windowed(), method="rule", combine=None))[0]


@pytest.mark.parametrize(
    "parts",
    [{"Of": 1.0}, {part_key("of", "x" * 65): 1.0}, {"of": -1.0}, {"of": 0.5}, {"of": 2.0**54}, {"of\ta\nb": 1.0}],
)
def test_unsound_parts_are_failed_and_not_quoted(parts: dict[str, float]) -> None:
    [[outcome]] = run_all(ready(windowed(record=lambda long: Scored({}, parts=parts))), [trace()], batch())
    assert isinstance(outcome, Failed)
    assert outcome.kind == "contract"
    assert "xxx" not in outcome.detail


def test_metrics_may_be_absent_and_parts_are_limited() -> None:
    [outcomes] = run_all(ready(windowed(record=lambda long: Scored({}, parts={"records": 1}))), [trace()], batch())
    assert outcomes == [Scored({}, parts={"records": 1.0})]
    many = {f"n{i}": 1.0 for i in range(MOST_PARTS + 1)}
    assert parts_fault(many) == f"a record has at most {MOST_PARTS} parts"
    assert parts_fault(dict(list(many.items())[:-1])) is None


@given(st.text(st.characters() | st.sampled_from("\t\n\x00\ud800\u2028 "), max_size=200))
def test_a_class_label_is_always_a_sound_part(written: str) -> None:
    label = class_label(written)
    key = part_key("of", label, label)
    assert parts_fault({key: 1.0}) is None
    assert name_and_labels(key) == ("of", (label, label))
    assert class_label(label) == label
    assert json.loads(json.dumps(key)) == key
    assert key.encode().decode() == key


def test_long_labels_are_told_apart_and_cannot_be_read() -> None:
    one, other = class_label("secret " * 20 + "a"), class_label("secret " * 20 + "b")
    assert one != other
    assert "secret" not in one + other
    assert class_label("  two\n words ") == "two words"


def test_what_breaks_gives_no_number_and_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    def broken(parts: Mapping[str, float]) -> Combined:
        raise ValueError("quotes a label")

    assert combine_parts(windowed(broken), {"records": 1.0}) == Combined()
    assert combine_parts(windowed(lambda parts: Combined({"rate": 2.0})), {"records": 1.0}) == Combined()
    assert combine_parts(windowed(), {}) == Combined()
    assert combine_parts(windowed(), {"records": 4.0, "good": 1.0}).metrics == {"rate": 0.25}
    assert "quotes" not in caplog.text
    assert "ValueError" in caplog.text
