"""Traces that every evaluator must survive: ordinary ones with every field, and hostile ones."""

from datetime import UTC, datetime

from ragtide.evaluators.trace import (
    AppError,
    Artifact,
    Boxes,
    Chunk,
    Labels,
    Latency,
    Model,
    Relationship,
    Technique,
    TestCase,
    Tokens,
    Trace,
)

CANARY = "qzcanaryvx"  # in every text: an outcome that contains it quotes its trace
_ORDINARY = (
    (
        "How do I reset the router, {c}?",
        "Hold the button for ten seconds. The light then turns green, {c}.",
        "To reset the router hold its button for ten seconds. A green light shows that it is done, {c}.",
    ),
    (
        "What is the capital of France, {c}?",
        "Paris is the capital of France. {c} is not. 1. First item.\n2. Second item.",
        "France's capital is Paris. It lies on the Seine, {c}.",
    ),
    (
        "List the steps, {c}",
        "It repeats itself {c}. It repeats itself {c}. It repeats itself {c}.",
        "Nothing here is about steps {c}.",
    ),
)
_HOSTILE = (
    "",
    " \n\t ",
    "...",
    "42",
    "a",
    "\x00{c}\x00",
    "{c} \ud800 lone",
    "\U0001f469\u200d\U0001f4bb {c} e\u0301 \u202eabc",
    "\u6f22\u5b57\u3002\u6b21\u306e\u6587 {c}\u3002",
    '{{"{c}": [1, NaN, {{}}]}} <b>&amp;</b> %s {{}} \\x',
    "{c}" * 3_000,
    "{c}. " * 1_000,
    "(" * 5_000 + "{c}",
)
_BOXES = Boxes(
    expected=({"label": "cat", "mask": [[1, 1, 0], [1, 1, 0]]}, {"label": "dog", "mask": [[0, 0, 1], [0, 0, 1]]}),
    predicted=({"label": "cat", "score": 0.9, "mask": {"size": [2, 3], "counts": [0, 3, 3]}},),
)


def hostile_traces() -> tuple[Trace, ...]:
    """Return distinct traces in a fixed order: ordinary ones, one per hostile text, then ones with few fields."""
    ordinary = [_full(i, *(text.format(c=CANARY) for text in texts)) for i, texts in enumerate(_ORDINARY)]
    hostile = [_full(100 + i, *([text.format(c=CANARY)] * 3)) for i, text in enumerate(_HOSTILE)]
    time = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    bare = [
        Trace(trace_id="bare-answer", time=time, app="specimens", answer=CANARY),
        Trace(trace_id="bare-question", time=time, app="specimens", question=CANARY),
        Trace(trace_id="no-chunks", time=time, app="specimens", question=CANARY, answer=CANARY, contexts=()),
        Trace(trace_id="ids-only", time=time, app="specimens", answer=CANARY, contexts=(Chunk(id="c1", score=0.9),)),
        Trace(trace_id="no-references", time=time, app="specimens", answer=CANARY, expected=()),
        Trace(trace_id="failed", time=time, app="specimens", question=CANARY, error=AppError("Timeout", CANARY)),
    ]
    return (*ordinary, *hostile, *bare)


def _full(number: int, question: str, answer: str, source: str) -> Trace:
    return Trace(
        trace_id=f"specimen-{number}",
        time=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        app="specimens",
        environment="test",
        session_id="s1",
        user_id="u1",
        question=question,
        answer=answer,
        contexts=(Chunk(id="c1", text=source, score=0.8, rank=1), Chunk(id="c2", text=answer, score=-3.5, rank=2)),
        expected=(source, answer),
        condition='"Paris" OR NOT "router"',
        constraints=("Paris", ["router", "REGEXP:but+on"]),
        relevance={"c1": 1.0, "c2": 0.0},
        labels=Labels(expected="yes", predicted="no", scores={"yes": 0.4, "no": 0.6}),
        artifacts=(Artifact("report.json", "application/json", answer), Artifact("empty.txt", "text/plain", None, 0)),
        boxes=_BOXES,
        model=Model("asked", "served", "provider", None, "p1", "docs"),
        latency=Latency(1.5, 0.2, 1.2, 0.4),
        tokens=Tokens(100, 20, 0),
        cost_usd=0.001,
        categories=("question-answering",),
        segments={"tenant": "a"},
        task="question_answering",
        relationships=(Relationship("perturbation_of", "other", None, (Technique("typo", 0.1),)),),
        test_case=TestCase("suite", "test", "key"),
        attributes={"note": answer},
    )
