"""Batches on a device: what runs out of memory goes on in halves, and how many tokens at once are worth their memory.

The device is a CPU whose memory ends where the test says; what only a GPU does is tested where there is one.
"""

import logging

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragtide.evaluators.errors import ConfigError, DeviceLost
from ragtide.evaluators.runtime.batches import Window, in_batches, pack, pad_windows, split_evenly
from ragtide.evaluators.runtime.torch_batches import TorchBatches, fastest_batch_tokens
from ragtide.evaluators.runtime.torch_device import warm_up


class Limit:
    def __init__(self, batch_tokens: int) -> None:
        self.batch_tokens = batch_tokens


windows = st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=20), min_size=1, max_size=30)


@given(windows, st.integers(1, 60))
def test_every_window_is_in_one_batch_within_the_limit(made: list[list[int]], limit: int) -> None:
    lengths = [len(window) for window in made]
    batches = list(pack(lengths, Limit(limit)))
    assert sorted(i for batch in batches for i in batch) == list(range(len(made)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= limit
        assert sum(max(lengths[i] for i in batch) - lengths[j] for j in batch) <= limit // 4
    read = [lengths[i] for batch in batches for i in batch]
    assert read == sorted(read, reverse=True)


def test_short_windows_are_not_padded_to_a_long_one() -> None:
    lengths = [4, 50, 4, 40, 4, 4]
    assert list(pack(lengths, Limit(400))) == [[1, 3, 0], [2, 4, 5]], "10 and 46 are padding; twice 46 were too much"


@given(st.lists(st.integers(), max_size=50), st.integers(1, 12))
def test_a_long_text_is_shared_evenly(pieces: list[int], room: int) -> None:
    parts = split_evenly(pieces, room)
    assert [piece for part in parts for piece in part] == pieces
    assert len(parts) == max(1, -(-len(pieces) // room))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_padding() -> None:
    batch = pad_windows([Window([5, 6, 7], [0, 0, 1]), Window([8], [1])], pad=9)
    assert batch.ids.tolist() == [[5, 6, 7], [8, 9, 9]]
    assert batch.mask.tolist() == [[1, 1, 1], [1, 0, 0]]
    assert batch.kinds is not None
    assert batch.kinds.tolist() == [[0, 0, 1], [1, 0, 0]]
    assert batch.rows(1, 2).ids.tolist() == [[8]]
    assert list(pad_windows([Window([1])]).arrays) == ["input_ids", "attention_mask"]


@pytest.mark.models
class TestTorch:
    def made(self, room: int, seen: list[tuple[int, int]]) -> TorchBatches:
        """Sums and counts of tokens, on a device with room for so many at once."""
        import torch

        def forward(inputs: dict[str, torch.Tensor]) -> torch.Tensor:
            ids, mask = inputs["input_ids"], inputs["attention_mask"]
            if ids.numel() > room:
                raise torch.OutOfMemoryError
            seen.append((ids.shape[0], ids.shape[1]))
            return torch.stack(((ids * mask).sum(1), mask.sum(1)), 1)

        return TorchBatches(forward, torch.device("cpu"))

    @settings(deadline=None)  # torch takes its time to begin
    @given(made=windows, room=st.integers(20, 300))
    def test_whatever_the_room_the_rows_are_the_same_and_in_order(self, made: list[list[int]], room: int) -> None:
        rows = in_batches(self.made(room, []), [Window(ids) for ids in made], pad=100)
        assert rows.tolist() == [[sum(ids), len(ids)] for ids in made]
        assert rows.dtype == np.float32

    def test_less_is_read_at_once_from_then_on_and_that_is_said(self, caplog: pytest.LogCaptureFixture) -> None:
        seen: list[tuple[int, int]] = []
        model = self.made(100, seen)
        with caplog.at_level(logging.WARNING):
            in_batches(model, [Window([1] * 8)] * 512)
        assert model.batch_tokens == 64
        assert seen == [(8, 8)] * 64
        assert [record.getMessage() for record in caplog.records] == [
            f"out of memory with {tokens} tokens on cpu; continuing with {tokens // 2} per forward pass"
            for tokens in (1024, 512, 256, 128)
        ]

    def test_a_device_without_room_for_one_text_is_refused_at_the_start(self) -> None:
        import torch

        said = r"a text of 90 tokens does not fit on cpu: .*evaluators.card_bytes, run fewer workers on the GPU"
        assert warm_up(self.made(90, []), torch.device("cpu"), None, 90) == 2
        with pytest.raises(ConfigError, match=said):
            warm_up(self.made(89, []), torch.device("cpu"), None, 90)

    def test_each_model_has_its_own_threads_whichever_was_made_last(self) -> None:
        import torch

        def forward(inputs: dict[str, torch.Tensor]) -> torch.Tensor:
            return torch.full((len(inputs["input_ids"]), 1), torch.get_num_threads())

        one, other = (TorchBatches(forward, torch.device("cpu"), threads) for threads in (2, 1))
        before = torch.get_num_threads()
        try:
            given = [in_batches(model, [Window([1])]).item() for model in (one, other, one)]
        finally:
            torch.set_num_threads(before)
        assert given == [2, 1, 2]

    @pytest.mark.parametrize(
        "said", ["CUDA error: out of memory", "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling x"]
    )
    def test_libraries_of_cuda_run_out_of_memory_in_words_of_their_own(self, said: str) -> None:
        import torch

        def forward(inputs: dict[str, torch.Tensor]) -> torch.Tensor:
            if inputs["input_ids"].numel() > 16:
                raise RuntimeError(said)
            return inputs["input_ids"].sum(1, keepdim=True)

        rows = in_batches(TorchBatches(forward, torch.device("cpu")), [Window([1, 2])] * 40)
        assert rows.tolist() == [[3.0]] * 40

    def test_a_card_that_is_lost_is_no_error_of_a_text(self) -> None:
        import torch

        said = "CUDA error: device-side assert triggered\nCUDA kernel errors might be reported at some other call."
        for error in (torch.AcceleratorError(said), RuntimeError(said)):

            def forward(inputs: dict[str, torch.Tensor], error: Exception = error) -> torch.Tensor:
                raise error

            with pytest.raises(
                DeviceLost, match=r"^cpu computes no more in this process: CUDA error: device-side \w+ \w+$"
            ):
                in_batches(TorchBatches(forward, torch.device("cpu")), [Window([1])])

    def test_any_other_error_is_what_it_is(self) -> None:
        import torch

        def forward(inputs: dict[str, torch.Tensor]) -> torch.Tensor:
            raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

        with pytest.raises(RuntimeError, match=r"^mat1 and mat2"):
            in_batches(TorchBatches(forward, torch.device("cpu")), [Window([1])])

    def test_a_window_that_does_not_fit_alone_fails(self) -> None:
        import torch

        with pytest.raises(torch.OutOfMemoryError):
            in_batches(self.made(7, []), [Window([1] * 8)])

    @pytest.mark.parametrize(
        ("seconds", "best"),
        [
            (lambda tokens: max(1.0, tokens / 40_000), 65_536),  # full at 40,000: a fifth faster than 32,768
            (lambda tokens: tokens / 1e6, 4_096),  # more at once is no faster
            (lambda tokens: 1.0, 1 << 20),  # no end in sight
        ],
    )
    def test_tokens_at_once_grow_while_they_are_faster(self, seconds: object, best: int) -> None:
        assert callable(seconds)
        assert fastest_batch_tokens(seconds) == best

    def test_tokens_at_once_grow_while_they_fit(self) -> None:
        def seconds(tokens: int) -> float:
            if tokens > 20_000:
                raise MemoryError
            return 1.0

        assert fastest_batch_tokens(seconds) == 16_384
