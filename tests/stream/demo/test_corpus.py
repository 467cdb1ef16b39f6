import re
from collections import Counter
from pathlib import Path

import pytest

from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.text import sentences
from ragtide.stream.demo import corpus


def split(text: str) -> list[str]:
    return [sentence.text for sentence in sentences.split(text)]


@pytest.fixture(scope="module")
def passages() -> tuple[corpus.Passage, ...]:
    return corpus.read(split)


def test_the_standard_library_gives_a_small_corpus(passages: tuple[corpus.Passage, ...]) -> None:
    assert 120 <= len(passages) <= 260
    assert len({passage.id for passage in passages}) == len(passages)
    assert max(Counter(passage.module for passage in passages).values()) <= corpus.PASSAGES_PER_MODULE
    assert {"textwrap.dedent", "shutil.move"} <= {passage.id for passage in passages}


def test_reading_twice_gives_the_same(passages: tuple[corpus.Passage, ...]) -> None:
    assert corpus.read(split) == passages


def test_a_passage_is_read_as_the_sentences_it_was_made_of(passages: tuple[corpus.Passage, ...]) -> None:
    assert [passage.id for passage in passages if tuple(split(passage.text)) != passage.sentences] == []


def test_the_first_sentence_says_what_it_is_about(passages: tuple[corpus.Passage, ...]) -> None:
    assert all(passage.sentences[0].startswith(f"{passage.subject}: ") for passage in passages)
    dedent = next(passage for passage in passages if passage.id == "textwrap.dedent")
    assert dedent.purpose == "Remove any common leading whitespace from every line in text"


def test_nothing_in_it_looks_like_an_address_or_a_number_of_a_person(passages: tuple[corpus.Passage, ...]) -> None:
    for passage in passages:
        assert "@" not in passage.text
        assert not re.search(r"\d{5,}|\d+\.\d+\.\d+", passage.text), passage.id


TELLING = {
    "email": "Send what was found to jane@example in one message.",
    "link": "Follow the link ftp://host to read more about lines.",
    "site": "Everything about lines is written at www.example today.",
    "mailto": "Begin the address with mailto and write one message.",
    "telephone": "Call the operator at 555 0123 before anything is removed.",
    "four": "Bind the socket to the address 1.2.3 before it is used.",
    "six": "Bind the socket to the address fe80:1:2:3:4:5:6:7 before it is used.",
}


def test_a_docstring_with_an_address_or_a_number_of_a_person_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docstrings = {"clean": "Return every line of the text without its spaces.", **TELLING}
    source = "".join(f'def {name}():\n    """{text}"""\n' for name, text in docstrings.items())
    (tmp_path / "telling_docstrings.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    found = corpus.read(split, modules=("telling_docstrings",))
    assert [passage.id for passage in found] == ["telling_docstrings.clean"]


def test_without_sources_it_says_so() -> None:
    with pytest.raises(ConfigError, match="without sources"):
        corpus.read(split, modules=("builtins", "no_such_module"))
