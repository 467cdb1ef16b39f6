"""Settings of judges: their endpoints, prompts and cache."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, Self

import msgspec
from pydantic import BaseModel, Field, SecretStr, field_validator, model_validator

from ragtide.evaluators.judge.search_settings import SearchSettings, check_endpoint_url
from ragtide.evaluators.judge.user_prompt import UserPrompt
from ragtide.evaluators.slugs import PATTERN, is_slug

CACHE_BYTES = 256 * 1024 * 1024
NO_ENDPOINT = "no judge endpoint is set: add a table [evaluators.judge.endpoints.NAME] with url and model"


class JudgeBatch(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """How `--batch` asks an endpoint: by files of calls, as the Batch API of OpenAI takes them."""

    path: str = Field(
        default="/v1/chat/completions",
        pattern=r"^/[\x21-\x7e]*$",
        description="Path that the lines of a file name. Older versions of Azure's API want /chat/completions.",
    )
    completion_window: str = Field(
        default="24h", min_length=1, description="Time within which the endpoint is asked to answer."
    )
    max_wait_s: float = Field(
        default=86_400.0, gt=0, description="Longest wait for a batch in seconds. Then it is cancelled."
    )
    poll_s: float = Field(default=60.0, gt=0, description="Longest pause between two looks at a batch. It is random.")
    max_requests: int = Field(default=50_000, ge=1, description="Most calls in a file.")
    max_bytes: int = Field(default=100_000_000, ge=1024, description="Most bytes of a file.")
    input_usd_per_million: float | None = Field(
        default=None, ge=0, description="Price of input tokens. If unset, half the endpoint's; so for the others."
    )
    cached_usd_per_million: float | None = Field(default=None, ge=0, description="Price of cached input tokens.")
    output_usd_per_million: float | None = Field(default=None, ge=0, description="Price of output tokens.")


class JudgeEndpoint(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """An endpoint that speaks the chat completions API of OpenAI."""

    url: str = Field(description="Base URL, e.g. https://api.openai.com/v1. A query, such as Azure's, is kept.")
    model: str = Field(min_length=1, description="Name of the model, as the endpoint knows it.")
    revision: str | None = Field(
        default=None, description="Version of the model, if the name does not say it. Another one starts new baselines."
    )
    api_key: SecretStr = Field(default=SecretStr(""), description="Key. Sent as a bearer token, and never logged.")
    api_key_header: str | None = Field(
        default=None, min_length=1, description="Header for the key in place of a bearer token, e.g. api-key for Azure."
    )
    headers: dict[str, SecretStr] = Field(default={}, description="More headers.")
    ca_file: Path | None = Field(default=None, description="Certificates to trust in place of the system's.")
    timeout_s: float = Field(default=60.0, gt=0, description="Seconds that one call may take.")
    trace_timeout_s: float = Field(
        default=300.0, gt=0, description="Seconds that all calls about one trace may take, with retries."
    )
    concurrency: int = Field(default=16, ge=1, description="Calls in flight at the same time, per process.")
    retries: int = Field(
        default=4, ge=0, description="Further attempts after 429, 5xx, a timeout or a lost connection."
    )
    retry_base_s: float = Field(default=0.5, gt=0, description="Longest pause before the first retry. It doubles.")
    retry_max_s: float = Field(default=30.0, gt=0, description="Longest pause before a retry.")
    breaker_failures: int = Field(
        default=10, ge=1, description="Failures in a row after which calls fail at once, without being sent."
    )
    breaker_s: float = Field(
        default=30.0, gt=0, description="Seconds until one call tries whether the endpoint is back."
    )
    structured: Literal["auto", "json_schema", "json_object", "none"] = Field(
        default="auto", description="Structured output to ask for. auto finds out once what the endpoint accepts."
    )
    temperature: float | None = Field(default=0.0, ge=0, description="Temperature. If unset, the endpoint's default.")
    max_tokens: int = Field(default=4096, ge=1, description="Most tokens of a reply.")
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = Field(
        default="max_tokens", description="Name of that limit in requests. Reasoning models want max_completion_tokens."
    )
    parameters: dict[str, Any] = Field(default={}, description="More fields of every request, e.g. reasoning_effort.")
    input_usd_per_million: float = Field(default=0.0, ge=0, description="US dollars for a million input tokens.")
    cached_usd_per_million: float | None = Field(
        default=None, ge=0, description="For input tokens from the endpoint's cache. If unset, as other input."
    )
    output_usd_per_million: float = Field(default=0.0, ge=0, description="US dollars for a million output tokens.")

    batch: JudgeBatch = Field(default=JudgeBatch(), description="How --batch asks it.")

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: str) -> str:
        return check_endpoint_url(url)

    @field_validator("parameters")
    @classmethod
    def _check_parameters(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        if named := sorted({"max_tokens", "max_completion_tokens"} & parameters.keys()):
            raise ValueError(f"must not have {named[0]}: set max_tokens and max_tokens_field")
        return parameters

    def at_batch_prices(self) -> Self:
        """Return the same settings with the prices of batches: those of `batch`, else half."""
        names = ("input_usd_per_million", "cached_usd_per_million", "output_usd_per_million")
        prices = {name: (getattr(self.batch, name), getattr(self, name)) for name in names}
        halved = {name: usual / 2 for name, (own, usual) in prices.items() if own is None and usual is not None}
        return self.model_copy(update=halved | {name: own for name, (own, _) in prices.items() if own is not None})

    def reply_settings(self) -> bytes:
        """Encode the settings that change replies, for fingerprints and the keys of the cache."""
        asked = (self.model, self.revision, self.temperature, self.max_tokens, self.parameters)
        return msgspec.json.encode(asked, order="deterministic")


class JudgeLimit(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """Limits of one application. Without one, nothing is limited."""

    usd_per_day: float | None = Field(
        default=None,
        gt=0,
        description="US dollars that its calls may cost in a day (UTC), by the prices of the endpoints, in all "
        "processes together. Calls in flight at the limit are paid for beyond it.",
    )
    calls_per_minute: int | None = Field(
        default=None, ge=1, description="Calls that a process may send in a minute, with further attempts."
    )


class JudgeCacheSettings(BaseModel, extra="forbid", frozen=True):
    """The cache of replies on disk. It holds what judges wrote about users' texts."""

    path: Path | None = Field(
        default=None,
        description="File of the cache. If unset, no reply is written to disk. Replies may repeat what users wrote.",
    )
    max_bytes: int = Field(
        default=CACHE_BYTES, ge=1, description="Maximum bytes. The least recently used replies are dropped first."
    )


class CanarySettings(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """Traces that never change. Jobs have judges score them again and again, to tell when a judge changes."""

    enabled: bool = Field(
        default=False,
        description="Have every judge score the canaries on a schedule. A run costs the calls of up to two traces per "
        "canary and judge; docs/judge.md has the sum.",
    )
    every_s: float = Field(
        default=86400.0, ge=60, le=7 * 86400, description="Seconds between two runs; runs begin at multiples, in UTC."
    )
    file: Path | None = Field(
        default=None,
        description="File of canaries of your own, JSON lines of traces, in place of the 24 that come with ragtide.",
    )
    forms: bool = Field(
        default=True,
        description="Score each canary in another form too, a different one in each run: with or without Markdown, "
        "padded with blank space, with chunks in another order. It doubles the calls.",
    )


def needs_prices(endpoint: str) -> str:
    """Say what to set before the money of an endpoint can be limited."""
    return (
        f"needs prices: set input_usd_per_million and output_usd_per_million of endpoint {endpoint} "
        "(0 if its calls are free)"
    )


class JudgeSettings(BaseModel, extra="forbid", frozen=True):
    """Judges of the lane judge. Without an endpoint its evaluators are off."""

    endpoints: dict[str, JudgeEndpoint] = Field(
        default={},
        description="Endpoints by name: tables with url, model, api_key, timeout_s, concurrency, prices and more; "
        "docs/judge.md lists all. A key from the environment: "
        "RAGTIDE_EVALUATORS__JUDGE__ENDPOINTS__<NAME>__API_KEY.",
    )
    endpoint: str | None = Field(
        default=None, description="Name of the endpoint that evaluators ask. Needed only if there are several."
    )
    endpoint_by_evaluator: dict[str, str] = Field(default={}, description="Other endpoints by evaluator id.")
    limit: JudgeLimit = Field(
        default=JudgeLimit(), description="Limits of each application. Traces beyond them are not judged."
    )
    limit_by_app: dict[str, JudgeLimit] = Field(default={}, description="Other limits by application.")
    companions: dict[str, str] = Field(
        default={},
        description="Companions by metric of a judge: cheap metrics that see every trace and make estimates of sampled "
        'scores more precise, e.g. "context_relevance.context_relevance" = '
        '"context_relevancy_soft.precision_relevancy". Empty: none.',
    )
    finds_companions: bool = Field(
        default=True,
        description="Give every other sampled metric of a judge the metric of lane fast that agreed best with it in "
        "the last 7 days. Workers look for it when they start.",
    )
    prompts: dict[str, Path] = Field(
        default={}, description="Files with prompts of your own, by the name of the prompt that they replace."
    )
    byop: dict[str, UserPrompt] = Field(
        default={},
        description="Prompts of your own: tables by the name of the evaluator that each becomes, with prompt (text "
        "with placeholders for fields of the trace) or file (its path), good_verdict (default true) and description. "
        "docs/judge.md explains them.",
    )
    slice_traces: int = Field(
        default=32,
        ge=1,
        description="Maximum number of sampled traces that the lane judge evaluates between two commits, about.",
    )
    batch_traces: int = Field(
        default=10_000,
        ge=1,
        description="Maximum number of sampled traces, about, that --batch reads before it sends their calls. They are "
        "in memory, with those that sampling leaves out.",
    )
    cache: JudgeCacheSettings = Field(default=JudgeCacheSettings(), description="The cache of replies on disk.")
    search: SearchSettings = Field(default=SearchSettings(), description="The search endpoint of agents.")
    canaries: CanarySettings = Field(default=CanarySettings(), description="Canaries, which tell when a judge changes.")

    @field_validator("byop")
    @classmethod
    def _check_names(cls, byop: dict[str, UserPrompt]) -> dict[str, UserPrompt]:
        if (wrong := next((name for name in byop if not is_slug(name)), None)) is not None:
            raise ValueError(f"{wrong[:80]!r} cannot name an evaluator: names match {PATTERN}")
        return byop

    @model_validator(mode="after")
    def _names_endpoints(self) -> Self:
        valid = ", ".join(self.endpoints) or "none"
        named = {"endpoint": self.endpoint} if self.endpoint is not None else {}
        named |= {f"endpoint_by_evaluator.{id}": name for id, name in self.endpoint_by_evaluator.items()}
        for setting, name in named.items():
            if name not in self.endpoints:
                raise ValueError(f"{setting}: there is no endpoint {name!r} (valid: {valid})")
        if len(self.endpoints) > 1 and self.endpoint is None:
            raise ValueError(f"set endpoint to the endpoint that evaluators ask by default (valid: {valid})")
        return self

    @model_validator(mode="after")
    def _has_prices(self) -> Self:
        """Refuse a budget that no call would count against."""
        if self.has_budget and (name := self.without_prices(self.endpoints)) is not None:
            raise ValueError(f"limit: usd_per_day {needs_prices(name)}")
        if self.has_budget and self.search.url is not None and "usd_per_search" not in self.search.model_fields_set:
            raise ValueError("limit: usd_per_day needs a price: set search.usd_per_search (0 if searches are free)")
        return self

    def without_prices(self, endpoints: Iterable[str]) -> str | None:
        """Return the first of the endpoints whose prices are not set, or None."""
        prices = {"input_usd_per_million", "output_usd_per_million"}
        return next((name for name in endpoints if not prices <= self.endpoints[name].model_fields_set), None)

    def limit_of(self, app: str) -> JudgeLimit:
        """Return the limits of an application."""
        return self.limit_by_app.get(app, self.limit)

    @property
    def has_limits(self) -> bool:
        """Whether a limit may leave out a trace."""
        limits = (self.limit, *self.limit_by_app.values())
        return self.has_budget or any(limit.calls_per_minute is not None for limit in limits)

    @property
    def has_budget(self) -> bool:
        """Whether the money of an application is limited."""
        return any(limit.usd_per_day is not None for limit in (self.limit, *self.limit_by_app.values()))

    def endpoint_of(self, evaluator: str) -> str | None:
        """Return the name of the endpoint that an evaluator asks, or None if there is none."""
        return self.endpoint_by_evaluator.get(evaluator, self.endpoint) or next(iter(self.endpoints), None)
