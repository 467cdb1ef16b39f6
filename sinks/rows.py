"""One named tuple per table that the stream writes: column names and order are the table's (`migrations/`).

`run_id` is "live", "probe" (traces asked by probes) or a replay's name. Everything in a sorting key comes from the
record, never from the clock. All times are aware UTC.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

LIVE = "live"
PROBE = "probe"


class TraceRow(NamedTuple):
    """Table `traces`: the trace without texts of users."""

    run_id: str
    app: str
    environment: str
    time: datetime
    trace_id: str
    version: int
    session_id: str
    user_id: str
    task: str
    probe: str
    model: str  # served, else requested
    model_requested: str
    provider: str
    prompt_version: str
    latency_s: float | None
    first_token_s: float | None
    cost_usd: float | None
    input_tokens: int | None
    output_tokens: int | None
    error: str  # the error's type; its message is in trace_texts
    chunk_ids: Sequence[str]
    categories: Sequence[str]
    segments: Mapping[str, str]
    relationships: str  # JSON
    test_case: str  # JSON
    topic: str
    partition: int
    offset: int
    question_hash: str = ""  # of what was asked, whatever its case and spacing; never the text
    span_id: str = ""  # 16 hex digits
    is_deleted: int = 0


class TextRow(NamedTuple):
    """Table `trace_texts`: texts of users, in full or masked."""

    run_id: str
    app: str
    environment: str
    time: datetime
    trace_id: str
    version: int
    question: str | None
    answer: str | None
    chunk_ids: Sequence[str]
    chunks: Sequence[str]
    expected: Sequence[str]
    error_message: str
    attributes: str  # JSON
    rest: str = ""  # JSON: the trace without what the columns hold; empty where its texts are masked
    is_deleted: int = 0


class ScoreRow(NamedTuple):
    """Table `scores`: one row per trace and evaluator."""

    run_id: str
    app: str
    environment: str
    evaluator: str
    time: datetime
    trace_id: str
    version: int
    status: str  # scored | not_applicable | failed | sampled_out
    reason: str  # why it was not scored: a slug
    metrics: Mapping[str, float]
    categories: Mapping[str, str]
    parts: Mapping[str, float]
    evidence: str  # JSON list of evaluators.Evidence; points, never quotes
    findings: Sequence[str]  # slugs
    fingerprint: str
    weight: float
    model: str
    prompt_version: str
    segments: Mapping[str, str]
    is_deleted: int = 0


class ExplanationRow(NamedTuple):
    """Table `explanations`: what a judge wrote about a score, in full or masked."""

    run_id: str
    app: str
    environment: str
    evaluator: str
    time: datetime
    trace_id: str
    version: int  # that of the score
    explanation: str
    is_deleted: int = 0


class EmbeddingRow(NamedTuple):
    """Table `embeddings`: a question's vector, with numbers that Float32 holds exactly, and features of the answer."""

    run_id: str
    app: str
    environment: str
    time: datetime
    trace_id: str
    version: int
    model: str  # the encoder's revision
    vector: Sequence[float]
    topic: str = ""  # by the topic model of that version; empty: there was none
    topic_version: int = 0
    answer: Sequence[int] = ()  # its vector, the greatest of its numbers 127
    answer_claims: Sequence[str] = ()  # kind:hash
    is_deleted: int = 0


class DeadLetterRow(NamedTuple):
    """Table `dead_letters`: position and reason of a bad record; its content is in the topic only."""

    run_id: str
    topic: str
    partition: int
    offset: int
    time: datetime  # the broker's timestamp
    reason: str
    detail: str
    stage: str
    size: int
    sha256: str


class DirtyRow(NamedTuple):
    """Table `dirty_windows`: base windows whose rows changed. `done` = 1 clears exactly this mark."""

    run_id: str
    app: str
    environment: str
    lane: str
    start: datetime
    mark_id: str
    done: int = 0


class ProgressRow(NamedTuple):
    """Table `progress`: position of a lane's worker in a partition; also its heartbeat (server time)."""

    lane: str
    topic: str
    partition: int
    worker: str
    newest: datetime  # newest stored event time, never ahead of the broker's timestamp or the worker's clock
    offset: int  # next offset to read
    lag: int


@dataclass(slots=True)
class Block:
    """Rows that are stored together; `dirty` and `progress` are written after the rows that they cover."""

    traces: list[TraceRow] = field(default_factory=list)
    texts: list[TextRow] = field(default_factory=list)
    scores: list[ScoreRow] = field(default_factory=list)
    explanations: list[ExplanationRow] = field(default_factory=list)
    embeddings: list[EmbeddingRow] = field(default_factory=list)
    dead_letters: list[DeadLetterRow] = field(default_factory=list)
    dirty: list[DirtyRow] = field(default_factory=list)
    progress: list[ProgressRow] = field(default_factory=list)

    def __len__(self) -> int:
        """Number of data rows, without marks and progress."""
        scored = len(self.scores) + len(self.explanations) + len(self.embeddings)
        return len(self.traces) + len(self.texts) + scored + len(self.dead_letters)

    def extend(self, other: "Block") -> None:
        """Append every row of `other`."""
        self.traces += other.traces
        self.texts += other.texts
        self.scores += other.scores
        self.explanations += other.explanations
        self.embeddings += other.embeddings
        self.dead_letters += other.dead_letters
        self.dirty += other.dirty
        self.progress += other.progress
