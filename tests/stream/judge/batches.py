"""Ask by batches in tests, with short waits."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ragtide.evaluators.judge.calls import Answer, JudgeCall, Section
from ragtide.evaluators.judge.replies import Texts
from ragtide.stream.judge import JudgeClient
from tests.stream.judge.asking import judge, kind
from tests.stream.judge.batch_server import BatchServer
from tests.stream.judge.chat_server import Behaviour, Sent

BATCH = {"poll_s": 0.02, "max_wait_s": 15.0}
REPLY = {"texts": ["It opens at nine."]}
SAID = Texts(("It opens at nine.",))


def statements(number: int) -> JudgeCall:
    return JudgeCall("statements", (Section("text", f"The shop opens at {number}."),), Texts)


CALLS = [statements(number) for number in range(6)]


def number_of(sent: Sent) -> int:
    """The number in the text of a call."""
    return int(sent.user.split("opens at ")[1].split(".")[0])


def kinds(results: list[Answer]) -> list[str]:
    """The kind of each failure; "" for a reply."""
    return ["" if one == SAID else kind(one) for one in results]


def always(server: BatchServer, route: str, fault: Behaviour) -> None:
    """Let every request of the route fail."""
    server.faults[route] = [fault] * 1000


@contextmanager
def batching(url: str, folder: Path, batch: Mapping[str, Any] | None = None, **endpoint: Any) -> Iterator[JudgeClient]:
    """A client that asks by batches, with its cache and state in a folder."""
    cache = {"cache": {"path": str(folder / "replies.db")}}
    with judge(url, cache, by_batch=True, batch={**BATCH, **(batch or {})}, **endpoint) as client:
        yield client
