"""Embed texts so that one that the encoder fails on costs no other its vector."""

import logging
from collections.abc import Sequence

from ragtide.evaluators.errors import ends_process
from ragtide.evaluators.resources import Batch
from ragtide.evaluators.spec import Vectors

log = logging.getLogger(__name__)


def embed_texts(texts: Sequence[str], shared: Batch) -> dict[str, Vectors]:
    """The unit vector of each text that has one, with one call for those not known yet. Raises `DeviceLost`."""
    if not texts:
        return {}
    try:
        vectors = shared.embed(texts)
    except BaseException as error:  # an encoder is third-party code, and may fail on one text
        if ends_process(error):
            raise
        if len(texts) == 1:
            log.warning("the encoder failed on a text: %s; the text gets no vector", type(error).__name__)
            return {}
        middle = len(texts) // 2
        return {**embed_texts(texts[:middle], shared), **embed_texts(texts[middle:], shared)}
    return dict(zip(texts, vectors, strict=True))
