"""Texts become vectors, each for itself: one that the encoder cannot take costs no other its own."""

import logging
from collections.abc import Sequence

from evaluators.errors import DeviceLost
from evaluators.resources import Batch
from evaluators.spec import Vectors

log = logging.getLogger(__name__)


def encoded(texts: Sequence[str], shared: Batch) -> dict[str, Vectors]:
    """The unit vector of each text that has one, with one call for those not known yet. Raises `DeviceLost`."""
    if not texts:
        return {}
    try:
        vectors = shared.embed(texts)
    except DeviceLost:
        raise
    except Exception as error:  # noqa: BLE001  # an encoder is code of others, and may break on one text
        if len(texts) == 1:
            log.warning("the encoder failed on a text: %s", type(error).__name__)
            return {}
        middle = len(texts) // 2
        return {**encoded(texts[:middle], shared), **encoded(texts[middle:], shared)}
    return dict(zip(texts, vectors, strict=True))
