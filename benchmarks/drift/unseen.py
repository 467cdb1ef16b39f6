"""Series of shapes that the benchmark's own population lacks: a detector must not have been made for that one alone."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.drift import unseen_counts as counts
from benchmarks.drift import unseen_days as days
from benchmarks.drift import unseen_scores as scores
from benchmarks.drift.changes import CHANGES, Change, begins, new_label, odds
from benchmarks.drift.plans import Plan
from benchmarks.drift.series import Label, Series, sampled
from benchmarks.drift.shapes import LABEL, PLAN, RECORDS, changing

ALL_CHANGES = CHANGES | {
    "0 to 1 %": Change("rate", partial(begins, 0.01)),
    "odds x 5": Change("rate", partial(odds, 5.0)),
    "odds x 1.5": Change("rate", partial(odds, 1.5)),
    "a new label": Change("category", partial(new_label, 0.03)),
}


@dataclass(frozen=True)
class Shape:
    """Series that are well, and what may happen to them."""

    make: Callable[[np.random.Generator], Plan]
    changes: tuple[str, ...]


STEPS = ("-0.05", "-0.10", "-0.20")
SHAPES: dict[str, Shape] = {
    "bimodal scores": Shape(scores.bimodal, STEPS),
    "scores near 0.98": Shape(scores.near_one, STEPS),
    "score always 1": Shape(scores.always_one, STEPS),
    "week's wave": Shape(scores.weekly, STEPS),
    "hourly bursts": Shape(scores.hourly_bursts, STEPS),
    "traffic + 5 % a day": Shape(scores.growing, STEPS),
    "silent nights": Shape(scores.silent_nights, STEPS),
    "missing windows": Shape(scores.gaps, STEPS),
    "deploys": Shape(scores.deploys, STEPS),
    "AR 0.95 of 0.02": Shape(scores.restless, STEPS),
    "spread AR 0.95": Shape(scores.restless_spread, (*STEPS, "sd x 1.5")),
    "uneven days": Shape(scores.uneven_days, STEPS),
    "clustered records": Shape(scores.clustered, STEPS),
    "daylight saving": Shape(scores.daylight_saving, STEPS),
    "office hours": Shape(scores.office_hours, STEPS),
    "incident before": Shape(scores.incident_before, STEPS),
    "1 record in 3 windows": Shape(scores.trickle, STEPS),
    "weekly batch": Shape(scores.weekly_batch, STEPS),
    "nightly job": Shape(scores.nightly_job, STEPS),
    "workday job": Shape(scores.workday_job, STEPS),
    "unpunctual job": Shape(scores.unpunctual_job, STEPS),
    "job of one day": Shape(scores.job_of_one_day, STEPS),
    "step before": Shape(scores.step_before, STEPS),
    "creeping": Shape(scores.creeping, STEPS),
    "noisy nights": Shape(scores.noisy_nights, STEPS),
    "rare zeros, sparse": Shape(scores.rare_zeros, STEPS),
    "rate 0.1 %": Shape(partial(counts.rate, 0.001), ("odds x 5",)),
    "rate 30 %": Shape(partial(counts.rate, 0.3), ("odds x 1.5",)),
    "rate 0.5 %, sparse": Shape(counts.few_requests, ("odds x 5",)),
    "rate 0": Shape(counts.never_fails, ("0 to 1 %",)),
    "rate AR 0.95": Shape(counts.restless_rate, ("odds x 5",)),
    "failing job": Shape(counts.failing_job, ("1 to 3 %",)),
    "bunched failures": Shape(counts.bunched_failures, ("1 to 3 %",)),
    "latency with a cache": Shape(counts.cached, ("latency x 1.3", "5 % x 5")),
    "latency, tail 1.1": Shape(counts.endless_tail, ("latency x 1.3", "5 % x 5")),
    "latency AR 0.95": Shape(counts.restless_latency, ("latency x 1.3", "5 % x 5")),
    "tail 1.1, sparse": Shape(counts.few_latencies, ("latency x 1.3",)),
    "latency, timeouts": Shape(counts.timeouts, ("latency x 1.3",)),
    "slow job": Shape(counts.slow_job, ("latency x 1.3", "5 % x 5")),
    "3 labels": Shape(counts.three_labels, ("8 % of mix",)),
    "flat mix": Shape(counts.flat_mix, ("8 % of mix",)),
    "40 labels": Shape(counts.forty_labels, ("8 % of mix",)),
    "200 labels": Shape(counts.many_labels, ("8 % of mix",)),
    "a new label": Shape(counts.label_to_come, ("a new label",)),
    "campaigns": Shape(counts.campaigns, ("8 % of mix",)),
    "failing bursts": Shape(counts.failing_bursts, ("1 to 3 %",)),
    "slow bursts": Shape(counts.slow_bursts, ("latency x 1.3",)),
    "short campaigns": Shape(counts.short_campaigns, ("8 % of mix",)),
    "stormy days": Shape(days.stormy_days, STEPS),
    "days of any noise": Shape(days.days_of_any_noise, STEPS),
    "daily blocks": Shape(days.daily_blocks, STEPS),
    "daily slow blocks": Shape(days.daily_slow_blocks, ("latency x 1.3",)),
    "three slow a day": Shape(days.three_slow_a_day, ("latency x 1.3",)),
    "seldom failing": Shape(days.seldom_failing, ("1 to 3 %",)),
    "seldom slow": Shape(days.seldom_slow, ("latency x 1.3",)),
    "seldom worse": Shape(days.seldom_worse, STEPS),
    "first weekend": Shape(scores.first_weekend, STEPS),
    "first weekend, latency": Shape(counts.first_weekend, ("latency x 1.3",)),
}


@dataclass(frozen=True)
class Shaped:
    """As many series of each of these shapes; the regime of a series names nothing."""

    shapes: Mapping[str, Shape]

    def label(self, seed: int, index: int) -> Label:
        rng = np.random.default_rng([seed, index, LABEL])
        name = list(self.shapes)[index // 2 % len(self.shapes)]
        change = str(rng.choice(self.shapes[name].changes))
        return changing(index, ALL_CHANGES[change], change, name, "unseen", rng)

    def series(self, seed: int, label: Label) -> Series:
        rng = np.random.default_rng([seed, label.index, PLAN])
        plan = self.shapes[label.shape].make(rng)
        if label.change:
            plan = ALL_CHANGES[label.change].apply(plan, label.at, rng)
        return sampled(label, plan, np.random.default_rng([seed, label.index, RECORDS]))
