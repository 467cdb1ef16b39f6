"""Which of two rows with one identity wins: the order (broker timestamp, offset, input revision, evaluator version)."""

_TIMESTAMP_BITS, _OFFSET_BITS, _REVISION_BITS, _EVALUATOR_BITS = 48, 48, 16, 16
_LOW_BITS = _REVISION_BITS + _EVALUATOR_BITS
LAST_TIMESTAMP, LAST_OFFSET = (1 << _TIMESTAMP_BITS) - 1, (1 << _OFFSET_BITS) - 1
LAST_REVISION, _LAST_EVALUATOR = (1 << _REVISION_BITS) - 1, (1 << _EVALUATOR_BITS) - 1


def pack(timestamp_ms: int, offset: int, input_revision: int = 0, evaluator_version: int = 0) -> int:
    """An unsigned 128-bit number ordered as the tuple of its arguments (48, 48, 16 and 16 bits, each clipped).

    File replays give timestamp 0 and the line number as offset.
    """
    usual = 0 <= timestamp_ms <= LAST_TIMESTAMP and 0 <= offset <= LAST_OFFSET
    if usual and not input_revision and not evaluator_version:  # every record that is read takes this way
        return (timestamp_ms << _OFFSET_BITS | offset) << _LOW_BITS
    high = min(max(timestamp_ms, 0), LAST_TIMESTAMP) << _OFFSET_BITS | min(max(offset, 0), LAST_OFFSET)
    low = min(max(input_revision, 0), LAST_REVISION) << _EVALUATOR_BITS
    return high << _LOW_BITS | low | min(max(evaluator_version, 0), _LAST_EVALUATOR)


def offset_of(version: int) -> int:
    """The offset that was packed."""
    return version >> _LOW_BITS & LAST_OFFSET


def timestamp_of(version: int) -> int:
    """The timestamp that was packed, in ms."""
    return version >> _OFFSET_BITS + _LOW_BITS


def revision_of(version: int) -> int:
    """The input revision that was packed."""
    return version >> _EVALUATOR_BITS & LAST_REVISION


def without_evaluator(version: int) -> int:
    """What rows of one input share: the version with the evaluator's part at 0."""
    return version >> _EVALUATOR_BITS << _EVALUATOR_BITS
