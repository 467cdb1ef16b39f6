"""Regular expressions of users, compiled by RE2 so that none can stall a worker."""

from typing import Any

from ragtide.evaluators.text.surrogates import replace_surrogates

STATES = 2_000  # of all regular expressions of one condition
MEMORY = 1 << 20  # bytes of one automaton; beyond, RE2 goes on without, and slower

# What RE2 has none of, since it would cost linear time, by what it calls invalid.
NOT_LINEAR = {
    **dict.fromkeys(("(?=", "(?!", "(?<=", "(?<!"), "look-around has"),
    **{f"\\{group}": "back-references have" for group in range(1, 10)},
}


class Malformed(Exception):
    """A condition cannot be parsed. The message says where and why, and never quotes it."""


class Patterns:
    """Compiles regular expressions within a common size limit."""

    def __init__(self) -> None:
        self._left = STATES

    def compile(self, pattern: str, where: str) -> Any:
        """Compile a pattern. Raises `Malformed` if RE2 rejects it or it is too large."""
        import re2

        options = re2.Options()
        options.log_errors = False
        options.max_mem = MEMORY
        try:
            compiled = re2.compile(replace_surrogates(pattern).encode(), options)
        except re2.error as error:
            message = error.args[0] if error.args else ""
            # RE2's own words before the colon; after it comes what the user wrote.
            words = message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)
            reason, _, invalid = words.partition(": ")
            why = f"; {NOT_LINEAR[invalid]} no linear time" if invalid in NOT_LINEAR else ""
            raise Malformed(f"{where}: regular expression refused ({reason}){why}") from None
        self._left -= compiled.programsize
        if self._left < 0:
            raise Malformed(f"{where}: regular expressions too large; {STATES:,} states together at most")
        return compiled
