"""What scores depend on, in sixteen hex digits: rows of different fingerprints never mix."""

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
    """The same for the same id, version, parameters, models and, where vectors are used, encoder; the same in every
    process.
    """
    scored_by: dict[str, Any] = {
        "id": evaluator.id,
        "version": evaluator.version,
        "params": params.model_dump(mode="json"),
        "encoder": encoder_revision if evaluator.encoder_of(params) is not None else None,
    }
    if model_revisions:
        scored_by["models"] = list(model_revisions)
    canonical = json.dumps(scored_by, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]
