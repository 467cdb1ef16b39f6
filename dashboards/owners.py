"""SQL of owners: the routes of the settings as an expression over columns."""

from collections.abc import Sequence

from ragtide.dashboards.variable_sql import literal
from ragtide.drift.routes import ANY, Route, expression

NOBODY = "no owner"


def owner_sql(routes: Sequence[Route], app: str, metric: str = "''", type_: str = "''") -> str:
    """Write the owner of the first route that matches these columns, as `ragtide.drift.routes.owner_of` finds it.

    `NOBODY` where none matches. No pattern and no name of the settings enters the statement unencoded.
    """
    owners = [literal(route.owner) for route in routes]
    return _first_match(routes, (app, metric, type_), owners, literal(NOBODY))


def route_number_sql(routes: Sequence[Route], app: str, metric: str, type_: str) -> str:
    """Write the number of the first route that matches these columns, from 1; 0 where none matches."""
    return _first_match(routes, (app, metric, type_), [str(number) for number in range(1, len(routes) + 1)], "0")


def _first_match(routes: Sequence[Route], columns: Sequence[str], values: Sequence[str], otherwise: str) -> str:
    """Write the value of the first route that matches the columns of application, metric and type."""
    cases = []
    for route, value in zip(routes, values, strict=True):
        named = zip(columns, (route.app, route.metric, route.type), strict=True)
        asked = [f"match({column}, {literal(f'^{expression(glob)}$')})" for column, glob in named if glob != ANY]
        if not asked:
            otherwise = value
            break
        cases.append(f"{' AND '.join(asked)}, {value}")
    return f"multiIf({', '.join([*cases, otherwise])})" if cases else otherwise
