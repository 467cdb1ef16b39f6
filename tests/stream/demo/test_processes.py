import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from ragtide.stream.local.processes import Child, Children

STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(60)"
)
POLITE = "import time; print('ready', flush=True); time.sleep(60)"


def python(name: str, code: str, directory: Path) -> Child:
    return Child(name, [sys.executable, "-c", code], directory / "logs" / f"{name}.log", dict(os.environ))


def until(condition: Callable[[], bool], timeout_s: float = 20.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_children_stop_when_asked_and_their_output_is_in_their_logs(tmp_path: Path) -> None:
    children = Children([python("one", POLITE, tmp_path), python("two", POLITE, tmp_path)])
    children.start()
    until(lambda: all("ready" in child.last_lines() for child in children))
    assert children.ended() is None
    children.stop()
    assert [child.exit_code for child in children] == [-signal.SIGTERM] * 2


def test_a_child_that_does_not_stop_is_killed(tmp_path: Path) -> None:
    child = python("stubborn", STUBBORN, tmp_path)
    children = Children([child])
    children.start()
    until(lambda: "ready" in child.last_lines())
    children.stop(timeout_s=0.2)
    assert child.exit_code == -signal.SIGKILL


def test_a_child_that_ended_by_itself_is_found_with_its_last_words(tmp_path: Path) -> None:
    children = Children([python("long", POLITE, tmp_path), python("short", "raise SystemExit('no disk')", tmp_path)])
    children.start()
    until(lambda: children.ended() is not None)
    ended = children.ended()
    assert ended is not None
    assert (ended.name, ended.exit_code, ended.last_lines()) == ("short", 1, ["no disk"])
    children.stop()


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's way")
def test_a_child_dies_with_its_parent_even_when_that_is_killed(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import os, sys, time\n"
            "from pathlib import Path\n"
            "from ragtide.stream.local.processes import Child\n"
            "child = Child('c', [sys.executable, '-c', 'import time; time.sleep(60)'], Path(sys.argv[1]), os.environ)\n"
            "child.start()\nprint(child.pid, flush=True)\ntime.sleep(60)",
            str(tmp_path / "log"),
        ],
        stdout=subprocess.PIPE,
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    until(lambda: "sleep(60)" in " ".join(psutil.Process(pid).cmdline()[1:3]))
    parent.kill()
    parent.wait()
    parent.stdout.close()
    until(lambda: is_gone(pid))


WATCH = "import os, sys; from ragtide.stream.local.child import watch; sys.exit(watch(os.getppid(), sys.argv[1:]))"


def test_where_the_kernel_does_not_help_the_launcher_watches() -> None:
    program = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
    start_a_launcher = "import subprocess, sys; subprocess.run([sys.executable, '-c', *sys.argv[1:]])"
    parent = subprocess.Popen(
        [sys.executable, "-c", start_a_launcher, WATCH, sys.executable, "-c", program], stdout=subprocess.PIPE
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    launcher = psutil.Process(pid).ppid()
    parent.kill()
    parent.wait()
    parent.stdout.close()
    until(lambda: is_gone(pid) and is_gone(launcher))


def test_the_watching_launcher_passes_signals_on_and_returns_the_exit_status() -> None:
    program = (
        "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(7)); print('up', flush=True); time.sleep(60)"
    )
    launcher = subprocess.Popen([sys.executable, "-c", WATCH, sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert launcher.stdout is not None
    assert launcher.stdout.readline() == b"up\n"
    launcher.terminate()
    assert launcher.wait(20) == 7
    launcher.stdout.close()
