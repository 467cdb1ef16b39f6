"""Errors of the engine."""

import re

SYNTAX_ERROR = 62
UNKNOWN_FORMAT = 73
UNKNOWN_SETTING = 115
READONLY = 164
UNKNOWN_EXCEPTION = 1002
_CODE = re.compile(r"Code: (\d+)\.")


class EngineError(Exception):
    """The engine's own message, and its error code."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        found = _CODE.search(message)
        self.code = int(found[1]) if found else UNKNOWN_EXCEPTION
