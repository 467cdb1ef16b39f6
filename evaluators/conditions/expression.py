"""Reads a condition's expression.

    expression = conjunction { "OR" conjunction }
    conjunction = negation { "AND" negation }
    negation = { "NOT" } term
    term = "(" expression ")" | string | "regexp" "(" string ")"

A string stands in double quotes; \\" is a quote and, outside regexp, two backslashes are one. It holds where it is
contained (case-sensitive). A regular expression (RE2's syntax) holds where it is found anywhere.
"""

from functools import lru_cache

from ragtide.evaluators.conditions.condition import All, AnyOf, Condition, Contains, Finds, Not
from ragtide.evaluators.conditions.patterns import Malformed, Patterns
from ragtide.evaluators.text.surrogates import replace_surrogates

LONGEST = 10_000  # characters
DEEPEST = 50  # parentheses within parentheses


@lru_cache(maxsize=256)
def parse(expression: str) -> Condition:
    """Parse an expression. Raises `Malformed` with the position of the error."""
    if len(expression) > LONGEST:
        raise Malformed(f"longer than {LONGEST:,} characters")
    return _Parser(replace_surrogates(expression)).parse()


class _Parser:
    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0
        self._depth = 0
        self._patterns = Patterns()

    def parse(self) -> Condition:
        condition = self._expression()
        if self._peek():
            raise self._malformed("expected AND, OR or the end")
        return condition

    def _expression(self) -> Condition:
        found = [self._conjunction()]
        while self._word("OR"):
            found.append(self._conjunction())
        return found[0] if len(found) == 1 else AnyOf(tuple(found))

    def _conjunction(self) -> Condition:
        found = [self._negation()]
        while self._word("AND"):
            found.append(self._negation())
        return found[0] if len(found) == 1 else All(tuple(found))

    def _negation(self) -> Condition:
        negated = False
        while self._word("NOT"):
            negated = not negated
        term = self._term()
        return Not(term) if negated else term

    def _term(self) -> Condition:
        start = self._skip()
        if self._symbol("("):
            self._depth += 1
            if self._depth > DEEPEST:
                raise self._malformed(f"more than {DEEPEST} parentheses deep")
            inner = self._expression()
            self._expect(")")
            self._depth -= 1
            return inner
        if self._word("regexp"):
            self._expect("(")
            at = self._skip()
            pattern = self._string(regexp=True)
            self._expect(")")
            return Finds(self._patterns.compile(pattern, f"position {at}"), start, self._at)
        needle = self._string(regexp=False)
        return Contains(needle, start, self._at)

    def _string(self, regexp: bool) -> str:
        if self._peek() != '"':
            raise self._malformed(
                "expected a string in double quotes" if regexp else 'expected "string", regexp("..."), NOT or ('
            )
        start = self._at
        self._at += 1
        characters: list[str] = []
        while self._at < len(self._source):
            character = self._source[self._at]
            pair = self._source[self._at : self._at + 2]
            if character == '"':
                self._at += 1
                return "".join(characters)
            escaped = pair == '\\"' or (pair == "\\\\" and not regexp)
            characters.append(pair[1:] if escaped else pair if character == "\\" else character)
            self._at += 2 if character == "\\" else 1
        self._at = start
        raise self._malformed("string without an end")

    def _skip(self) -> int:
        while self._at < len(self._source) and self._source[self._at].isspace():
            self._at += 1
        return self._at

    def _peek(self) -> str:
        return self._source[self._skip() : self._at + 1]

    def _symbol(self, symbol: str) -> bool:
        found = self._peek() == symbol
        self._at += found
        return found

    def _expect(self, symbol: str) -> None:
        if not self._symbol(symbol):
            raise self._malformed(f"expected {symbol}")

    def _word(self, word: str) -> bool:
        end = self._skip() + len(word)
        found = self._source.startswith(word, self._at) and not (self._source[end : end + 1] or " ").isalnum()
        self._at = end if found else self._at
        return found

    def _malformed(self, reason: str) -> Malformed:
        return Malformed(f"position {self._at}: {reason}")
