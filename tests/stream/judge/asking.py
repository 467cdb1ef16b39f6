"""Ask a judge client in tests, bounded in time."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from queue import SimpleQueue
from typing import Any

from ragtide.evaluators.judge.calls import Answer, Asker, JudgeCall, Section, TraceCalls
from ragtide.evaluators.judge.replies import Texts, Verdicts
from ragtide.evaluators.judge.settings import JudgeSettings
from ragtide.evaluators.outcome import Failed
from ragtide.stream.judge import JudgeClient
from tests.stream.judge.chat_server import KEY

LIMIT_S = 20.0
FAST = {"timeout_s": 0.5, "trace_timeout_s": 5.0, "retry_base_s": 0.01, "retry_max_s": 0.02}
STATEMENTS = JudgeCall("statements", (Section("text", "The shop opens at nine. It is in Rome."),), Texts)


def verdicts(count: int, text: str = "claim") -> JudgeCall:
    items = tuple(f"{text} {number}" for number in range(count))
    return JudgeCall("statements", (Section("claims", items),), Verdicts, (count,))


@contextmanager
def judge(
    url: str, more: Mapping[str, Any] | None = None, by_batch: bool = False, **endpoint: Any
) -> Iterator[JudgeClient]:
    """A client with one endpoint; `endpoint` are its settings, `more` the other settings of judges."""
    own = {"url": url, "model": "m-1", "api_key": KEY, **FAST, **endpoint}
    settings = JudgeSettings.model_validate({"endpoints": {"local": own}, **(more or {})})
    client = JudgeClient(settings, seed=1, by_batch=by_batch)
    try:
        yield client
        client.finish()
    finally:
        client.close()


def ask_all(client: JudgeClient, calls: Sequence[JudgeCall], asker: Asker | None = None) -> list[Answer]:
    """Make all calls at once, as the driver does; their results in order."""
    done: SimpleQueue[tuple[int, Answer]] = SimpleQueue()

    def keep(at: int, result: Answer) -> None:
        done.put((at, result))

    for at, call in enumerate(calls):
        client.submit(call, asker or Asker("e", TraceCalls("shop")), partial(keep, at))
    found: dict[int, Answer] = {}
    while len(found) < len(calls):
        if done.empty():
            client.flush(len(calls) - len(found))
        at, result = done.get(timeout=LIMIT_S)
        found[at] = result
    return [found[at] for at in range(len(calls))]


def ask(client: JudgeClient, call: JudgeCall = STATEMENTS, asker: Asker | None = None) -> Answer:
    [result] = ask_all(client, [call], asker)
    return result


def kind(result: object) -> str:
    """The kind of a failure whose detail holds no secret and no text."""
    assert isinstance(result, Failed), result
    assert KEY not in result.detail
    assert "user" not in result.detail
    return result.kind
