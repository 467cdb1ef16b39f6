"""Loads a torch model and its tokenizer from files: safetensors only, and no missing weights."""

from typing import Any

from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.models.files import ModelFiles
from ragtide.evaluators.settings import ModelSettings

# Position embeddings of these begin behind the one of the padding token: of 514 places 512 are for tokens.
_POSITIONS_AFTER_PADDING = ("roberta", "camembert", "longformer", "mpnet", "xmod", "ibert", "data2vec-text")
_UNLIMITED = 1 << 20  # a tokenizer without a limit says 10**30


def load_model(kind: str, files: ModelFiles, settings: ModelSettings, dtype: Any) -> tuple[Any, Any]:
    """Load the model, of a transformers class such as AutoModelForCausalLM, and its fast tokenizer.

    Raises `ConfigError` with the error of transformers.
    """
    import transformers
    from safetensors import SafetensorError

    local = {"local_files_only": True, "trust_remote_code": settings.remote_code}
    try:
        model, loading = getattr(transformers, kind).from_pretrained(
            files.folder, dtype=dtype, use_safetensors=True, output_loading_info=True, **local
        )
        tokenizer = transformers.AutoTokenizer.from_pretrained(files.folder, **local)
    except (OSError, ValueError, RuntimeError, ImportError, KeyError, SafetensorError) as error:
        raise ConfigError(
            f"transformers cannot load the model {files.source.name} from {files.folder}: "
            f"{type(error).__name__}: {error}"
        ) from error
    if loading["missing_keys"]:  # transformers would fill them with random numbers
        lacking = ", ".join(sorted(loading["missing_keys"])[:3])
        raise ConfigError(f"{files.folder} holds no trained {kind}: it has no weights for {lacking}")
    if not getattr(tokenizer, "is_fast", False):
        raise ConfigError(f"the model {files.source.name} has no fast tokenizer (tokenizer.json), which is needed")
    return model, tokenizer


def most_tokens(config: Any, tokenizer: Any) -> int:
    """Return the model's maximum of tokens, with special tokens."""
    positions = int(getattr(config, "max_position_embeddings", None) or _UNLIMITED)
    if any(name in config.model_type for name in _POSITIONS_AFTER_PADDING):
        positions -= config.pad_token_id + 1
    most = min(int(tokenizer.model_max_length), positions)
    if most >= _UNLIMITED:
        raise ConfigError("neither config.json nor the tokenizer says how many tokens the model reads at once")
    return most
