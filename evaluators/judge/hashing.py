"""A judge without a model, for tests only."""

import hashlib

from ragtide.evaluators.judge.calls import Asker, Done, JudgeCall, SearchCall, SearchResults


class HashingJudge:
    """Gives the same reply to the same call, in every process. It counts calls that are sent."""

    def __init__(self) -> None:
        self.calls: list[JudgeCall] = []

    def endpoint_of(self, evaluator: str) -> str:
        """One endpoint."""
        return "hashing"

    def flush(self, waiting: int) -> None:
        """Do nothing: no call is gathered."""

    def finish(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    def search(self, call: SearchCall, asker: Asker, done: Done) -> None:
        """Find one text at once."""
        done(SearchResults(("a page that is found by every query",)))

    def submit(self, call: JudgeCall, asker: Asker, done: Done) -> None:
        """Reply at once."""
        self.calls.append(call)
        texts = tuple(text for section in call.sections for text in section.texts)
        joined = "\0".join((call.prompt, str(call.vote), *texts)).encode("utf-8", "surrogatepass")
        bits = int.from_bytes(hashlib.blake2b(joined, digest_size=8).digest(), "little")
        done(call.reply.sample(call.counts, texts, bits))
