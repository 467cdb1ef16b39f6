"""Names are read in time that grows as the text does, whatever it is made of."""

from functools import partial
from itertools import chain

import pytest

from ragtide.evaluators.support.names import names_of
from tests.infra.growth import growth_fault

PARTS = [
    "国",
    "王",
    "ア",
    "·国国",
    "『国",
    "株式会社",
    "国さん",
    "é",
    "É",
    "A",
    "Anna ",
    "Dr. ",
    "Frau Dr. Anna ",
    " A",
    "-A",
    "Ä-",
]


@pytest.mark.parametrize("code", ["de", "ja", "zh", "en", "unknown"])
def test_names_take_linear_time(code: str) -> None:
    for part in chain(*PARTS):
        small, large = (partial(_names, part * number, code) for number in (5_000, 40_000))
        assert growth_fault(small, large, 8) is None, part


def _names(text: str, code: str) -> list[tuple[int, str]]:
    return list(names_of(text, code))
