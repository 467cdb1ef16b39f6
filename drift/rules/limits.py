"""How often an evaluator may fail or remark on something before it is a problem: of one app, or of all."""

from typing import NamedTuple

from drift.settings import LimitOverride, RuleSettings


class Limits(NamedTuple):
    """As the settings of these names."""

    error_limit: float
    finding_traces: int
    finding_limit: float


def limits_for(app: str, evaluator: str, settings: RuleSettings) -> Limits:
    """The app's defaults, and over them what is said of it and of this evaluator, the most specific on top."""
    usual = settings.of(app)
    limits = Limits(usual.error_limit, usual.finding_traces, usual.finding_limit)
    fitting = (one for one in settings.limits if one.app in (None, app) and one.evaluator in (None, evaluator))
    for said in sorted(fitting, key=_specific):
        limits = Limits(
            limits.error_limit if said.error_limit is None else said.error_limit,
            limits.finding_traces if said.finding_traces is None else said.finding_traces,
            limits.finding_limit if said.finding_limit is None else said.finding_limit,
        )
    return limits


def _specific(said: LimitOverride) -> int:
    return (said.app is not None) + (said.evaluator is not None)
