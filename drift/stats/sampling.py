"""Samples of traces that are the same in every table, drawn by their ids."""

_HASH_BUCKETS = 1 << 20


def in_sample(share: float) -> str:
    """SQL condition on rows of any table that has traces: keeps this share, the same traces in all tables."""
    return "1" if share >= 1 else f"cityHash64(trace_id) % {_HASH_BUCKETS} < {int(share * _HASH_BUCKETS)}"
