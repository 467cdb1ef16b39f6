"""Names that become columns, counter labels and settings: ids, metric keys, reasons and kinds."""

import re

PATTERN = "[a-z][a-z0-9_]{0,63}"
_SLUG = re.compile(PATTERN)


def is_slug(value: object) -> bool:
    """Whether it matches `PATTERN`: lower-case letters, digits and underscores, a letter first, at most 64."""
    return isinstance(value, str) and _SLUG.fullmatch(value) is not None
