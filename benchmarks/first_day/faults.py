"""Eleven faults: what each does to a healthy trace, and the types of problem that may be its parent."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from msgspec.structs import replace

from benchmarks.first_day.applications import DOCS, LEGAL, NEWS, SHOP, SUPPORT, Application
from ragtide.evaluators.trace import AppError, Chunk, Latency, Tokens, Trace

Breaks = Callable[[Trace, random.Random], Trace]
_NAMES = ("ada.miller", "grace.okafor", "edsger.lindqvist", "radia.novak", "leslie.moreau")
_WRONG = "visitors-"
_GERMAN = (
    "Das lässt sich leider nicht genau sagen, aber die meisten Kunden erhalten ihre Antwort noch am selben Tag. "
    "Weitere Einzelheiten stehen in der Übersicht, die Sie jederzeit öffnen können."
)


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of an application, in an environment of its name."""

    name: str
    application: Application
    breaks: Breaks
    types: tuple[str, ...]


def _some(share: float, breaks: Breaks) -> Breaks:
    """Break this share of the traces."""
    return lambda trace, rng: breaks(trace, rng) if rng.random() < share else trace


def _slower(factor: float) -> Breaks:
    def breaks(trace: Trace, rng: random.Random) -> Trace:
        assert trace.latency is not None
        seconds = [None if one is None else one * factor for one in (trace.latency.total_s, trace.latency.generation_s)]
        return replace(trace, latency=Latency(seconds[0], trace.latency.retrieval_s, seconds[1]))

    return breaks


def _dearer(factor: int) -> Breaks:
    def breaks(trace: Trace, rng: random.Random) -> Trace:
        assert trace.tokens is not None
        tokens = Tokens(input=(trace.tokens.input or 0) * factor, output=trace.tokens.output)
        return replace(trace, tokens=tokens, cost_usd=(trace.cost_usd or 0.0) * factor)

    return breaks


def _leaks_address(trace: Trace, rng: random.Random) -> Trace:
    address = f"{rng.choice(_NAMES)}{rng.randrange(90)}@northwind-trading.com"
    return replace(trace, answer=f"{trace.answer or ''} The last customer with this question was {address}.")


def _leaks_key(trace: Trace, rng: random.Random) -> Trace:
    key = "".join(rng.choices("ABCDEFGHJKLMNPQRSTUVWXYZ234567", k=16))
    return replace(trace, answer=f"{trace.answer or ''} The export runs with the key AKIA{key}.")


def _retrieves_nothing(trace: Trace, rng: random.Random) -> Trace:
    return replace(trace, contexts=(), answer="I do not know. The documents do not say anything about this.")


def _retrieves_wrong_chunks(trace: Trace, rng: random.Random) -> Trace:
    text = "Visitors register at the reception, and wear their badge in the whole building."
    chunks = tuple(Chunk(id=f"{_WRONG}{n}", text=text, rank=n) for n in (1, 2))
    return replace(trace, contexts=chunks, answer="Register at the reception, and wear your badge.")


def is_wrong_chunk(chunk_id: str) -> bool:
    """Whether the fault `wrong-chunks` retrieved it."""
    return chunk_id.startswith(_WRONG)


def _loops(trace: Trace, rng: random.Random) -> Trace:
    last = (trace.answer or "").rsplit(". ", 1)[-1].rstrip(".")
    return replace(trace, answer=" ".join([trace.answer or "", *[f"{last}."] * rng.randint(10, 16)]))


def _fails(trace: Trace, rng: random.Random) -> Trace:
    return replace(trace, answer=None, error=AppError("UpstreamTimeout", "the model did not answer"))


def _refuses(trace: Trace, rng: random.Random) -> Trace:
    return replace(trace, answer="I'm sorry, but I can't help with that request.")


def _answers_in_german(trace: Trace, rng: random.Random) -> Trace:
    return replace(trace, answer=_GERMAN)


def _answers_blank(trace: Trace, rng: random.Random) -> Trace:
    return replace(trace, answer="  ")


FAULTS = (
    Fault("sixfold-latency", SUPPORT, _slower(6.0), ("efficiency",)),
    Fault("leaked-addresses", SUPPORT, _some(0.1, _leaks_address), ("privacy",)),
    Fault("empty-index", DOCS, _some(0.6, _retrieves_nothing), ("data_quality", "retrieval")),
    Fault("looping-answers", DOCS, _some(0.8, _loops), ("accuracy",)),
    Fault("failing-upstream", LEGAL, _some(0.3, _fails), ("runtime",)),
    Fault("refusals", LEGAL, _some(0.5, _refuses), ("accuracy",)),
    Fault("fourfold-cost", SHOP, _dearer(4), ("cost",)),
    Fault("leaked-keys", SHOP, _some(0.05, _leaks_key), ("security",)),
    Fault("wrong-language", SUPPORT, _some(0.7, _answers_in_german), ("accuracy",)),
    Fault("wrong-chunks", SHOP, _some(0.8, _retrieves_wrong_chunks), ("retrieval",)),
    Fault("blank-answers", NEWS, _some(0.4, _answers_blank), ("data_quality",)),
)
