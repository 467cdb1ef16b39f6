"""Short texts are worked on once, long ones are not kept."""

from ragtide.evaluators.text.memo import LONGEST, MOST, memoize


def test_short_texts_are_remembered_and_long_ones_are_not() -> None:
    made: list[str] = []

    @memoize
    def upper(text: str) -> str:
        made.append(text)
        return text.upper()

    short, long = "x" * LONGEST, "y" * (LONGEST + 1)
    assert [upper(text) for text in (short, long, short, long)] == ["X" * 24, "Y" * 25, "X" * 24, "Y" * 25]
    assert made == [short, long, long]


def test_no_more_than_so_many_are_remembered() -> None:
    made: list[str] = []

    @memoize
    def kept(text: str) -> str:
        made.append(text)
        return text

    for number in range(MOST + 1):
        kept(str(number))
    kept(str(MOST))
    kept("0")  # the one not asked for longest
    assert made[MOST:] == [str(MOST), "0"]
