"""The test node itself: what was written is there after a kill -9, it listens on loopback, and runs no foreign jar."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.infra.kafka_node import SCRIPT, KafkaNode
from tests.infra.ports import listening
from tests.stream.core.traffic import make_topics, read, send

pytestmark = pytest.mark.kafka
LIBS = SCRIPT.parent / "libs"


def test_log_survives_kill_and_restart_which_a_reader_waits_for(tmp_path: Path) -> None:
    with KafkaNode(tmp_path / "node") as node, ThreadPoolExecutor(1) as pool:
        make_topics(node, {"kept": 2})
        send(node, "kept", [(None, b"%d" % number) for number in range(100)])
        node.kill()
        reading = pool.submit(read, node, "kept", 100, 60)
        node.restart()
        assert {int(record.value) for record in reading.result()} == set(range(100))


def test_listens_on_loopback_only_and_keeps_its_data_in_its_folder(kafka: KafkaNode) -> None:
    assert listening(kafka.pid) == {("127.0.0.1", kafka.port), ("127.0.0.1", kafka.port + 1)}
    assert (kafka.directory / "data" / "meta.properties").is_file()


def test_a_port_in_use_is_told(kafka: KafkaNode, tmp_path: Path) -> None:
    refused(["bash", str(SCRIPT), "start", str(tmp_path / "node"), str(kafka.port)], f"port {kafka.port} is in use")
    assert not (tmp_path / "node" / "pid").exists()


def test_jars_are_pinned() -> None:
    pinned = (SCRIPT.parent / "SHA256SUMS").read_text().split()
    jars = {path.name for path in LIBS.glob("*.jar")}
    assert set(pinned[1::2]) == jars
    assert [name for name in jars if name.startswith("kafka_2.13-4.1.")]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The script and what it checks jars by, with a Maven that brings what lies in `brought`."""
    for name in ("kafka.sh", "pom.xml", "SHA256SUMS"):
        shutil.copy(SCRIPT.parent / name, tmp_path / name)
    brought, maven = tmp_path / "brought", tmp_path / "bin" / "mvn"
    for folder in (brought, maven.parent):
        folder.mkdir()
    for jar in LIBS.glob("*.jar"):
        (brought / jar.name).symlink_to(jar)
    maven.write_text("#!/bin/sh\ncp -RP brought libs\n")
    maven.chmod(0o755)
    return tmp_path


def test_a_changed_jar_is_not_started(checkout: Path) -> None:
    jar = next((checkout / "brought").glob("jspecify-*.jar"))
    content = bytearray(jar.read_bytes())
    content[len(content) // 2] ^= 1
    jar.unlink()
    jar.write_bytes(content)
    refused(start(checkout), "the jars differ from SHA256SUMS: not started")
    assert not (checkout / "node").exists()


@pytest.mark.parametrize("there", ["brought", "libs"])
def test_a_jar_that_is_not_pinned_is_not_started(checkout: Path, there: str) -> None:
    """Neither one that Maven brings nor one that was put beside what it brought."""
    if there == "libs":
        shutil.copytree(checkout / "brought", checkout / "libs", symlinks=True)
    (checkout / there / "other.JAR").write_bytes(b"")
    refused(start(checkout), "jars that SHA256SUMS does not name: not started")
    assert not (checkout / "node").exists()


def start(checkout: Path) -> list[str]:
    path = f"PATH={checkout / 'bin'}:{os.environ['PATH']}"
    return ["env", path, "bash", str(checkout / "kafka.sh"), "start", str(checkout / "node"), "1"]


def refused(command: Sequence[str], said: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
