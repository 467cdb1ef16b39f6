from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.outcome import NotApplicable
from ragtide.evaluators.text import synonyms
from tests.evaluators.builtin.pairs import PAIRS
from tests.evaluators.builtin.scoring import outcome, scored

# NLTK 3.10.4, NLTKWordTokenizer, without WordNet: alpha, beta, gamma and the value of each pair.
NLTK: dict[tuple[float, float, float], dict[str, float]] = {
    (0.9, 3.0, 0.5): {
        "paraphrase": 0.7454289732770746,
        "identical": 0.9985422740524781,
        "disjoint": 0.07246376811594203,
        "short": 0.33482142857142855,
        "sentences": 0.6964028776978417,
        "unicode": 0.0,
        "cjk": 0.5,
        "empty": 0.0,
        "word": 0.5,
        "case": 0.8522727272727273,
    },
    (0.5, 3.0, 0.5): {
        "paraphrase": 0.7851851851851851,
        "identical": 0.9985422740524781,
        "disjoint": 0.07692307692307691,
        "short": 0.46875,
        "sentences": 0.717037037037037,
        "unicode": 0.0,
        "cjk": 0.5,
        "empty": 0.0,
        "word": 0.5,
        "case": 0.625,
    },
    (0.9, 1.0, 0.5): {
        "paraphrase": 0.6329113924050633,
        "identical": 0.9285714285714286,
        "disjoint": 0.07246376811594203,
        "short": 0.2678571428571428,
        "sentences": 0.5755395683453237,
        "unicode": 0.0,
        "cjk": 0.5,
        "empty": 0.0,
        "word": 0.5,
        "case": 0.6818181818181818,
    },
    (0.9, 3.0, 0.2): {
        "paraphrase": 0.7538677918424754,
        "identical": 0.9994169096209913,
        "disjoint": 0.11594202898550726,
        "short": 0.34821428571428564,
        "sentences": 0.7102158273381295,
        "unicode": 0.0,
        "cjk": 0.8,
        "empty": 0.0,
        "word": 0.8,
        "case": 0.8863636363636364,
    },
    (0.85, 0.2, 0.6): {
        "paraphrase": 0.3961949525685566,
        "identical": 0.5934334519597114,
        "disjoint": 0.058394160583941604,
        "short": 0.17691468963789833,
        "sentences": 0.36134879101723916,
        "unicode": 0.0,
        "cjk": 0.4,
        "empty": 0.0,
        "word": 0.4,
        "case": 0.4153649234976744,
    },
}


def meteor(answer: str, *expected: str, **params: float) -> float:
    return scored("meteor", params, answer=answer, expected=expected).metrics["meteor"]


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("weights", NLTK)
def test_equals_nltk_without_wordnet(weights: tuple[float, float, float], name: str) -> None:
    alpha, beta, gamma = weights
    given = meteor(PAIRS[name].answer, PAIRS[name].reference, alpha=alpha, beta=beta, gamma=gamma)
    assert given == pytest.approx(NLTK[weights][name], abs=1e-9)


class NoWordNet:
    """What NLTK asks of a WordNet, with no word in it."""

    def synsets(self, word: str) -> list[Any]:
        return []


WORDS = st.lists(
    st.sampled_from(
        [
            *("a", "b", "The", "the", "run", "runs", "running", "flies", "fly", "it's", "don't", "x.", "Été", ","),
            *('"', '."', '".', '"the', "\n", '\n"', "\n```\n", "``a``", "'the", "'run'", "''", "(", ")", ". )", "“a”"),
        ]
    ),
    max_size=25,
).flatmap(lambda words: st.sampled_from([" ".join(words), "".join(words)]))


@settings(deadline=None)
@given(WORDS, st.lists(WORDS.filter(str.strip), min_size=1, max_size=3))
def test_equals_nltk_on_anything(answer: str, references: list[str]) -> None:
    from nltk.tokenize.destructive import NLTKWordTokenizer
    from nltk.translate.meteor_score import meteor_score

    tokens = NLTKWordTokenizer().tokenize
    theirs = meteor_score([tokens(text) for text in references], tokens(answer), wordnet=NoWordNet())
    assert meteor(answer, *references) == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize(
    ("answer", "reference", "nltk"),
    [
        ('It is called "agile."', 'It is called "agile"', 0.9653916211293262),
        ('He said "the cat sat on the mat."', 'He said "the cat sat on the mat".', 0.9898572501878287),
        ('The sign reads:\n"No entry" at night', 'The sign reads: "No entry" at night', 0.8950617283950617),
    ],
)
def test_quotation_marks_are_told_apart_as_nltk_does(answer: str, reference: str, nltk: float) -> None:
    assert meteor(answer, reference) == pytest.approx(nltk, abs=1e-12)


def test_hand_worked() -> None:
    # the, cat and mat. are equal, "sitting" has the stem of "sits": 4 of 5 and of 4 tokens, in two pieces.
    given = meteor("the cat sits here mat", "the cat sitting mat")
    precision, recall = 4 / 5, 4 / 4
    mean = precision * recall / (0.9 * precision + 0.1 * recall)
    assert given == pytest.approx((1 - 0.5 * (2 / 4) ** 3) * mean)


def test_the_best_reference_counts() -> None:
    assert meteor("the cat sat", "dogs bark", "the cat sat") == meteor("the cat sat", "the cat sat") > 0.9


def test_the_result_says_that_synonyms_were_not_matched() -> None:
    assert scored("meteor", answer="a", expected=("a",)).categories == {"synonyms": "none"}


SENSES = {
    "n": [["car", "automobile"], ["car", "railcar"], ["physician", "doctor"]],
    "v": [["buy", "purchase"], ["get"]],
}
PARTS_OF_SPEECH = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}


@pytest.fixture
def small_wordnet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A WordNet of five senses, in the format of the real one, where NLTK looks for it."""
    from nltk.corpus import LazyCorpusLoader, WordNetCorpusReader

    folder = tmp_path / "corpora" / "wordnet"
    folder.mkdir(parents=True)
    for name, text in (("cntlist.rev", ""), ("index.sense", ""), ("lexnames", "00 all 0\n")):
        (folder / name).write_text(text)
    for letter, name in PARTS_OF_SPEECH.items():
        data = "  1 WordNet 3.0 Copyright\n"
        offsets = defaultdict(list)
        for words in SENSES.get(letter, []):
            for word in words:
                offsets[word].append(f"{len(data):08d}")
            frames = " 00" if letter == "v" else ""
            listed = " ".join(f"{word} 0" for word in words)
            data += f"{len(data):08d} 00 {letter} {len(words):02x} {listed} 000{frames} | a sense\n"
        index = [f"{word} {letter} {len(at)} 0 {len(at)} 0 {' '.join(at)}\n" for word, at in sorted(offsets.items())]
        (folder / f"data.{name}").write_text(data)
        (folder / f"index.{name}").write_text("".join(index))
        (folder / f"{name}.exc").write_text("bought buy\n" if name == "verb" else "")
    monkeypatch.setattr("nltk.data.path", [str(tmp_path)])
    monkeypatch.setattr("nltk.corpus.wordnet", LazyCorpusLoader("wordnet", WordNetCorpusReader, object()))
    forget()
    yield
    forget()


def forget() -> None:
    for remembered in (synonyms._look_up, synonyms._wordnet):
        remembered.cache_clear()


TOLD = st.lists(
    st.sampled_from(["car", "cars", "automobile", "railcar", "doctor", "physician", "buy", "bought", "purchase", "a"]),
    min_size=1,
    max_size=15,
).map(" ".join)


@pytest.mark.usefixtures("small_wordnet")
def test_equals_nltk_with_wordnet() -> None:
    from nltk.corpus import wordnet
    from nltk.translate.meteor_score import single_meteor_score

    @settings(deadline=None)
    @given(TOLD, TOLD)
    @example("a doctor bought cars", "a physician purchase automobile")
    def equal(answer: str, reference: str) -> None:
        theirs = single_meteor_score(reference.split(), answer.split(), wordnet=wordnet)
        given = scored("meteor", {"synonyms": True}, answer=answer, expected=(reference,))
        assert given.metrics["meteor"] == pytest.approx(theirs, abs=1e-12)
        assert given.categories == {"synonyms": "wordnet"}

    equal()
    too_many = "x " * 20_001
    assert outcome("meteor", {"synonyms": True}, answer=too_many, expected=("x",)) == NotApplicable("too_long")
    with_them = scored("meteor", {"synonyms": True}, answer="a doctor", expected=("a physician",)).metrics["meteor"]
    assert with_them == 1 - 0.5 * (1 / 2) ** 3  # both tokens, in one piece
    assert meteor("a doctor", "a physician") == 0.5 * 0.5  # one of two tokens


def test_synonyms_without_a_wordnet_end_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from nltk.corpus import LazyCorpusLoader, WordNetCorpusReader

    monkeypatch.setattr("nltk.data.path", [])
    monkeypatch.setattr("nltk.corpus.wordnet", LazyCorpusLoader("wordnet", WordNetCorpusReader, None))
    forget()
    with pytest.raises(ConfigError, match=r"meteor\.synonyms.*no WordNet.*nltk\.downloader wordnet"):
        outcome("meteor", {"synonyms": True}, answer="a", expected=("a",))


@pytest.mark.parametrize(("expected", "reason"), [((), "empty_expected"), ((" ",), "reference_without_words")])
def test_without_a_reference_there_is_no_score(expected: tuple[str, ...], reason: str) -> None:
    assert outcome("meteor", answer="a", expected=expected) == NotApplicable(reason)
