"""Routes: who owns a problem, by application, metric and type. Settings read by `ragtide.stream.settings.loader` only.

A pattern is a glob over the whole name: `*` stands for any characters, `?` for one. Nothing else is special.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Annotated

from pydantic import BaseModel, Field, field_validator

from ragtide.sinks.alertmanager_settings import RESERVED_LABELS

_PLAIN = re.compile(r"[A-Za-z0-9_]|[^\x00-\x7f]")
_Label = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=64)]

NO_OWNER = ""
ANY = "*"


class Route(BaseModel, extra="forbid", frozen=True):
    """The owner of problems whose application, metric and type match."""

    app: str = Field(default=ANY, description="Pattern of the application's name.")
    metric: str = Field(default=ANY, description="Pattern of evaluator.metric, e.g. operations.*")
    type: str = Field(default=ANY, description="Pattern of the problem's type, e.g. privacy.")
    owner: str = Field(
        pattern=r"^[A-Za-z0-9](?:[A-Za-z0-9 _.@/-]{0,62}[A-Za-z0-9])?$",
        description="Team or person, e.g. search-team.",
    )
    labels: Mapping[_Label, str] = Field(default={}, description="More labels for alerts, e.g. channel = '#search'.")

    @field_validator("labels")
    @classmethod
    def _check_labels(cls, labels: Mapping[str, str]) -> Mapping[str, str]:
        if taken := [name for name in labels if name in RESERVED_LABELS]:
            raise ValueError(f"{', '.join(taken)}: alerts have labels of this name already; choose another")
        return labels

    def matches(self, app: str, metric: str, type_: str) -> bool:
        """Tell whether the whole of each name matches its pattern."""
        named = ((self.app, app), (self.metric, metric), (self.type, type_))
        return all(re.fullmatch(expression(pattern), name) is not None for pattern, name in named)


def route_of(routes: Iterable[Route], app: str, metric: str = "", type_: str = "") -> Route | None:
    """Return the first route that matches; None if none does. A name that is empty matches `*` only."""
    return next((route for route in routes if route.matches(app, metric, type_)), None)


def owner_of(routes: Iterable[Route], app: str, metric: str = "", type_: str = "") -> str:
    """Return the owner of the first route that matches; empty if none does."""
    found = route_of(routes, app, metric, type_)
    return NO_OWNER if found is None else found.owner


def expression(pattern: str) -> str:
    """Return the regular expression of a pattern, without anchors, for Python and RE2 alike."""
    signs = {"*": ".*", "?": "."}
    return f"(?s:{''.join(signs.get(sign) or _literal(sign) for sign in pattern)})"


def _literal(sign: str) -> str:
    if _PLAIN.fullmatch(sign):
        return sign
    return f"\\{sign}" if sign.isprintable() else f"\\x{ord(sign):02x}"
