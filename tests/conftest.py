"""Fixtures for the real components: one ClickHouse, one embedded broker and one Kafka node per worker of a run."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.infra import crashes
from tests.infra.fresh_database import fresh_database
from tests.infra.kafka_node import KafkaNode
from tests.infra.workers import ByFile, turn_of

if TYPE_CHECKING:
    from xdist.remote import Producer

    from ragtide.sinks.clickhouse.database import Database
    from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
    from ragtide.stream.local.broker import EmbeddedBroker

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ["HF_HUB_CACHE"] = os.devnull  # what was fetched to this machine moves no test
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell's background job, and so would be all that tests start
    signal.signal(signal.SIGINT, signal.default_int_handler)
_MEMORY_DISK, _ENOUGH_BYTES = Path("/dev/shm"), 4 << 30
if _MEMORY_DISK.is_dir() and shutil.disk_usage(_MEMORY_DISK).free > _ENOUGH_BYTES:
    # Of `tmp_path` and its like. On ext4 an insert takes the server a third more of the processor: it makes 19 files.
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY_DISK))
settings.register_profile("repeatable", deadline=None, derandomize=True)  # a busy machine fails no property
settings.register_profile("searching", deadline=None)  # pytest --hypothesis-profile searching: other examples each time
settings.load_profile("repeatable")


def pytest_configure(config: pytest.Config) -> None:
    """Tests hold what a CPU gives, also where a machine has a GPU: `-m gpu` runs those of the GPU."""
    if config.option.markexpr != "gpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile:
    """Called where a run has several workers."""
    config.option.loadscopereorder = False
    return ByFile(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In the order in which they are dealt out, where a run has several workers."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: turn_of(item.nodeid))


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Before workers are started, and after pytest has enabled its own handler of crashes."""
    crashes.observe(session.config)


@pytest.fixture(scope="session")
def clickhouse_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedClickHouse]:
    """The embedded ClickHouse, as a process of its own."""
    from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse

    with EmbeddedClickHouse(tmp_path_factory.mktemp("clickhouse")) as server:
        yield server


@pytest.fixture
def database(clickhouse_server: EmbeddedClickHouse) -> Iterator[Database]:
    """A migrated database of the test's own, dropped afterwards."""
    with fresh_database(clickhouse_server) as opened:
        yield opened


@pytest.fixture(scope="session")
def broker() -> Iterator[EmbeddedBroker]:
    """The embedded broker."""
    from ragtide.stream.local.broker import EmbeddedBroker

    with EmbeddedBroker() as running:
        yield running


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    """Apache Kafka; tests that kill it start a node of their own."""
    with KafkaNode(tmp_path_factory.mktemp("kafka")) as node:
        yield node
