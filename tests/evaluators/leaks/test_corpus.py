"""What is found in texts that leak, and in texts that only look so. `python -m benchmarks.leakage` compares."""

from collections import Counter

import pytest

from ragtide.evaluators.leaks import PERSONAL, SECRETS, scanner
from ragtide.evaluators.leaks.detector import Detector
from ragtide.evaluators.leaks.folding import fold
from ragtide.evaluators.leaks.gate import Gate
from tests.evaluators.leaks.corpus import Example, negatives, positives

RECALL = PRECISION = 0.97
POSITIVES, NEGATIVES = positives(), negatives()
scan = scanner()


def place(example: Example) -> tuple[int, int]:
    start = example.text.index(example.value)
    return start, start + len(example.value)


def test_the_corpus_is_as_large_and_as_varied_as_it_must_be() -> None:
    assert len(POSITIVES) >= 400
    assert len(NEGATIVES) >= 400
    assert len({example.kind for example in POSITIVES}) >= 20
    assert all(example.text.count(example.value) == 1 for example in POSITIVES)
    assert len({example.text for example in (*POSITIVES, *NEGATIVES)}) > 900


def test_what_leaks_is_found_by_kind_and_place() -> None:
    missed = []
    for example in POSITIVES:
        start, end = place(example)
        if not any(hit.kind == example.kind and hit.start < end and start < hit.end for hit in scan(example.text).hits):
            missed.append(example)
    assert 1 - len(missed) / len(POSITIVES) >= RECALL, Counter(example.kind for example in missed)


def test_little_else_is_found() -> None:
    right, wrong = 0, []
    for example in (*POSITIVES, *NEGATIVES):
        start, end = place(example) if example.value else (0, 0)
        for hit in scan(example.text).hits:
            if hit.start < end and start < hit.end:
                right += 1
            else:
                wrong.append((hit.kind, example.text[hit.start : hit.end]))
    assert right / (right + len(wrong)) >= PRECISION, wrong


@pytest.mark.parametrize("family", [PERSONAL, SECRETS], ids=["personal", "secrets"])
def test_each_family_reaches_it_alone(family: tuple[str, ...]) -> None:
    """Each evaluator has one of them; the other's kinds do not count for it."""
    own = [example for example in POSITIVES if example.kind in family]
    flagged = [example for example in own if any(hit.kind in family for hit in scan(example.text).hits)]
    false = [example for example in NEGATIVES if any(hit.kind in family for hit in scan(example.text).hits)]
    assert len(flagged) / len(own) >= RECALL
    assert len(flagged) / (len(flagged) + len(false)) >= PRECISION


def detectors() -> tuple[Detector, ...]:
    from ragtide.evaluators.leaks import personal, secrets

    return (*secrets.DETECTORS, *personal.detectors(("US",)))


def test_the_gate_opens_for_every_detector_that_finds() -> None:
    every = detectors()
    gate = Gate(every)
    for example in (*POSITIVES, *NEGATIVES):
        shape = fold(example.text)
        opened = set(gate.open_for(shape))
        closed = [detector.kind for i, detector in enumerate(every) if i not in opened and list(detector.find(shape))]
        assert not closed, (closed, example.text)


def test_a_gate_with_little_memory_says_the_same() -> None:
    every = detectors()
    wide, narrow = Gate(every), Gate(every, memory=1 << 20)
    for example in POSITIVES:
        shape = fold(example.text)
        assert narrow.open_for(shape) == wide.open_for(shape)


def test_a_gate_that_ran_out_of_memory_opens_for_all() -> None:
    """RE2 answers then as for "no match", which no text is: see `_ALWAYS`."""
    import re2

    every = detectors()
    gate = Gate(every)
    for one in gate._sets:
        one.patterns = re2.Set.SearchSet()
        one.patterns.Add("never seen")
        one.patterns.Compile()
    assert gate.open_for(fold("nothing here")) == list(range(len(every)))


def test_whoever_asks_for_a_region_gets_the_same_scanner() -> None:
    """`Shared.once` knows what was made of a text by who made it."""
    assert scanner() is scanner(("US",)) is scanner(regions=["US", "US"])
    assert scanner(("DE",)) is not scanner(("US",))
