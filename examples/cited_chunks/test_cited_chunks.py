from pathlib import Path

from ragtide.evaluators import check_evaluator, check_golden, golden_traces

from cited_chunks import Params, cited_chunks

GOLDEN = Path(__file__).with_name("cited_chunks.golden.json")
BY_POSITION = Path(__file__).with_name("cited_chunks.by_position.golden.json")


def test_it_keeps_the_contract() -> None:
    check_evaluator(cited_chunks, golden_traces(GOLDEN))
    check_evaluator(cited_chunks, golden_traces(BY_POSITION), Params(by="position"))


def test_it_says_what_the_golden_files_say() -> None:
    check_golden(cited_chunks, GOLDEN)
    check_golden(cited_chunks, BY_POSITION, Params(by="position"))
