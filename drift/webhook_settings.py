"""Settings of webhooks. Read by `ragtide.stream.settings.loader` only."""

import re
from typing import Literal, Self, get_args

from pydantic import Field, field_validator, model_validator

from ragtide.drift.routes import ANY, expression
from ragtide.drift.settings import SEVERITIES, Severity
from ragtide.sinks.settings import WebhookEndpoint

Event = Literal["problem.opened", "problem.updated", "problem.resolved", "insight.found", "insight.withdrawn"]
FilterField = Literal["app", "environment", "metric", "type"]
OF_PROBLEMS: tuple[Event, ...] = ("problem.opened", "problem.updated", "problem.resolved")


class Webhook(WebhookEndpoint, extra="forbid", frozen=True, allow_inf_nan=False):
    """Where notifications are posted, and which ones."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$", description="Name in logs, metrics and commands.")
    events: tuple[Event, ...] = Field(
        default=OF_PROBLEMS, min_length=1, description=f"Events to post, of {', '.join(get_args(Event))}."
    )
    app: str = Field(default=ANY, description="Pattern of the application's name.")
    environment: str = Field(default=ANY, description="Pattern of the environment.")
    metric: str = Field(default=ANY, description="Pattern of evaluator.metric. Insights have none.")
    type: str = Field(default=ANY, description="Pattern of the type of problem or insight, e.g. privacy.")
    severities: tuple[Severity, ...] = Field(
        default=SEVERITIES, min_length=1, description="Severities of problems to post. Insights have none."
    )
    retry_days: float = Field(
        default=3.0, gt=0, le=90, description="Days after which a message that keeps failing is given up."
    )
    source: str = Field(
        default="/ragtide",
        pattern=r"^[!-~]{1,200}$",
        description="Source of the CloudEvents. Give each deployment its own if one receiver gets several.",
    )

    @field_validator("events", "severities")
    @classmethod
    def _check_distinct(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(values)) < len(values):
            raise ValueError("names a value twice")
        return values

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.metric != ANY and not set(self.events) & set(OF_PROBLEMS):
            raise ValueError("metric filters problems, and events has none of them")
        if "insight.withdrawn" in self.events and "insight.found" not in self.events:
            raise ValueError("events: insight.withdrawn needs insight.found")
        return self

    def pattern(self, field: FilterField) -> str:
        """Return the regular expression of a field for RE2; it matches whole values only."""
        return f"\\A(?:{expression(getattr(self, field))})\\z"

    def matches(self, field: FilterField, value: str) -> bool:
        """Tell whether the whole value matches the pattern of a field."""
        return re.fullmatch(expression(getattr(self, field)), value) is not None
