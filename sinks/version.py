"""Which of two rows with one identity wins: the order (broker timestamp, offset, input revision, evaluator version)."""

_OFFSET_BITS, _REVISION_BITS, _EVALUATOR_BITS = 48, 16, 16


def pack(timestamp_ms: int, offset: int, input_revision: int = 0, evaluator_version: int = 0) -> int:
    """An unsigned 128-bit number ordered as the tuple of its arguments (48, 48, 16 and 16 bits, each clipped).

    File replays give timestamp 0 and the line number as offset.
    """
    packed = _clip(timestamp_ms, 48)
    packed = packed << _OFFSET_BITS | _clip(offset, _OFFSET_BITS)
    packed = packed << _REVISION_BITS | _clip(input_revision, _REVISION_BITS)
    return packed << _EVALUATOR_BITS | _clip(evaluator_version, _EVALUATOR_BITS)


def _clip(value: int, bits: int) -> int:
    return min(max(value, 0), (1 << bits) - 1)
