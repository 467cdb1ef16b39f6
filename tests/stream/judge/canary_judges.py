"""Judges that behave in a known way on canaries, with an evaluator of one call that they answer."""

import hashlib
import random
from collections.abc import Callable, Mapping
from typing import Any

from ragtide.evaluators import registry
from ragtide.evaluators.spec import Evaluator
from ragtide.stream.settings.loader import Settings
from tests.stream.judge.chat_server import KEY, ChatServer, Sent

GRADED = "graded"


def settings_of(server: ChatServer, canaries: Mapping[str, Any] | None = None, **judge: Any) -> Settings:
    """Settings with one prompt that every canary applies to, and nothing else."""
    endpoint = {"url": server.url, "model": "m", "api_key": KEY, "concurrency": 32, "retry_base_s": 0.01, "retries": 1}
    prices = {"input_usd_per_million": 10.0, "output_usd_per_million": 0.0}
    own = {
        "endpoints": {"small": {**endpoint, **prices, **judge.pop("endpoint", {})}},
        "byop": {GRADED: {"prompt": "Does {answer} answer {question}?"}},
        "canaries": {"enabled": True, "forms": False, **(canaries or {})},
        **judge,
    }
    return Settings.model_validate({"evaluators": {"enabled": [GRADED], "judge": own}})


def known(settings: Settings) -> dict[str, Evaluator]:
    return dict(registry.load(settings.evaluators))


def share_of(sent: Sent) -> float:
    """A number from 0 to 1 that the text alone decides, whatever its form."""
    plain = "".join(sign for sign in sent.user.split(">>>")[0] + sent.user if sign.isalpha())
    return int(hashlib.sha256(plain.encode()).hexdigest()[:8], 16) / 16**8


def steady(passing: float = 0.7) -> Callable[[Sent], Any]:
    """A judge that passes a share of the texts, always the same."""
    return lambda sent: {"verdict": share_of(sent) < passing}


def noisy(seed: int, passing: float = 0.7, noise: float = 0.3) -> Callable[[Sent], Any]:
    """A judge that answers a share of the questions by chance."""
    lots = random.Random(seed)
    return lambda sent: {"verdict": lots.random() < passing if lots.random() < noise else share_of(sent) < passing}
