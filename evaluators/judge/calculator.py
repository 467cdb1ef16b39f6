"""A calculator for agents: decimal arithmetic, bounded in time and memory whatever the expression is.

    sum     = product { ("+" | "-") product }
    product = sign { ("*" | "/" | "//" | "%") sign }
    sign    = { "+" | "-" } power
    power   = operand [ ("**" | "^") sign ]
    operand = number | name "(" sum { "," sum } ")" | "(" sum ")"

It reads numbers as decimals, so that 0.1 + 0.2 is 0.3, and executes nothing else.
"""

import re
from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_UP, Context, Decimal, DecimalException, DivisionByZero, InvalidOperation, Overflow

LONGEST = 200  # characters of an expression
_DEEPEST = 20  # operands within operands
_TOKEN = re.compile(r"\s*(?:(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|(\*\*|//|[-+*/%^(),])|([A-Za-z]+))")
# The signs of multiplication, of a product, of division, minus, an en dash, and a space that does not break.
_SIGNS = str.maketrans("\u00d7\u00b7\u00f7\u2212\u2013\u00a0", "**/-- ")
_EXACT = Context(
    prec=40, Emax=9_999, Emin=-9_999, rounding=ROUND_HALF_UP, traps=[DivisionByZero, InvalidOperation, Overflow]
)
_SHOWN = Context(prec=20, Emax=9_999, Emin=-9_999, rounding=ROUND_HALF_UP, traps=[InvalidOperation])


class NotCalculable(ValueError):
    """The expression has no result. The message says why and quotes nothing of it but names."""


def calculate(expression: str) -> str:
    """Return the value of an expression, with 20 digits at most. Raises `NotCalculable`."""
    if len(expression) > LONGEST:
        raise NotCalculable(f"the expression is longer than {LONGEST} characters")
    parser = _Parser(_tokens(expression.translate(_SIGNS)))
    try:
        value = _SHOWN.plus(parser.parse())
    except (DivisionByZero, InvalidOperation):
        raise NotCalculable("the expression has no value, such as a division by zero or a root below zero") from None
    except DecimalException:
        raise NotCalculable("a number is too large") from None
    shown = format(value.normalize(_SHOWN), "f" if -10 <= value.adjusted() < 20 else "E")
    return "0" if not value else shown


def _tokens(text: str) -> list[str]:
    found, at = [], 0
    while text[at:].strip():
        token = _TOKEN.match(text, at)
        if token is None:
            raise NotCalculable(f"there is a sign at position {at + 1} that a calculator does not know")
        found.append(token[0].strip())
        at = token.end()
    return found


class _Parser:
    """Reads and calculates at once."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    def parse(self) -> Decimal:
        value = self._sum()
        if self._at < len(self._tokens):
            raise NotCalculable("it is no arithmetic expression: a number, a sign or a parenthesis is out of place")
        return value

    def _sum(self) -> Decimal:
        value = self._product()
        while sign := self._take("+", "-"):
            value = _OPERATIONS[sign](value, self._product())
        return value

    def _product(self) -> Decimal:
        value = self._sign()
        while sign := self._take("*", "/", "//", "%"):
            value = _OPERATIONS[sign](value, self._sign())
        return value

    def _sign(self) -> Decimal:
        negative = False
        while sign := self._take("+", "-"):
            negative ^= sign == "-"
        value = self._power()
        return _EXACT.minus(value) if negative else value

    def _power(self) -> Decimal:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise NotCalculable(f"it is more than {_DEEPEST} levels deep")
        value = self._operand()
        if self._take("**", "^"):
            value = _EXACT.power(value, self._sign())
        self._depth -= 1
        return value

    def _operand(self) -> Decimal:
        token = self._tokens[self._at] if self._at < len(self._tokens) else ""
        self._at += 1
        if token[:1].isdigit() or token[:1] == ".":
            return _EXACT.create_decimal(token)
        if token == "(":
            value = self._sum()
        elif token.lower() in _FUNCTIONS:
            self._expect("(")
            given = [self._sum()]
            while self._take(","):
                given.append(self._sum())
            value = _call(token.lower(), given)
        elif token.isalpha():
            raise NotCalculable(f"the calculator knows no names but {', '.join(_FUNCTIONS)}")
        else:
            raise NotCalculable("it is no arithmetic expression: a number is missing")
        self._expect(")")
        return value

    def _take(self, *signs: str) -> str:
        token = self._tokens[self._at] if self._at < len(self._tokens) else ""
        if token not in signs:
            return ""
        self._at += 1
        return token

    def _expect(self, sign: str) -> None:
        if not self._take(sign):
            raise NotCalculable(f"{sign!r} is missing; write numbers without separators of thousands")


def _round(value: Decimal, places: Decimal = Decimal(0)) -> Decimal:
    if places != places.to_integral_value() or not 0 <= places <= 20:
        raise NotCalculable("round takes 0 to 20 places")
    return value.quantize(Decimal(1).scaleb(-int(places)), context=_EXACT)


def _call(name: str, given: list[Decimal]) -> Decimal:
    function, most = _FUNCTIONS[name]
    if len(given) > most:
        raise NotCalculable(f"{name} takes {'one number' if most == 1 else f'at most {most} numbers'}")
    return function(*given)


_OPERATIONS: Mapping[str, Callable[[Decimal, Decimal], Decimal]] = {
    "+": _EXACT.add,
    "-": _EXACT.subtract,
    "*": _EXACT.multiply,
    "/": _EXACT.divide,
    "//": _EXACT.divide_int,
    "%": _EXACT.remainder,
}
_FUNCTIONS: Mapping[str, tuple[Callable[..., Decimal], int]] = {  # with the most numbers that it takes
    "abs": (_EXACT.abs, 1),
    "max": (lambda *values: max(values), LONGEST),
    "min": (lambda *values: min(values), LONGEST),
    "round": (_round, 2),
    "sqrt": (_EXACT.sqrt, 1),
}
