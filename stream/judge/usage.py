"""Calls, tokens and costs of judges, by endpoint, evaluator and application."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ragtide.evaluators.judge.settings import JudgeEndpoint

_MILLION = 1_000_000


class UsageKey(NamedTuple):
    """Who made calls, and where."""

    endpoint: str
    evaluator: str
    app: str


@dataclass(slots=True)
class Usage:
    """Sums, or what one call adds to them."""

    calls: int = 0  # replies that were paid for, repairs included
    repairs: int = 0  # of these
    from_cache: int = 0  # replies and results from the cache on disk; not among the calls
    searches: int = 0  # answered ones, of agents
    input_tokens: int = 0
    cached_tokens: int = 0  # of the input tokens: from the endpoint's cache
    output_tokens: int = 0
    cost_usd: float = 0.0
    uncounted: int = 0  # calls whose tokens the endpoint did not report; they are estimated
    failures: Counter[str] = field(default_factory=Counter)  # by kind

    def add(self, more: "Usage") -> None:
        """Add to the sums."""
        for name in self.__dataclass_fields__:
            setattr(self, name, getattr(self, name) + getattr(more, name))


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of a call. `reported` is False if they are an estimate."""

    input: int
    cached: int
    output: int
    reported: bool


def estimate_tokens(sent_bytes: int, received_bytes: int) -> Tokens:
    """Estimate the tokens of a call whose endpoint does not report them: one for four bytes, so that it has a cost."""
    return Tokens(-(-sent_bytes // 4), 0, -(-received_bytes // 4), reported=False)


def usage_by_endpoint(usage: Mapping[UsageKey, Usage]) -> dict[str, Usage]:
    """Add up what all evaluators and applications used of each endpoint."""
    by_endpoint: dict[str, Usage] = {}
    for key, used in sorted(usage.items(), key=lambda item: item[0]):
        by_endpoint.setdefault(key.endpoint, Usage()).add(used)
    return by_endpoint


def usage_lines(by_endpoint: Mapping[str, Usage]) -> list[str]:
    """Return a line for each endpoint: calls, failures, tokens and cost."""
    return [f"judge {name}: {_describe(used)}" for name, used in by_endpoint.items()]


def _describe(used: Usage) -> str:
    repairs = f" ({used.repairs:,} to repair a reply)" if used.repairs else ""
    kinds = ", ".join(f"{kind} {number:,}" for kind, number in sorted(used.failures.items()))
    failures = f"{used.failures.total():,} failures{f' ({kinds})' if kinds else ''}"
    estimated = f" (estimated for {used.uncounted:,} of the calls)" if used.uncounted else ""
    tokens = f"{used.input_tokens:,} input tokens ({used.cached_tokens:,} cached), {used.output_tokens:,} output tokens"
    searches = f", {used.searches:,} searches" if used.searches else ""
    calls = f"{used.calls:,} calls{repairs}{searches}, {used.from_cache:,} replies from the cache, {failures}"
    return f"{calls}, {tokens}{estimated}, {used.cost_usd:,.4f} USD"


def cost_usd(tokens: Tokens, prices: JudgeEndpoint) -> float:
    """Return the cost by the endpoint's prices."""
    cached_price = (
        prices.input_usd_per_million if prices.cached_usd_per_million is None else prices.cached_usd_per_million
    )
    fresh = max(0, tokens.input - tokens.cached)
    total = fresh * prices.input_usd_per_million + tokens.cached * cached_price
    return (total + tokens.output * prices.output_usd_per_million) / _MILLION


def most_usd(sent_bytes: int, settings: JudgeEndpoint) -> float:
    """Return the most that a call can cost whose answer is lost: a token has at least one byte."""
    return cost_usd(Tokens(sent_bytes, 0, settings.max_tokens, reported=False), settings)
