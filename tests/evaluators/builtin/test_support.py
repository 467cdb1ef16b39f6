"""How far contexts carry an answer: score, evidence, findings, and when it cannot be told."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtide.evaluators import Evaluator, check_evaluator
from ragtide.evaluators.builtin.support import Params, support
from ragtide.evaluators.builtin.support_embedding import support_embedding
from ragtide.evaluators.outcome import NotApplicable, Scored
from ragtide.evaluators.support.rarity import learn_frequencies, weight_by_length
from tests.evaluators.builtin.scoring import chunks, outcome, outcomes, scored, trace

CONTEXTS = chunks(
    "The Marlow bridge was opened in 1974. It is 1,200 metres long, and 30 % of its traffic is lorries.",
    "Cyclists are not allowed on the bridge at night. Repairs are paid by the county of Hadley.",
)


def kinds(answer: str) -> set[str]:
    return {finding.kind for finding in scored("support", answer=answer, contexts=CONTEXTS).findings}


@pytest.mark.parametrize(
    "answer",
    [
        "The Marlow bridge, opened in 1974, is 1.2 km long.",
        "The bridge is twelve hundred metres long.",
        "30 percent of the traffic on the bridge is lorries.",
        "At night cyclists are not allowed on the bridge.",
        "The county of Hadley pays repairs of the bridge [2].",
        "1. The bridge was opened in the 1970s.\n2. Repairs are paid by the county (passage 2).",
    ],
)
def test_what_the_contexts_carry(answer: str) -> None:
    given = scored("support", answer=answer, contexts=CONTEXTS)
    assert given.metrics["support"] >= 0.75
    assert not given.findings


@pytest.mark.parametrize(
    ("answer", "finding", "wrong"),
    [
        ("The Marlow bridge was opened in 1975.", "unsupported_number", "1975"),
        ("The Marlow bridge is 1,300 metres long.", "unsupported_number", "1,300 metres"),
        ("The Marlow bridge is 1,200 miles long.", "unsupported_number", "1,200 miles"),
        ("It is known that the Pemberton bridge was opened in 1974.", "unsupported_name", "Pemberton"),
        (
            "Cyclists are allowed on the bridge at night.",
            "contradicted_negation",
            "Cyclists are allowed on the bridge at night.",
        ),
    ],
)
def test_findings_point_at_what_is_wrong(answer: str, finding: str, wrong: str) -> None:
    given = scored("support", answer=answer, contexts=CONTEXTS)
    assert finding in {one.kind for one in given.findings}
    assert [answer[place.start : place.end] for place in given.evidence if place.kind == finding] == [wrong]


def test_a_number_beside_another_one_contradicts() -> None:
    assert kinds("The bridge is 1,300 metres long.") == {"unsupported_number", "contradicted_number"}
    assert kinds("The bridge holds 9,000 tonnes.") == {"unsupported_number"}


def test_a_record_is_contradicted() -> None:
    record = chunks('{"name": "Cafe Lido", "WiFi": "no", "hours": {"Monday": "9:0-17:0"}}')
    answer = "Cafe Lido offers free Wi-Fi."
    given = scored("support", answer=answer, contexts=record)
    assert [one.kind for one in given.findings] == ["contradicted_record"]
    other = scored("support", answer="Cafe Lido has no Wi-Fi.", contexts=record)
    assert other.metrics["support"] > given.metrics["support"]


def test_evidence_is_the_weakest_sentence_and_its_nearest_chunk() -> None:
    answer = "The bridge was opened in 1974. Repairs of the bridge require gigantic underwater cranes."
    given = scored("support", answer=answer, contexts=CONTEXTS)
    weak, near = given.evidence[:2]
    assert answer[weak.start : weak.end] == "Repairs of the bridge require gigantic underwater cranes."
    assert (weak.kind, near.kind, near.chunk_id) == ("least_supported", "nearest", "c2")
    assert (near.start, near.end) == (0, len(CONTEXTS[1].text or ""))
    assert weak.score == given.metrics["weakest_sentence"]


def test_the_question_carries_words() -> None:
    answer = "A tollbooth guard sits at the bridge."
    asked = scored("support", answer=answer, contexts=CONTEXTS, question="Where does the tollbooth guard sit?")
    assert asked.metrics["support"] > scored("support", answer=answer, contexts=CONTEXTS).metrics["support"]


def test_the_polarity_of_the_question_is_no_claim() -> None:
    question = "Is it true that cyclists are allowed on the bridge at night?"
    answer = "Cyclists are not allowed on the bridge at night."
    given = scored("support", answer=answer, contexts=CONTEXTS, question=question)
    assert not given.findings


@pytest.mark.parametrize(
    "text",
    [
        "NoReturn in typing: a special type of functions that never return.",
        "Not every lorry pays: some are exempt, but none are free of inspection.",
    ],
)
def test_a_copied_sentence_reverses_nothing(text: str) -> None:
    assert not scored("support", answer=text, contexts=chunks(text)).findings


def test_a_summary_without_chunks_is_compared_with_the_text_that_it_sums_up() -> None:
    text = CONTEXTS[0].text
    given = scored("support", answer="The bridge was opened in 1974.", question=text, task="summarization")
    assert given.metrics["support"] >= 0.75
    assert outcome("support", answer="It was opened.", question=text) == NotApplicable("missing_contexts")


@pytest.mark.parametrize(
    ("answer", "contexts", "reason"),
    [
        ("It is red.", None, "missing_contexts"),
        ("It is red.", chunks(None), "missing_contexts"),
        ("It is red.", (), "empty_contexts"),
        ("It is red.", chunks("", "  "), "empty_contexts"),
        ("", CONTEXTS, "too_short"),
        ("It is what it is.", CONTEXTS, "too_short"),
        ("Мост был открыт в этом городе, и он очень длинный для своего времени.", CONTEXTS, "other_language"),
        (
            "Die Brücke wurde in dem Jahr eröffnet, und sie ist sehr lang, aber nachts ist sie nicht für Räder da.",
            chunks(f"{CONTEXTS[0].text} {CONTEXTS[1].text}"),
            "other_language",
        ),
        ("Talossa oli ikkuna. " * 2_000, CONTEXTS, "too_long"),
    ],
)
def test_when_it_cannot_be_told(answer: str, contexts: object, reason: str) -> None:
    assert outcome("support", answer=answer, contexts=contexts) == NotApplicable(reason)


def test_a_language_without_a_list_is_compared_by_its_words() -> None:
    text = "Varasto avattiin kaupungissa keväällä. Siellä säilytetään koko alueen tavaroita."
    good = scored("support", answer="Varastossa säilytetään alueen tavaroita.", contexts=chunks(text))
    bad = scored("support", answer="Lentokone laskeutui myrskyssä saarelle.", contexts=chunks(text))
    assert good.metrics["support"] > bad.metrics["support"]
    assert good.categories == {"answer_language": "unknown"}


def test_learned_frequencies(tmp_path: Path) -> None:
    path = tmp_path / "frequencies.json"
    table = learn_frequencies([f"The gadget number {i} is blue. {word}" for i, word in enumerate("abcdefgh")])
    table.write(path)
    params = Params.model_validate({"frequencies": {"shop": str(path)}})
    assert params.frequencies == {"shop": table}
    assert params.model_dump() == {"frequencies": {"shop": table.version}}  # what the fingerprint has
    assert params.weight_in("shop")("gadget") == table.weight("gadget")
    assert params.weight_in("other")("gadget") == weight_by_length("gadget")
    assert Params.model_validate({"frequencies": {"*": table}}).weight_in("other")("gadget") == table.weight("gadget")
    assert table.weight("gadget") < table.weight("zebra")
    given = outcomes(
        "support", [trace(answer="The gadget is blue.", contexts=CONTEXTS)], {"frequencies": {"*": str(path)}}
    )
    assert isinstance(given[0], Scored)


def test_a_table_that_was_changed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "frequencies.json"
    learn_frequencies(["A red car."]).write(path)
    path.write_text(path.read_text().replace('"car": 1', '"car": 9'))
    with pytest.raises(ValueError, match="learn it again"):
        Params.model_validate({"frequencies": {"*": str(path)}})


@given(st.text(max_size=400), st.text(max_size=400), st.none() | st.text(max_size=100))
def test_any_texts(answer: str, context: str, question: str | None) -> None:
    given = outcome("support", answer=answer, contexts=chunks(context), question=question)
    assert isinstance(given, Scored | NotApplicable)
    if isinstance(given, Scored):
        assert all(place.end <= len(answer) for place in given.evidence if place.field == "answer")


@given(st.integers(10, 9_999), st.sampled_from(["Marlow", "Hadley", "Novak"]))
def test_a_copied_sentence_is_supported(number: int, name: str) -> None:
    text = f"In the winter the harbour of {name} handled {number} containers each week."
    given = scored("support", answer=text, contexts=chunks(text))
    assert given.metrics["support"] > 0.9
    assert given.metrics["weakest_sentence"] == 1.0


def test_vectors_count_what_is_said_in_other_words() -> None:
    given = scored("support_embedding", answer="The bridge was opened in 1974.", contexts=CONTEXTS)
    assert set(given.metrics) == {"support", "weakest_sentence"}
    assert outcome("support_embedding", answer="", contexts=CONTEXTS) == NotApplicable("too_short")


@pytest.mark.parametrize("evaluator", [support, support_embedding], ids=lambda one: one.id)
def test_contract(evaluator: Evaluator) -> None:
    check_evaluator(evaluator, [trace(answer="The bridge was opened in 1974.", contexts=CONTEXTS)])
