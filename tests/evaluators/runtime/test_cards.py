"""Workers share out the GPUs: by locks, so no GPU is needed to see it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.runtime.cards import CardSlot, cards, take_slot


def test_every_card_gets_one_worker_before_any_gets_two(tmp_path: Path) -> None:
    places = [take_slot(["0", "GPU-abc"], 2, tmp_path) for _ in range(4)]
    assert [place.card for place in places if place] == ["0", "GPU-abc", "0", "GPU-abc"]
    with pytest.raises(ConfigError, match=r"every GPU \(0, GPU-abc\) has its 2 workers: start fewer, or raise"):
        take_slot(["0", "GPU-abc"], 2, tmp_path)
    assert places[1] is not None
    os.close(places[1].lock)
    again = take_slot(["0", "GPU-abc"], 2, tmp_path)
    assert isinstance(again, CardSlot)
    assert again.card == "GPU-abc", "the place that was given up"


def test_a_worker_that_is_killed_gives_its_place_up(tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from ragtide.evaluators.runtime.cards import take_slot\n"
        "slot = take_slot(['0'], 1, Path(sys.argv[1])); print(slot.card, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "0\n"
        with pytest.raises(ConfigError, match="has its 1 workers"):
            take_slot(["0"], 1, tmp_path)
        worker.send_signal(signal.SIGKILL)
    assert take_slot(["0"], 1, tmp_path) is not None


def test_without_cards_there_is_none_to_take(tmp_path: Path) -> None:
    assert take_slot([], 1, tmp_path) is None
    assert list(tmp_path.iterdir()) == []
    assert cards({"CUDA_VISIBLE_DEVICES": ""}) == cards({"CUDA_VISIBLE_DEVICES": "-1"}) == []
    assert cards({"CUDA_VISIBLE_DEVICES": "2, GPU-abc"}) == ["2", "GPU-abc"]


def test_the_process_sees_its_card_alone() -> None:
    program = (
        "import os; from ragtide.evaluators.runtime.cards import take_card\n"
        "assert take_card(64) == take_card(64) == os.environ['CUDA_VISIBLE_DEVICES'], 'one place a process'\n"
        "print(os.environ['CUDA_VISIBLE_DEVICES'])"
    )
    seen = subprocess.run(
        [sys.executable, "-c", program],
        env={"CUDA_VISIBLE_DEVICES": "no-such-card-7,no-such-card-8", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert seen.stdout.strip() in ("no-such-card-7", "no-such-card-8")
