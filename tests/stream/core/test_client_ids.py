"""Brokers' logs, quotas and lists of members name each client: lane or job, host and process."""

import asyncio
import os
import random
import re
import socket
from typing import Any

import pytest

from ragtide.stream.kafka.app import build_app
from ragtide.stream.kafka.batches import consumer_of
from ragtide.stream.kafka.client import client_id, client_options
from ragtide.stream.settings.sections import KafkaSettings, WorkerSettings
from ragtide.stream.worker.dead_letters import DeadLetters

HERE = f"{re.sub('[^A-Za-z0-9._-]', '_', socket.gethostname())}-{os.getpid()}"
KAFKA = KafkaSettings()


def test_a_client_has_its_lane_host_and_process() -> None:
    assert client_id("fast") == f"ragtide-fast-{HERE}"
    assert client_options(KAFKA)["client_id"] == f"ragtide-{HERE}"


def test_a_host_with_odd_characters_gives_a_name_that_brokers_accept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "büro 7/a")
    assert client_id("jobs") == f"ragtide-jobs-b_ro_7_a-{os.getpid()}"


def test_clients_of_a_lane_and_of_jobs_have_it() -> None:
    async def names() -> dict[str, Any]:
        consumer = consumer_of(KAFKA, role="jobs", group_id=None)
        letters = DeadLetters(KAFKA, "model", random.Random(1))
        found = {
            "lane": build_app(KAFKA, WorkerSettings(), "fast", lambda _: None).conf.broker_client_id,
            "consumer": consumer._client._client_id,
            "producer": letters._producer.client._client_id,
        }
        await consumer.stop()
        await letters.stop()
        return found

    assert asyncio.run(names()) == {
        "lane": f"ragtide-fast-{HERE}",
        "consumer": f"ragtide-jobs-{HERE}",
        "producer": f"ragtide-model-{HERE}",
    }
