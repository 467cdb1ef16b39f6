"""SQL of 95 % intervals: of shares (Wilson) and of means (Student; Wilson for records that are 0 or 1)."""

from ragtide.drift.stats import CONFIDENCE, z_score

_Z = z_score(CONFIDENCE)
_MIN_RECORDS = 5  # below, Student's quantile is not approximated well
_ROUNDING = 1e-9


def share_interval(rate: str, n: str) -> tuple[str, str]:
    """Write both ends of the interval of a share of `n` records; NULL where nothing was counted."""
    middle = f"({rate} + {_Z**2!r} / (2 * {n})) / (1 + {_Z**2!r} / {n})"
    reach = f"{_Z!r} / (1 + {_Z**2!r} / {n}) * sqrt({rate} * (1 - {rate}) / {n} + {_Z**2!r} / (4 * {n} * {n}))"
    ends = (f"greatest(0, {middle} - {reach})", f"least(1, {middle} + {reach})")  # of nothing they would be 0 and 1
    low, high = (f"if(isNull({rate}), NULL, {end})" for end in ends)
    return low, high


def mean_interval(mean: str, n: str, squares: str) -> tuple[str, str]:
    """Write both ends of the interval of a mean over `n` records with that sum of squares.

    Records that are all 0 or 1 have Wilson's interval. Others have Student's, and none below 5 records: two equal
    values would make it certain. All three are names of columns.
    """
    variance = f"greatest(0, ({squares} - {n} * {mean} * {mean}) / ({n} - 1))"
    free = f"({n} - 1)"
    # Cornish and Fisher's expansion of Student's quantile: within 2 % from 4 degrees of freedom on.
    quantile = (
        f"({_Z!r} + {(_Z**3 + _Z) / 4!r} / {free} + {(5 * _Z**5 + 16 * _Z**3 + 3 * _Z) / 96!r} / ({free} * {free}))"
    )
    reach = f"{quantile} * sqrt({variance} / {n})"
    binary = f"abs({n} * {mean} - {squares}) <= {_ROUNDING} * {n} AND {mean} BETWEEN 0 AND 1"
    wilson = share_interval(mean, n)
    low, high = (
        f"multiIf(isNull({mean}), NULL, {binary}, {share}, {n} < {_MIN_RECORDS}, NULL, {mean} {sign} {reach})"
        for share, sign in zip(wilson, "-+", strict=True)
    )
    return low, high
