"""The lines of a batch's files: one call, or what became of it."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from ragtide.stream.judge.connection import Miss, rejected
from ragtide.stream.judge.protocol import Completion, decode_answer, safe_code

CANCELLED = Miss("judge_unavailable", "the batch was cancelled before this call")
_NOT_DONE = {
    "batch_expired": Miss("judge_timeout", "the batch expired before this call"),
    "batch_cancelled": CANCELLED,
}


class _Response(msgspec.Struct, frozen=True):
    status_code: int
    body: msgspec.Raw = msgspec.Raw(b"null")


class _LineError(msgspec.Struct, frozen=True):
    code: str | int | None = None


class _Line(msgspec.Struct, frozen=True):
    custom_id: str
    response: _Response | None = None
    error: _LineError | None = None


def call_id(url: str, body: bytes, vote: int) -> str:
    """Return the id of a call: a hash of all that decides its reply, so that equal calls are found again."""
    return hashlib.sha256(b"\0".join((url.encode(), str(vote).encode(), body))).hexdigest()


def encode_line(id: str, path: str, body: bytes) -> bytes:
    """Return the line of a call."""
    line = {"custom_id": id, "method": "POST", "url": path, "body": msgspec.Raw(body)}
    return msgspec.json.encode(line) + b"\n"


@dataclass(slots=True)
class BatchResults:
    """What the files of a batch say of its calls. `sizes`: bytes of each call by id; lines about others are ignored.

    Of several lines about a call the first with a reply counts, else the first. `fault`: why not all could be read.
    """

    sizes: Mapping[str, int]
    answers: dict[str, Completion | Miss] = field(default_factory=dict)
    unreadable: int = 0
    unknown: int = 0
    repeated: int = 0
    fault: Miss | None = None

    def add(self, line: bytes) -> None:
        """Read a line."""
        if not line.strip():
            return
        try:
            read = msgspec.json.decode(line, type=_Line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self.unreadable += 1
            return
        if read.custom_id not in self.sizes:
            self.unknown += 1
            return
        before = self.answers.get(read.custom_id)
        if before is not None:
            self.repeated += 1
        if before is None or isinstance(before, Miss):
            answer = _answer(read, self.sizes[read.custom_id])
            if before is None or isinstance(answer, Completion):
                self.answers[read.custom_id] = answer

    def merge(self, other: "BatchResults") -> None:
        """Add the lines of another file."""
        for id, answer in other.answers.items():
            before = self.answers.get(id)
            self.repeated += before is not None
            if before is None or (isinstance(before, Miss) and isinstance(answer, Completion)):
                self.answers[id] = answer
        self.unreadable += other.unreadable
        self.unknown += other.unknown
        self.repeated += other.repeated

    def ignored(self) -> str:
        """Say how many lines were ignored, and why; "" for none."""
        counts = {"cannot be read": self.unreadable, "are about other calls": self.unknown, "repeat": self.repeated}
        return ", ".join(f"{number} that {why}" for why, number in counts.items() if number)


def _answer(line: _Line, sent_bytes: int) -> Completion | Miss:
    if line.response is None:
        code = safe_code(line.error.code) if line.error else ""
        shown = f" ({code})" if code else ""
        return _NOT_DONE.get(code) or Miss("judge_rejected", f"the call was refused{shown}")
    status, body = line.response.status_code, bytes(line.response.body)
    if not 200 <= status < 300:
        return rejected(status, {}, body)
    why = "the answer is not a chat completion"
    return decode_answer(body, sent_bytes) or Miss("judge_unavailable", why, status, lost=True)
