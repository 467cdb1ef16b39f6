"""Regular expressions of users: compiled by RE2, so that none can stall a worker."""

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
    """A condition that cannot be read: why, and where; never what it says."""


class Patterns:
    """Compiles regular expressions as long as they are small enough together."""

    def __init__(self) -> None:
        self._left = STATES

    def compile(self, pattern: str, where: str) -> Any:
        """The compiled pattern; raises `Malformed` where RE2 refuses it or it is too large."""
        import re2

        options = re2.Options()
        options.log_errors = False
        options.max_mem = MEMORY
        try:
            made = re2.compile(replace_surrogates(pattern).encode(), options)
        except re2.error as error:
            said = error.args[0] if error.args else ""
            # RE2's own words before the colon; after it comes what the user wrote.
            words = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
            reason, _, invalid = words.partition(": ")
            why = f"; {NOT_LINEAR[invalid]} no linear time" if invalid in NOT_LINEAR else ""
            raise Malformed(f"{where}: regular expression refused ({reason}){why}") from None
        self._left -= made.programsize
        if self._left < 0:
            raise Malformed(f"{where}: regular expressions too large; {STATES:,} states together at most")
        return made
