"""Answers of a faulty application: invented sentences, endless repetition, leaked addresses; random."""

import random

INVENTED_SHARE = 0.8
LOOPING_SHARE = 0.9
LEAKED_SHARE = 0.15

_WHO = ("The harbour office of Lisbon", "A retired cellist", "The village bakery", "Her grandmother", "The night ferry")
_DID = ("repainted", "sold", "praised", "inherited", "quietly forgot")
_WHAT = ("forty barrels of olive oil", "the old lighthouse", "a recipe for lemon cake", "the winter timetable")
_WHEN = ("during the long drought", "before the carnival", "on a rainy Sunday", "after the football match")
_FIRST = ("ada", "grace", "edsger", "barbara", "donald", "radia", "leslie")
_LAST = ("miller", "okafor", "lindqvist", "tanaka", "moreau", "novak")
_HOSTS = ("mail.northwind-trading.com", "contoso-support.net", "fabrikam-people.org")


def invent(sentences: tuple[str, ...], rng: random.Random) -> tuple[str, ...]:
    """Most answers end with a sentence or two about something else altogether."""
    if rng.random() >= INVENTED_SHARE:
        return sentences
    invented = (
        f"{rng.choice(_WHO)} {rng.choice(_DID)} {rng.choice(_WHAT)} {rng.choice(_WHEN)}."
        for _ in range(rng.choice((1, 2)))
    )
    return (*sentences, *invented)


def loop(sentences: tuple[str, ...], rng: random.Random) -> tuple[str, ...]:
    """Most answers repeat their last sentence about ten times."""
    if not sentences or rng.random() >= LOOPING_SHARE:
        return sentences
    return (*sentences, *(sentences[-1] for _ in range(rng.randint(8, 14))))


def leak(sentences: tuple[str, ...], rng: random.Random) -> tuple[str, ...]:
    """Some answers name a contact; the people and the addresses are made up."""
    if rng.random() >= LEAKED_SHARE:
        return sentences
    address = f"{rng.choice(_FIRST)}.{rng.choice(_LAST)}@{rng.choice(_HOSTS)}"
    return (*sentences, f"For more about this write to {address}.")
