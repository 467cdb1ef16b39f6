"""Reads answers with people's labels of hallucinations in RAGTruth's format, as traces.

RAGTruth is by Niu et al., ACL 2024. The repository holds none of it: give the folder. Two layouts are read: the
authors' `response.jsonl` with `source_info.jsonl`, and a file for each part (`qa.jsonl`, `summary.jsonl`,
`data2txt.jsonl`) with a source and its responses on each line.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ragtide.evaluators.trace import Chunk, Trace, chunk_id

PARTS = ("qa", "summary", "data2txt")
_PASSAGE = re.compile(r"(?im)^passage \d+:")
_AT = datetime(2024, 8, 11, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class LabelledAnswer:
    """An answer with people's verdict. Answers to one source are not independent of each other."""

    part: str
    source: str
    trace: Trace
    hallucinated: bool

    @property
    def length(self) -> int:
        """Characters of the answer."""
        return len(self.trace.answer or "")


def read_answers(folder: Path) -> list[LabelledAnswer]:
    """Read all answers. Raises `FileNotFoundError` if the folder has neither layout."""
    if (folder / "response.jsonl").exists():
        sources = {str(one["source_id"]): one for one in _lines(folder / "source_info.jsonl")}
        return [
            _labelled(_part(sources[str(one["source_id"])]["task_type"]), sources[str(one["source_id"])], number, one)
            for number, one in enumerate(_lines(folder / "response.jsonl"))
        ]
    found = [
        _labelled(part, source, number, response)
        for part in PARTS
        if (folder / f"{part}.jsonl").exists()
        for source in _lines(folder / f"{part}.jsonl")
        for number, response in enumerate(source["responses"])
    ]
    if not found:
        raise FileNotFoundError(f"{folder} has no RAGTruth: response.jsonl and source_info.jsonl, or qa.jsonl")
    return found


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.strip():
                yield json.loads(line)


def _part(task: str) -> str:
    return {"QA": "qa", "Summary": "summary"}.get(task, "data2txt")


def _labelled(part: str, source: dict[str, Any], number: int, response: dict[str, Any]) -> LabelledAnswer:
    given = source.get("source_info", source["source"]) if "source_info" in source else source["source"]
    question, task = None, {"qa": "question_answering", "summary": "summarization"}.get(part, "data_to_text")
    if part == "qa":
        question, passages = given["question"], _PASSAGE.split(given["passages"])
        texts = [passage.strip() for passage in passages if passage.strip()]
    elif part == "summary":
        question, texts = given, [given]  # evaluators of summaries read the source as the question
    else:
        texts = [given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)]
    trace = Trace(
        trace_id=f"{part}-{source['source_id']}-{number}",
        time=_AT,
        app="ragtruth",
        question=question,
        answer=response["response"],
        contexts=tuple(Chunk(chunk_id(text), text) for text in texts),
        task=task,
    )
    return LabelledAnswer(part, f"{part}-{source['source_id']}", trace, bool(response["labels"]))
