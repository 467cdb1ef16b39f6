"""Prompts of judges: the newest file of a folder in `prompts`, or a file of the user's."""

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from importlib import resources

from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.judge.fences import CLOSING, RULES
from ragtide.evaluators.judge.settings import JudgeSettings
from ragtide.evaluators.judge.user_prompt import evaluator_of

_PACKAGE = "ragtide.evaluators.judge"


def prompt_names() -> tuple[str, ...]:
    """Return the names of all prompts, sorted."""
    return tuple(sorted(folder.name for folder in (resources.files(_PACKAGE) / "prompts").iterdir() if folder.is_dir()))


@lru_cache
def builtin_prompt(name: str) -> str:
    """Return the newest version of a prompt: `prompts/NAME/<version>.md`."""
    folder = resources.files(_PACKAGE) / "prompts" / name
    newest = max(int(file.name.removesuffix(".md")) for file in folder.iterdir() if file.name.endswith(".md"))
    return (folder / f"{newest}.md").read_text("utf-8")


def load_prompt(name: str, settings: JudgeSettings) -> str:
    """Return the prompt: the user's own, else ours. Raises `ConfigError` for a file that cannot be used."""
    if (evaluator := evaluator_of(name)) is not None:
        return settings.byop[evaluator].instructions
    path = settings.prompts.get(name)
    if path is None:
        return builtin_prompt(name)
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"evaluators.judge.prompts.{name}: {path} cannot be read: {type(error).__name__}") from None
    if not text.strip():
        raise ConfigError(f"evaluators.judge.prompts.{name}: {path} is empty")
    return text


def check_prompts(settings: JudgeSettings) -> None:
    """Raise `ConfigError` for an override of a prompt that does not exist, or that cannot be read."""
    valid = prompt_names()
    for name in settings.prompts:
        if name not in valid:
            raise ConfigError(f"evaluators.judge.prompts: there is no prompt {name!r} (valid: {', '.join(valid)})")
        load_prompt(name, settings)


def prompts_hash(names: Iterable[str], settings: JudgeSettings) -> str:
    """Hash the prompts and all else that goes with every call, or says which verdict is good: it changes scores."""
    texts = [RULES, CLOSING]
    for name in sorted(names):
        texts.append(load_prompt(name, settings))
        if (evaluator := evaluator_of(name)) is not None:
            texts.append(str(settings.byop[evaluator].good_verdict))
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:8]


def judge_revision(evaluator: str, names: Iterable[str], searches: bool, settings: JudgeSettings) -> str:
    """Return the model, the settings of its replies and the prompts that scores depend on, for the fingerprint.

    If it searches, they depend on the search endpoint too.
    """
    endpoint = settings.endpoint_of(evaluator)
    assert endpoint is not None, "asked for without an endpoint"
    own = settings.endpoints[endpoint]
    replies = hashlib.sha256(own.reply_settings()).hexdigest()[:8]
    search = f"+{hashlib.sha256(settings.search.result_settings()).hexdigest()[:8]}" if searches else ""
    return f"judge-{own.model}@{own.revision or ''}+{replies}+{prompts_hash(names, settings)}{search}"
