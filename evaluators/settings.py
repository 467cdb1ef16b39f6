"""Settings of the evaluators and of the encoder they share. Read by `ragtide.stream.settings.loader` only."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from ragtide.evaluators.judge.settings import JudgeSettings

AUTO_MODEL = "auto"
PACKAGED_MODEL = "all-MiniLM-L6-v2"
CACHE_BYTES = 128 * 1024 * 1024
PORTION_BYTES = 256 * 1024 * 1024


class EncoderSettings(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """The sentence encoder that all embedding evaluators share."""

    backend: Literal["auto", "onnx", "sentence-transformers"] = Field(
        default="auto",
        description="Library that runs the encoder. auto measures the installed ones at startup and picks the fastest.",
    )
    model: str = Field(
        default=AUTO_MODEL,
        min_length=1,
        description="The packaged all-MiniLM-L6-v2, a folder in sentence-transformers' format, or a Hugging Face "
        "name. auto picks BAAI/bge-small-en-v1.5 if it was fetched (`ragtide models fetch`), else the packaged one.",
    )
    revision: str | None = Field(
        default=None, min_length=1, description="Commit, tag or branch on Hugging Face. If unset, main as fetched."
    )
    device: str | None = Field(default=None, description="Torch device, e.g. cuda:0. If unset, a GPU if there is one.")
    dtype: Literal["auto", "float32"] = Field(
        default="auto", description="Number format of the weights. auto uses bfloat16 on a GPU and float32 on a CPU."
    )
    int8_tolerance: float | None = Field(
        default=None,
        gt=0,
        description="Run in int8 on the CPU (backend onnx) if no cosine between sample texts changes by more than "
        "this. If unset, never in int8.",
    )
    threads: int = Field(
        default=1, ge=1, description="CPU threads of the encoder. To scale, add worker processes first."
    )
    batch_tokens: int | None = Field(
        default=None, ge=1, description="Padded tokens in one forward pass. If unset, the device decides."
    )
    cache_bytes: int = Field(
        default=CACHE_BYTES, ge=0, description="Maximum bytes for vectors that are cached between batches."
    )


class ModelSettings(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """Where one model besides the encoder comes from, and how it runs."""

    source: str | None = Field(
        default=None, min_length=1, description="A folder, or a Hugging Face name. If unset, the model's own name."
    )
    revision: str | None = Field(
        default=None, description="Commit, tag or branch on Hugging Face. If unset, the newest."
    )
    remote_code: bool = Field(default=False, description="Allow Python code that comes with the model to run.")
    backend: Literal["auto", "onnx", "torch"] = Field(
        default="auto", description="Library that runs the model. auto measures them at startup and picks the fastest."
    )
    device: str | None = Field(default=None, description="Torch device, e.g. cuda:0. If unset, a GPU if there is one.")
    dtype: Literal["auto", "float32", "bfloat16"] = Field(
        default="auto", description="Number format of the weights. auto uses bfloat16 on a GPU and float32 on a CPU."
    )
    int8_tolerance: float | None = Field(
        default=None,
        gt=0,
        description="Run a classifier in int8 on the CPU (backend onnx) if no sample score changes by more than this. "
        "If unset, never in int8.",
    )
    threads: int = Field(default=1, ge=1, description="CPU threads of the model. To scale, add worker processes first.")
    batch_tokens: int | None = Field(
        default=None, ge=1, description="Padded tokens in one forward pass. If unset, the device decides."
    )


class EvaluatorSettings(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """Which evaluators run, on which traces and with which parameters."""

    enabled: tuple[str, ...] | None = Field(
        default=None,
        description="Ids of evaluators to run. Each must have what it needs. If unset, all evaluators with their "
        "requirements installed run, except those that are off by default (`ragtide evaluators` lists them).",
    )
    disabled: tuple[str, ...] = Field(default=(), description="Ids of evaluators not to run. Overrides `enabled`.")
    params: dict[str, dict[str, Any]] = Field(
        default={}, description="Parameters by evaluator id. `ragtide evaluators ID` lists them."
    )
    tasks: dict[str, tuple[str, ...]] = Field(
        default={}, description='Tasks by evaluator id, in place of its own. An empty list or "*" means every task.'
    )
    answers_cache_bytes: int = Field(
        default=CACHE_BYTES,
        ge=0,
        description="Maximum bytes for outputs of models, the encoder aside, that are cached between batches.",
    )
    portion_bytes: int = Field(
        default=PORTION_BYTES,
        ge=1,
        description="Maximum bytes for tokens, vectors and outputs of models in a micro-batch, by estimate. A larger "
        "batch is split into portions of whole records. A single record may exceed the limit.",
    )
    workers_per_card: int | None = Field(
        default=None,
        ge=1,
        description="Maximum number of worker processes on one GPU. Each takes the GPU with the fewest workers and "
        "sees no other. If unset, workers see all GPUs and use `device`, or else the first.",
    )
    card_bytes: int | None = Field(
        default=None,
        ge=1,
        description="Maximum bytes of each GPU's memory per worker process, weights included. At the limit, batches "
        "shrink. CUDA takes some hundred MiB more. If unset, all free memory.",
    )
    encoder: EncoderSettings = Field(default=EncoderSettings(), description="The shared sentence encoder.")
    models: dict[str, ModelSettings] = Field(
        default={},
        description="Settings of other models, by the name that evaluator parameters use. `ragtide models list` shows "
        "them.",
    )
    judge: JudgeSettings = Field(default=JudgeSettings(), description="Judges: language models behind an endpoint.")
