"""Prices of the demo's model."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens."""

    input_usd: float
    output_usd: float

    def of(self, input_tokens: int, output_tokens: int) -> float:
        """US dollars for one answer."""
        return (input_tokens * self.input_usd + output_tokens * self.output_usd) / 1_000_000


PRICES = {"extractor-1": Price(input_usd=2.50, output_usd=10.00)}
