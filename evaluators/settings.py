"""Settings of the evaluators and of the encoder they share. Read by `stream.settings` only."""

from typing import Any, Literal

from pydantic import BaseModel, Field

AUTO_MODEL = "auto"
PACKAGED_MODEL = "all-MiniLM-L6-v2"
CACHE_BYTES = 128 * 1024 * 1024
PORTION_BYTES = 256 * 1024 * 1024


class EncoderSettings(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """The sentence encoder that all embedding evaluators share."""

    backend: Literal["auto", "onnx", "sentence-transformers"] = Field(
        default="auto",
        description="What runs the model; auto: what measures faster at the start, of what is installed.",
    )
    model: str = Field(
        default=AUTO_MODEL,
        min_length=1,
        description="The packaged all-MiniLM-L6-v2, a folder in sentence-transformers' format, or a Hugging Face name; "
        "auto: BAAI/bge-small-en-v1.5 where it was fetched (`ragwatch models fetch`), else the packaged one.",
    )
    revision: str | None = Field(
        default=None, min_length=1, description="Its commit, tag or branch on Hugging Face; unset: main as fetched."
    )
    device: str | None = Field(
        default=None, description="Torch device such as cuda:0; unset: a GPU where there is one."
    )
    dtype: Literal["auto", "float32"] = Field(
        default="auto", description="Numbers of the weights; auto: bfloat16 on a GPU, float32 on a CPU."
    )
    int8_tolerance: float | None = Field(
        default=None,
        gt=0,
        description="Run in int8 on the CPU (backend onnx) where no two texts of a sample get a cosine off by more; "
        "unset: never in int8.",
    )
    threads: int = Field(default=1, ge=1, description="CPU threads of the encoder; scale by worker processes first.")
    batch_tokens: int | None = Field(
        default=None, ge=1, description="Padded tokens of one forward pass; unset: what suits the device."
    )
    cache_bytes: int = Field(
        default=CACHE_BYTES, ge=0, description="Most memory for vectors kept from one batch to the next."
    )


class ModelSettings(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """Where one model besides the encoder comes from, and how it runs."""

    source: str | None = Field(
        default=None, min_length=1, description="A folder, or a Hugging Face name; unset: the model's own name."
    )
    revision: str | None = Field(default=None, description="Commit, tag or branch on Hugging Face; unset: its newest.")
    remote_code: bool = Field(default=False, description="Whether Python code that comes with the model may run.")
    backend: Literal["auto", "onnx", "torch"] = Field(
        default="auto", description="What runs the model; auto: what measures faster at the start."
    )
    device: str | None = Field(
        default=None, description="Torch device such as cuda:0; unset: a GPU where there is one."
    )
    dtype: Literal["auto", "float32", "bfloat16"] = Field(
        default="auto", description="Numbers of the weights; auto: bfloat16 on a GPU, float32 on a CPU."
    )
    int8_tolerance: float | None = Field(
        default=None,
        gt=0,
        description="Run a classifier in int8 on the CPU (backend onnx) where no score of a sample is off by more; "
        "unset: never in int8.",
    )
    threads: int = Field(default=1, ge=1, description="CPU threads of the model; scale by worker processes first.")
    batch_tokens: int | None = Field(
        default=None, ge=1, description="Padded tokens of one forward pass; unset: what suits the device."
    )


class EvaluatorSettings(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """Which evaluators run, on which traces and with which parameters."""

    enabled: tuple[str, ...] | None = Field(
        default=None,
        description="Ids to run; each must be able to. Unset: every evaluator whose resources are installed.",
    )
    disabled: tuple[str, ...] = Field(default=(), description="Ids not to run; wins over enabled.")
    params: dict[str, dict[str, Any]] = Field(
        default={}, description="Parameters by evaluator id; see `ragwatch evaluators`."
    )
    tasks: dict[str, tuple[str, ...]] = Field(
        default={}, description='Tasks by evaluator id, instead of its own; an empty list or "*" is every task.'
    )
    answers_cache_bytes: int = Field(
        default=CACHE_BYTES,
        ge=0,
        description="Most memory for answers of the other models kept from one batch to the next.",
    )
    portion_bytes: int = Field(
        default=PORTION_BYTES,
        ge=1,
        description="Most memory for what models make of a micro-batch, as it is counted: tokens, vectors, answers. A "
        "larger one is evaluated in portions of whole records; one record takes what it needs.",
    )
    workers_per_card: int | None = Field(
        default=None,
        ge=1,
        description="Most worker processes on one GPU of a machine; each takes the card with the fewest and sees no "
        "other. Unset: every worker sees all cards and computes on the first, or on that of `device`.",
    )
    card_bytes: int | None = Field(
        default=None,
        ge=1,
        description="Most memory of each GPU for a worker process, weights and work; where it runs out, fewer tokens "
        "are read at once. CUDA itself takes some hundred MiB beside it. Unset: all that is free.",
    )
    encoder: EncoderSettings = Field(default=EncoderSettings(), description="The shared sentence encoder.")
    models: dict[str, ModelSettings] = Field(
        default={}, description="Other models by the name that parameters give them; see `ragwatch models list`."
    )
