"""Statistics that the rooms of drift share: intervals, tests, sampling, and the calendar in UTC. Pure.

>>> low, high = wilson(Share(hits=3, n=100))
>>> f"{low:.3f} to {high:.3f}"
'0.010 to 0.085'
"""

from ragtide.drift.stats import calendar
from ragtide.drift.stats.calendar import DAY_S, HOUR_S, HOURS, SATURDAY, WEEKDAYS, is_weekend, weekday_of
from ragtide.drift.stats.kappa import Agreements, Kappa, cohens_kappa
from ragtide.drift.stats.means import Difference, Sample, mean_interval, paired_difference, unpaired_difference
from ragtide.drift.stats.multiple_testing import benjamini_hochberg, e_bh
from ragtide.drift.stats.permutation import Remeasured, permutation_p
from ragtide.drift.stats.proportions import (
    CONFIDENCE,
    Interval,
    Lift,
    Number,
    Share,
    fisher_p,
    fisher_p_values,
    lift,
    share_difference,
    student_quantile,
    weighted_wilson,
    wilson,
    z_score,
)
from ragtide.drift.stats.sampling import in_sample, sample_minutes
from ragtide.drift.stats.significance import (
    FEWEST_FREEDOM,
    MAX_INTERVALS,
    BadCount,
    EstimatedValue,
    binomial_tail,
    within_binomial_noise,
    within_mean_noise,
    within_sampling_noise,
)

__all__ = [
    "CONFIDENCE",
    "DAY_S",
    "FEWEST_FREEDOM",
    "HOURS",
    "HOUR_S",
    "MAX_INTERVALS",
    "SATURDAY",
    "WEEKDAYS",
    "Agreements",
    "BadCount",
    "Difference",
    "EstimatedValue",
    "Interval",
    "Kappa",
    "Lift",
    "Number",
    "Remeasured",
    "Sample",
    "Share",
    "benjamini_hochberg",
    "binomial_tail",
    "calendar",
    "cohens_kappa",
    "e_bh",
    "fisher_p",
    "fisher_p_values",
    "in_sample",
    "is_weekend",
    "lift",
    "mean_interval",
    "paired_difference",
    "permutation_p",
    "sample_minutes",
    "share_difference",
    "student_quantile",
    "unpaired_difference",
    "weekday_of",
    "weighted_wilson",
    "wilson",
    "within_binomial_noise",
    "within_mean_noise",
    "within_sampling_noise",
    "z_score",
]
