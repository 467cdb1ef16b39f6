"""SQL for the values of dashboard variables: the only place where a query names a variable.

Applications choose the names that variables offer, so a name must not reach the query as SQL. Grafana's quoting formats
(`singlequote`, `sqlstring`) leave backslashes as they are, and ClickHouse reads those as escapes. `percentencode`
leaves letters, digits and `-_.~` only: no quote, no backslash, no macro. ClickHouse decodes the name again.
"""

from urllib.parse import quote


def value(variable: str) -> str:
    """Write the value of a variable that has one value, as a string expression."""
    return f"decodeURLComponent('${{{variable}:percentencode}}')"


def number(variable: str) -> str:
    """Write the value of a variable as a whole number; 0 where it is none."""
    return f"toUInt32OrZero({value(variable)})"


def values(variable: str) -> str:
    """Write the values of a variable that has several, as an array expression.

    Grafana writes `{one,two}`. The values are those of `options`, encoded once more, so no comma in a name divides it.
    """
    listed = f"splitByChar(',', trim(BOTH '{{}}' FROM {value(variable)}))"
    return f"arrayMap(name -> decodeURLComponent(name), {listed})"


def options(column: str) -> str:
    """Write the columns of a query that offers several values: value and label, as the plugin reads two columns."""
    return f"encodeURLComponent({column}) AS value, {column} AS label"


def literal(name: str) -> str:
    """Write a name as a string expression in which Grafana finds neither variable nor macro."""
    encoded = quote(name, safe="-_.~")
    return f"'{name}'" if encoded == name else f"decodeURLComponent('{encoded}')"


def equals_variable(column: str) -> str:
    """Write the condition that the column has the value of the variable of its name."""
    return f"{column} = {value(column)}"


def in_variable(column: str) -> str:
    """Write the condition that the column has one of the values of the variable of its name, or that it is All."""
    return f"$__conditionalAll({column} IN ({values(column)}), ${column})"


def any_in_variable(column: str, variable: str) -> str:
    """Write the condition that the array column shares a value with the variable, or that it is All."""
    return f"$__conditionalAll(hasAny({column}, {values(variable)}), ${variable})"
