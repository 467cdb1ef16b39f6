"""Whatever fails, and whenever a command is stopped: repeated, it gets every reply, and pays for no call twice."""

import random
import time
from collections import Counter
from pathlib import Path

import pytest

from ragtide.evaluators.judge.calls import Asker, TraceCalls
from tests.stream.judge.asking import ask_all
from tests.stream.judge.batch_server import BatchServer, batch_server
from tests.stream.judge.batches import REPLY, SAID, batching, statements
from tests.stream.judge.chat_server import Behaviour, cut_connection, error, raw

BUSY = error(429, Retry_After="0")
FAULTS: list[Behaviour] = [error(500), error(502), BUSY, cut_connection]
ROUTES = ["upload", "create", "list", "look", "content", "delete", "cancel"]
MOST_COMMANDS = 30


def break_some(server: BatchServer, rng: random.Random) -> None:
    """Let some of the next requests fail, before or after they have done their work, few or many in a row."""
    for faults in (server.faults, server.faults_after):
        faults.clear()
        for route in rng.sample(ROUTES, rng.randint(0, 4)):
            kinds = FAULTS if route == "content" else [*FAULTS, raw(b"<html>gateway</html>")]
            chosen = rng.choices(kinds, k=rng.choice([1, 1, 2, 8]))
            faults[route] = [
                one for one in chosen if one is not BUSY or faults is server.faults
            ]  # 429: nothing was done


@pytest.mark.parametrize("seed", range(12))
def test_every_call_is_paid_for_once_and_every_file_is_deleted_or_named(
    tmp_path: Path, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    rng = random.Random(seed)
    calls = [statements(number) for number in range(40)]
    limits = {"max_requests": rng.choice([7, 50]), "poll_s": 0.01}
    results: list[object] = []
    with batch_server(lambda sent: REPLY) as server:
        for _ in range(MOST_COMMANDS):
            break_some(server, rng)
            server.looks = rng.choice([0, 1, 20])
            with batching(server.url, tmp_path, limits, retries=2) as client:
                if rng.random() < 0.5:  # it is stopped
                    for call in calls:
                        client.submit(call, Asker("e", TraceCalls("shop")), lambda answer: None)
                    client.flush(len(calls))
                    time.sleep(rng.uniform(0, 0.3))
                else:
                    results = list(ask_all(client, calls))
            if results == [SAID] * len(calls):
                break
        assert results == [SAID] * len(calls)
        server.faults.clear()
        server.faults_after.clear()
        with batching(server.url, tmp_path, limits) as client:
            assert ask_all(client, calls) == results
        asked = Counter(line["custom_id"] for batch in server.batches.values() for line in batch.lines)
        assert set(asked.values()) == {1}
        assert len(asked) == len(calls)
        unnamed = [id for id in server.files if id not in caplog.text and server.names.get(id, id) not in caplog.text]
        assert not unnamed
