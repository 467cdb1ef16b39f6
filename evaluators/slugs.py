"""Names that become columns, counter labels and settings: ids, metric keys, reasons and kinds."""

import re

PATTERN = "[a-z][a-z0-9_]{0,63}"
_SLUG = re.compile(PATTERN)


def is_slug(value: object) -> bool:
    """Whether it is a text of lower-case letters, digits and underscores that starts with a letter, 64 at most."""
    return isinstance(value, str) and _SLUG.fullmatch(value) is not None
