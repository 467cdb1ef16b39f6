"""Make rows of labels: with facts only if texts are stored in full, with verdicts always."""

import hmac
from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256
from typing import NamedTuple

import msgspec

from ragtide.evaluators.resources import Batch, Resources
from ragtide.sinks.version import pack
from ragtide.stream.ingest.masked_names import name_masking_of
from ragtide.stream.ingest.masking import masking_of
from ragtide.stream.ingest.names import cut_name
from ragtide.stream.ingest.records import Record, broker_time
from ragtide.stream.labels.label import Label, Verdict
from ragtide.stream.settings.loader import Settings

_NO_VERDICT = Verdict.model_construct()


class LabelRow(NamedTuple):
    """Table `labels`: one message. Facts are JSON, empty if not sent."""

    trace_id: str
    time: datetime  # the broker's timestamp
    topic: str
    partition: int
    offset: int
    version: int
    author: str
    expected: str
    relevance: str
    classes: str
    thumbs: str
    score: float | None
    comment: str
    sample_rate: float = 0.0  # 0: the trace was not drawn for labelling
    sample_evaluator: str = ""  # among whose scored traces it was drawn

    @property
    def joins(self) -> bool:
        """Whether the label has facts for its trace."""
        return bool(self.expected or self.relevance or self.classes)


class LabelRows:
    """Makes rows as the privacy settings want them.

    A trace whose texts are masked or not stored cannot be evaluated again. So its reference answers, grades and classes
    are not stored then; comments are masked like texts, or left out.
    """

    def __init__(self, settings: Settings) -> None:
        privacy = settings.privacy
        self._masking = masking_of(privacy, settings.evaluators)
        self._names = name_masking_of(privacy, settings.evaluators)
        self._joins = privacy.store_texts == "full"
        self._comments = privacy.store_texts != "off"
        self._user_key = privacy.hash_key.get_secret_value().encode() if privacy.hash_users else None
        self._resources = Resources()

    def rows_of(self, labels: Sequence[Label], records: Sequence[Record]) -> list[LabelRow]:
        """Make one row per label, in order; `records` are the messages of the labels."""
        shared = self._resources.batch()
        return [self._row(label, record, shared) for label, record in zip(labels, records, strict=True)]

    def _row(self, label: Label, record: Record, shared: Batch) -> LabelRow:
        verdict = label.verdict or _NO_VERDICT
        return LabelRow(
            label.trace_id,
            broker_time(record),
            record.topic,
            record.partition,
            record.offset,
            pack(record.timestamp, record.offset),
            self._author(label.author or ""),
            self._fact(label.expected),
            self._fact(label.relevance),
            self._fact(label.labels.expected if label.labels is not None else None),
            verdict.thumbs or "",
            verdict.score,
            self._comment(verdict.comment or "", shared),
            label.sample_rate or 0.0,
            label.sample_evaluator or "",
        )

    def _fact(self, fact: object) -> str:
        return "" if fact is None or not self._joins else msgspec.json.encode(fact).decode()

    def _author(self, author: str) -> str:
        author = cut_name(author)
        if author and self._user_key is not None:
            return hmac.new(self._user_key, author.encode(), sha256).hexdigest()[:32]
        return author if self._names is None else self._names.mask_author(author)

    def _comment(self, comment: str, shared: Batch) -> str:
        if not comment or not self._comments:
            return ""
        return comment if self._masking is None else self._masking.mask_text(comment, shared)
