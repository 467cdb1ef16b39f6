"""Count what calls of judges used, for Prometheus."""

from ragtide.stream.judge import Usage, UsageKey
from ragtide.stream.telemetry.registry import Telemetry


def count_judge(telemetry: Telemetry, key: UsageKey, used: Usage) -> None:
    """Count what a call of a judge used."""
    telemetry.judge_calls.labels(*key).inc(used.calls)
    telemetry.judge_cached_replies.labels(*key).inc(used.from_cache)
    telemetry.judge_searches.labels(*key).inc(used.searches)
    telemetry.judge_cost_usd.labels(*key).inc(used.cost_usd)
    tokens = {"input": used.input_tokens, "cached": used.cached_tokens, "output": used.output_tokens}
    for kind, number in tokens.items():
        telemetry.judge_tokens.labels(*key, kind).inc(number)
    for kind, number in used.failures.items():
        telemetry.judge_failures.labels(*key, kind).inc(number)
