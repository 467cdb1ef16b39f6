"""Hash questions, so that repeated ones are recognised without their text."""

import hmac
from collections.abc import Callable
from hashlib import sha256

from ragtide.sinks.settings import PrivacySettings

_DIGITS = 16  # 64 bits: of a hundred million questions hardly two are taken for one
QuestionHash = Callable[[str | None], str]


def question_hash_of(privacy: PrivacySettings) -> QuestionHash:
    """Make the function that hashes questions, ignoring case and spacing; its result is empty without a question.

    Hashes are keyed if there is a key, so that nobody without it can guess questions. Without a key, only where
    texts are stored in full.
    """
    key = privacy.hash_key.get_secret_value().encode()
    if key:
        return lambda question: _digits(hmac.new(key, _plain(question), sha256).hexdigest(), question)
    if privacy.store_texts == "full":
        return lambda question: _digits(sha256(_plain(question)).hexdigest(), question)
    return lambda question: ""


def _plain(question: str | None) -> bytes:
    return " ".join((question or "").casefold().split()).encode("utf-8", "replace")


def _digits(digest: str, question: str | None) -> str:
    return digest[:_DIGITS] if question and not question.isspace() else ""
