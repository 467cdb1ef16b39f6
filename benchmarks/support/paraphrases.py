"""Faithful paraphrases, and the same with one number, name, unit or negation changed, in nine languages.

Made from the templates of `paraphrases.toml` with a fixed seed: 200 pairs, so that each changed answer has its
faithful twin with the same context.
"""

import random
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

CHANGES = ("number", "name", "unit", "negation")
PER_TEMPLATE = 8
SEED = 20
_LARGE = (1_200, 2_500, 3_400, 4_800, 12_000, 45_000, 150_000, 260_000)
_SMALL = (12, 15, 18, 24, 36, 45, 64, 75)
_SPELLED = {12: "twelve", 15: "fifteen", 18: "eighteen", 24: "twenty-four", 36: "thirty-six", 45: "forty-five"}


@dataclass(frozen=True, slots=True)
class Paraphrase:
    """An answer, its context, and the change that was made: None if it says what the context says."""

    language: str
    context: str
    answer: str
    change: str | None


@lru_cache(maxsize=1)
def paraphrases() -> tuple[Paraphrase, ...]:
    """Return the pairs: each faithful answer, then the changed one."""
    read = tomllib.loads((Path(__file__).parent / "paraphrases.toml").read_text("utf-8"))
    chance = random.Random(SEED)
    found: list[Paraphrase] = []
    for template in read["templates"]:
        language = template["language"]
        names, units = read["names"][language], read["units"][language]
        for i in range(PER_TEMPLATE):
            change = CHANGES[i % len(CHANGES)]
            number = (_LARGE if i % 2 else _SMALL)[chance.randrange(8)]
            unit, other_unit = units[chance.randrange(len(units))]
            name, other_name = chance.sample(names, 2)
            year = str(chance.randint(1961, 2024))
            slots = {"n": _grouped(number, language), "m": _other_notation(number, language, i), "y": year}
            slots |= {"name": name, "unit": unit}
            context, faithful = template["context"].format(**slots), template["faithful"].format(**slots)
            found.append(Paraphrase(language, context, faithful, None))
            if change == "number":
                if i < len(CHANGES):
                    slots["m"] = _other_notation(_another(number, chance), language, i)
                else:
                    slots["y"] = str(int(year) + chance.choice((-7, -4, -2, 3, 6, 9)))
            elif change == "name":
                slots["name"] = other_name
            elif change == "unit":
                slots["unit"] = other_unit
            changed = template["flipped" if change == "negation" else "faithful"].format(**slots)
            found.append(Paraphrase(language, context, changed, change))
    return tuple(found)


def _another(number: int, chance: random.Random) -> int:
    return chance.choice([other for other in (_SMALL if number < 100 else _LARGE) if other != number])


def _grouped(number: int, language: str) -> str:
    mark = {"en": ",", "ja": ",", "fr": "\u202f", "ru": "\u00a0"}.get(language, ".")
    return f"{number:,}".replace(",", mark)


def _other_notation(number: int, language: str, i: int) -> str:
    """Write the number otherwise in half of the answers: 1.2k, twelve, or without separators."""
    if i % 4 < 2:
        return _grouped(number, language)
    if language == "en":
        return _SPELLED.get(number, f"{number / 1_000:g}k" if number >= 1_000 else str(number))
    return str(number)
