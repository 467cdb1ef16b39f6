"""SQL of owners: the routes of the settings as an expression over columns."""

from collections.abc import Sequence

from ragtide.dashboards.variable_sql import literal
from ragtide.drift.routes import ANY, Route, expression

NOBODY = "no owner"


def owner_sql(routes: Sequence[Route], app: str, metric: str = "''", type_: str = "''") -> str:
    """Write the owner of the first route that matches these columns, as `ragtide.drift.routes.owner_of` finds it.

    `NOBODY` where none matches. No pattern and no name of the settings enters the statement unencoded.
    """
    cases = []
    for route in routes:
        named = ((app, route.app), (metric, route.metric), (type_, route.type))
        asked = [f"match({column}, {literal(f'^{expression(glob)}$')})" for column, glob in named if glob != ANY]
        if not asked:
            otherwise = literal(route.owner)
            break
        cases.append(f"{' AND '.join(asked)}, {literal(route.owner)}")
    else:
        otherwise = literal(NOBODY)
    return f"multiIf({', '.join([*cases, otherwise])})" if cases else otherwise
