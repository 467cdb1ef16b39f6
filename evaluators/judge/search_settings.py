"""Settings of the search endpoint of agents: any API that takes a query and returns a list of results as JSON."""

from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit

import msgspec
from pydantic import BaseModel, Field, SecretStr, field_validator, model_validator

Method = Literal["GET", "POST"]


def check_endpoint_url(url: str) -> str:
    """Return the URL of an endpoint. Raises `ValueError` if it is none, or holds a password."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must be an http:// or https:// URL")
    if parts.username is not None or parts.password is not None:
        raise ValueError("must not contain a name or password: set api_key or headers")
    return url


class SearchSettings(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """The search endpoint of agents. Without a URL there is none. The defaults are those of SearXNG's JSON API."""

    url: str | None = Field(
        default=None,
        description="URL of the search API, e.g. https://searx.example.org/search. If unset, no agent can search. "
        "Queries hold what users and models wrote, and go there.",
    )
    method: Method = Field(default="GET", description="GET sends the query in the URL, POST as a JSON object.")
    query_field: str = Field(default="q", min_length=1, description="Name of the parameter or field with the query.")
    parameters: dict[str, Any] = Field(
        default={}, description='More parameters of the URL, or fields of the object: { format = "json" } for SearXNG.'
    )
    api_key: SecretStr = Field(default=SecretStr(""), description="Key. Sent as a bearer token, and never logged.")
    api_key_header: str | None = Field(
        default=None,
        min_length=1,
        description="Header for the key in place of a bearer token, e.g. X-Subscription-Token for Brave.",
    )
    api_key_field: str | None = Field(
        default=None,
        min_length=1,
        description="Parameter or field for the key, for APIs that take it in no header. A key in a URL may end up in "
        "logs of proxies.",
    )
    headers: dict[str, SecretStr] = Field(default={}, description="More headers.")
    ca_file: Path | None = Field(default=None, description="Certificates to trust in place of the system's.")
    results: str = Field(
        default="results",
        description="Path of the list of results in the answer, e.g. web.results for Brave. Empty: the answer is it.",
    )
    missing_is_empty: bool = Field(
        default=False, description="Take an answer without the list for one without results, as Brave sends it."
    )
    title_field: str = Field(default="title", description="Field of a result with its title. Empty: none.")
    link_field: str = Field(default="url", description="Field with its address. Empty: none.")
    text_field: str = Field(
        default="content", min_length=1, description="Field with its excerpt, e.g. description for Brave."
    )
    max_results: int = Field(default=5, ge=1, le=50, description="Results that the agent sees, the first ones.")
    max_characters: int = Field(
        default=1_000, ge=100, le=20_000, description="Characters of a result that the agent sees."
    )
    timeout_s: float = Field(default=10.0, gt=0, description="Seconds that one request may take.")
    retries: int = Field(
        default=2, ge=0, description="Further attempts after 429, 5xx, a timeout or a lost connection."
    )
    retry_base_s: float = Field(default=0.5, gt=0, description="Longest pause before the first retry. It doubles.")
    concurrency: int = Field(default=4, ge=1, description="Requests in flight at the same time, per process.")
    usd_per_search: float = Field(default=0.0, ge=0, description="US dollars for a search. They count in the budget.")

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: str | None) -> str | None:
        return None if url is None else check_endpoint_url(url)

    @field_validator("parameters")
    @classmethod
    def _check_parameters(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        try:
            msgspec.json.encode(parameters)
        except (TypeError, ValueError, OverflowError):
            raise ValueError("must be values of JSON") from None
        return parameters

    @model_validator(mode="after")
    def _has_one_value_per_name(self) -> Self:
        for setting in ("query_field", "api_key_field"):
            if (name := getattr(self, setting)) in self.parameters:
                raise ValueError(f"parameters must not have {name}, which is {setting}")
        if self.api_key_field is not None and self.api_key_header is not None:
            raise ValueError("set one of api_key_header and api_key_field")
        if self.api_key_field == self.query_field:
            raise ValueError("api_key_field and query_field must differ")
        if self.method == "GET" and (nested := next(filter(self._is_nested, self.parameters), None)):
            raise ValueError(f"parameters.{nested} must be a text, a number or a truth value, because method is GET")
        return self

    def _is_nested(self, name: str) -> bool:
        return not isinstance(self.parameters[name], str | int | float)

    def result_settings(self) -> bytes:
        """Encode the settings that change results, for fingerprints and the keys of the cache. They hold no secret."""
        unlike = {"api_key", "api_key_header", "api_key_field", "headers", "ca_file", "usd_per_search"}
        unlike |= {"timeout_s", "retries", "retry_base_s", "concurrency"}
        kept = {name: getattr(self, name) for name in type(self).model_fields if name not in unlike}
        return msgspec.json.encode(kept, order="deterministic")
