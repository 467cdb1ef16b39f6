"""A run covers every series once, does not depend on how it is cut, and brings ours what it needs of every kind."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.drift.bench import Bench
from benchmarks.drift.changes import CHANGES
from benchmarks.drift.clock import WINDOWS
from benchmarks.drift.ours import sequential
from benchmarks.drift.scoring import judged
from benchmarks.drift.series import Aggregates, Label
from benchmarks.drift.shapes import Own
from benchmarks.drift.unseen import SHAPES, Shaped

BENCH = Bench("own", seed=4, series=120, detectors=("3sigma", "cusum"), rival_series=6)


def test_parts_hold_every_series_once_and_one_kind_each() -> None:
    parts = BENCH.parts()
    assert sorted(label.index for part in parts for label in part) == list(range(120))
    assert all(len({label.kind for label in part}) == 1 for part in parts)
    assert max(map(len, parts)) <= 40


def test_unseen_shapes_come_as_often_as_each_other_well_and_changed() -> None:
    labels = [Shaped(SHAPES).label(1, index) for index in range(2 * len(SHAPES))]
    assert {(one.shape, one.change is None) for one in labels} == {
        (name, well) for name in SHAPES for well in (True, False)
    }


def test_a_series_is_judged_alike_in_whatever_part_it_is() -> None:
    scores = [label for label in (Own().label(4, index) for index in range(8)) if label.kind == "score"]
    together = BENCH.run(scores).results["3sigma"]
    assert len(together) > 1
    assert [one.label.index for one in together] == [label.index for label in scores if label.index < 6]
    assert together[1] == BENCH.run([scores[1]]).results["3sigma"][0]


def some(kind: str, change: str | None) -> Label:
    """The first dense series of the kind with this change, or that is well."""
    labels = (Own().label(4, index) for index in range(2_000))
    return next(one for one in labels if (one.kind, one.change) == (kind, change) and one.regime == "clean")


@pytest.mark.parametrize("change", ["-0.20", "1 to 3 %", "latency x 1.3", "8 % of mix"])
def test_ours_finds_a_large_change_of_each_kind_and_leaves_the_others_alone(change: str) -> None:
    kind = CHANGES[change].kind
    series = [Own().series(4, label) for label in (some(kind, change), some(kind, None))]
    changed, well = sequential([Aggregates.of(one) for one in series]).alarm
    found = judged(series[0].label, changed)
    assert found.false_episodes == 0
    assert found.delay_min is not None
    assert found.delay_min <= 300
    assert not well.any()


def test_labels_of_series_with_fewer_categories_are_filled_up() -> None:
    three, forty = (Shaped(SHAPES).series(1, label_of(shape)) for shape in ("3 labels", "40 labels"))
    alone = sequential([Aggregates.of(three)]).alarm
    both = sequential([Aggregates.of(one) for one in (three, forty)]).alarm
    assert both.shape == (2, 2_016)
    assert np.array_equal(both[0], alone[0])


def label_of(shape: str) -> Label:
    labels = (Shaped(SHAPES).label(1, index) for index in range(1, 2 * len(SHAPES), 2))
    label = next(one for one in labels if one.shape == shape)
    return replace(label, change=None, at=WINDOWS, until=WINDOWS)
