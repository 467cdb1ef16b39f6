"""The identity of scores, in sixteen hex digits. Rows of different fingerprints never mix."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from ragtide.evaluators.spec import Evaluator


def fingerprint(
    evaluator: Evaluator,
    params: BaseModel,
    encoder_revision: str | None = None,
    model_revisions: Sequence[str] = (),
) -> str:
    """Hash id, version, parameters and revisions of the models and, if it embeds, of the encoder.

    Parameters that only limit records (`JudgeUse.limits`) are left out.
    """
    scored_by: dict[str, Any] = {
        "id": evaluator.id,
        "version": evaluator.version,
        "params": params.model_dump(mode="json", exclude=set(evaluator.judge.limits) if evaluator.judge else None),
        "encoder": encoder_revision if evaluator.encoder_of(params) is not None else None,
    }
    if model_revisions:
        scored_by["models"] = list(model_revisions)
    canonical = json.dumps(scored_by, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]
