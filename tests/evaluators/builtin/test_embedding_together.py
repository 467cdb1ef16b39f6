"""All embedding evaluators over one micro-batch: one encoder call, and what each says for itself, text by text."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.prose_traces import prose_traces
from ragtide.evaluators.checks import CountingEncoder
from ragtide.evaluators.encoder import Encoder, load_encoder
from ragtide.evaluators.encoder.hashing import HashingEncoder
from ragtide.evaluators.encoder.model import find
from ragtide.evaluators.outcome import NotApplicable, Scored
from ragtide.evaluators.plan import prepare
from ragtide.evaluators.registry import load
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.run import run_all
from ragtide.evaluators.settings import PACKAGED_MODEL, EncoderSettings, EvaluatorSettings
from ragtide.evaluators.trace import Trace
from tests.evaluators.builtin.golden import builtin
from tests.evaluators.builtin.naive_embedding import Encode, naive
from tests.evaluators.builtin.scoring import chunks, trace

EMBEDDING = tuple(id for id, evaluator in builtin().items() if evaluator.method == "embedding")
TOLERANCE = 1e-4


def check_together(traces: Sequence[Trace], encoder: Encoder, encode: Encode) -> int:
    """How many scores were compared."""
    counting = CountingEncoder(encoder)
    plan = prepare(load(), EvaluatorSettings(enabled=EMBEDDING), None, counting)
    given = run_all(plan.prepared, traces, Resources(counting).batch())
    assert counting.calls <= 1
    alone = naive(encode)
    compared = 0
    for prepared, column in zip(plan.prepared, given, strict=True):
        for of, outcome in zip(traces, column, strict=True):
            expected = alone[prepared.evaluator.id](of)
            if expected is None:
                assert isinstance(outcome, NotApplicable), (prepared.evaluator.id, outcome)
                continue
            assert isinstance(outcome, Scored), (prepared.evaluator.id, outcome)
            assert outcome.metrics == pytest.approx(expected, abs=TOLERANCE), prepared.evaluator.id
            compared += 1
    return compared


def test_every_embedding_evaluator_has_a_naive_form() -> None:
    assert sorted(EMBEDDING) == sorted(naive(HashingEncoder().encode))


TEXTS = st.lists(
    st.sampled_from(
        [
            "The door is red.",
            "Is the door far away?",
            "The red door is far away.",
            "42",
            "1. Open the door.\n2. Wait.\n",
            "- Wait.\n- Close the door.\n- Open the door.\n",
            "First open the door, then wait.",
            "\n\n",
            "\ud800 lone",
        ]
    ),
    max_size=4,
).map(" ".join)
TRACES = st.fixed_dictionaries(
    {"answer": TEXTS, "question": TEXTS, "contexts": st.lists(TEXTS, max_size=4).map(lambda texts: chunks(*texts))},
    optional={
        "expected": st.lists(TEXTS, max_size=3).map(tuple),
        "relevance": st.dictionaries(st.sampled_from(["c1", "c2", "c3", "z"]), st.sampled_from([0.0, 1.0, 3.0])),
    },
)


@settings(deadline=None)
@given(st.lists(TRACES, min_size=1, max_size=4))
def test_one_call_says_what_each_evaluator_says_for_itself(fields: list[dict[str, Any]]) -> None:
    encoder = HashingEncoder()
    check_together([trace(**each) for each in fields], encoder, encoder.encode)


@pytest.mark.onnx
@pytest.mark.models
def test_one_call_says_what_sentence_transformers_says_text_by_text() -> None:
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(1)  # as the encoder does
    packaged = EncoderSettings(model=PACKAGED_MODEL, backend="onnx")
    model = SentenceTransformer(str(find(packaged).folder), device="cpu", local_files_only=True)
    known: dict[str, Any] = {}  # each text is encoded alone, and once: its vector does not depend on its company

    def encode(texts: list[str]) -> Any:
        for text in texts:
            if text not in known:
                known[text] = model.encode(text, show_progress_bar=False)
        return np.array([known[text] for text in texts])

    # Only the first has lists of steps.
    assert check_together(prose_traces(2), load_encoder(packaged), encode) == 2 * len(EMBEDDING) - 1
