"""Causal language models on torch: the likelihood of a text, or of the continuation of a text."""

import inspect
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.models.files import ModelFiles
from ragtide.evaluators.models.prefixes import Reading, Row, Sheet, one_per_row, share_prefixes
from ragtide.evaluators.models.torch_files import load_model, most_tokens
from ragtide.evaluators.runtime.batches import pack
from ragtide.evaluators.runtime.torch_batches import TorchBatches
from ragtide.evaluators.runtime.torch_device import device_of, dtype_of, memory_errors, move_to_device, warm_up
from ragtide.evaluators.settings import ModelSettings
from ragtide.evaluators.spec import Ask, Vectors
from ragtide.evaluators.text.surrogates import replace_surrogates

MOST_WINDOWS = 16  # of one text: a longer one is not taken
_LOGITS = 1 << 25  # numbers at once: a scored token needs as many as the vocabulary has words, and leaves one
_WINDOWED = ("sliding_window", "window_size", "attention_window")  # settings of attention that sees only so far back
_SAMPLE = "Nobody scores this: it shows whether what comes later leaves alone what was read before, and what it costs."


class CausalModel:
    """A `Model` for `Need.LM`.

    (text,): every token is scored by those before it. As in Hugging Face's guide to perplexity, a text is framed as the
    tokenizer frames it, so that for GPT-2 nothing stands before the first token, which is not scored then (of one token
    [0, 0] is left), and one longer than the context is read in windows of a whole context, half a context apart, each
    token scored in the first that holds it. (prefix, tail): the two are tokenized as the one text that they make; the
    tail's tokens are those that reach into it, with the blank before its first word. NaN where the two do not fit into
    the context, or one text into 16 windows.

    Texts are plain text: "<|endoftext|>" ends none.
    """

    def __init__(self, revision: str, files: ModelFiles, settings: ModelSettings) -> None:
        """Raises `ConfigError` if the files are no causal language model that can run this way."""
        import torch
        from transformers.utils.logging import disable_progress_bar

        if settings.backend == "onnx":
            raise ConfigError(f"{files.source.name} is a language model, which onnx does not run: set backend to torch")
        disable_progress_bar()  # a worker's log is no terminal
        device = device_of(settings.device)
        model, tokenizer = load_model("AutoModelForCausalLM", files, settings, dtype_of(settings, device))
        model.base_model.config.pad_token_id = None  # or it looks for padding in all that it reads, and warns of it
        self.revision = revision
        self._torch = torch
        self._model = move_to_device(model, device, files.source.name)
        self._head = model.get_output_embeddings()
        on_card = device.type == "cuda"  # where a product of bfloat16 can give float32
        self._words = self._head.weight if on_card else self._head.weight.float()
        self._context = most_tokens(model.config, tokenizer)
        self._tokenizer = tokenizer.backend_tokenizer
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._tokenizer.encode_special_tokens = True
        framed, plain = (self._tokenizer.encode("a", add_special_tokens=special).ids for special in (True, False))
        self._before = framed[: framed.index(plain[0])]
        self._batches = TorchBatches(self._forward, device, settings.threads)
        try:
            with memory_errors(f"the work of the model {files.source.name} on a few tokens", device):
                self._shares = self._can_share_rows(files.source.name)
        except FloatingPointError as error:
            raise ConfigError(
                f"the weights of the model {files.source.name} give numbers that are not finite"
            ) from error
        warm_up(self._batches, device, settings.batch_tokens, self._context, _blank)

    def answer(self, asks: Sequence[Ask]) -> Vectors:
        """Return [negative log-likelihood in nats, scored tokens] of each ask, in order: float32 [len(asks), 2]."""
        answers = np.zeros((len(asks), 2), np.float64)
        readings: list[Reading] = []
        for owner, windows in enumerate(self._windows(asks)):
            if windows is None:
                answers[owner] = np.nan
            else:
                readings += (Reading(owner, tokens, first) for tokens, first in windows if first < len(tokens))
        rows = share_prefixes(readings) if self._shares else one_per_row(readings)
        losses, owners = self._losses(rows)
        answers[:, 0] += np.bincount(owners, losses, len(asks))
        answers[:, 1] += np.bincount(owners, minlength=len(asks))
        return answers.astype(np.float32)

    def _windows(self, asks: Sequence[Ask]) -> Iterator[list[tuple[list[int], int]] | None]:
        """Return the tokens to read for each ask and the first scored one. None if it cannot be read whole."""
        texts = [replace_surrogates("".join(ask)) for ask in asks]
        for ask, encoded in zip(asks, self._tokenizer.encode_batch(texts, add_special_tokens=False), strict=True):
            prefix = len(ask[0]) if len(ask) > 1 else 0
            tail = next((i for i, (_, end) in enumerate(encoded.offsets) if end > prefix), len(encoded.ids))
            tokens, first = [*self._before, *encoded.ids], max(1, len(self._before) + tail)
            windows = _slide(tokens, first, self._context)
            yield windows if len(windows) <= (MOST_WINDOWS if len(ask) == 1 else 1) else None

    def _losses(self, rows: Sequence[Row]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """Return the negative log-likelihood of each scored token, and its owner."""
        owners = [np.zeros(0, np.int64)]
        kinds = [[row for row in rows if (len(row.readings) > 1) == together] for together in (False, True)]

        def sheets() -> Iterator[Sheet]:
            for kind in kinds:  # apart, since what shares rows needs a mask of its own
                for batch in pack([row.length for row in kind], self._batches):
                    sheet = Sheet([kind[i] for i in batch])
                    owners.append(sheet.owners)
                    yield sheet

        losses = self._batches.run(sheets())[:, 0].astype(np.float64) if rows else np.zeros(0)
        if not np.isfinite(losses).all():
            raise FloatingPointError(f"{self.revision} gives no finite likelihood")
        return np.maximum(losses, 0.0), np.concatenate(owners)  # rounding may leave a certain token at -1e-7

    def _forward(self, sheet: dict[str, Any]) -> Any:
        """Return the negative log-likelihood of each target: float32 [targets, 1]."""
        torch = self._torch
        hidden = self._hidden(sheet)
        hidden = hidden.reshape(-1, hidden.shape[-1])[sheet["places"]]
        step = max(1, _LOGITS // self._head.weight.shape[0])
        parts = zip(hidden.split(step), sheet["targets"].split(step), strict=True)
        cross_entropy = torch.nn.functional.cross_entropy
        losses = [cross_entropy(self._logits(some), targets, reduction="none") for some, targets in parts]
        return torch.cat(losses)[:, None]

    def _logits(self, hidden: Any) -> Any:
        """Return float32 [tokens, words], also from bfloat16, which would round a logit of -40 by a tenth."""
        words, bias = self._words.t(), self._head.bias
        if words.dtype == self._torch.float32:
            logits = hidden.float() @ words
        else:
            logits = self._torch.mm(hidden, words, out_dtype=self._torch.float32)
        return logits if bias is None else logits + bias

    def _hidden(self, sheet: dict[str, Any]) -> Any:
        """The last layer's output at every place. Where rows are read from left to right without a mask: from no place
        is seen what stands behind it, padding too.
        """
        torch, ids = self._torch, sheet["ids"]
        given: dict[str, Any] = {}
        if "parts" in sheet:
            parts = sheet["parts"]
            seen = (parts[:, None, :] == 0) | (parts[:, None, :] == parts[:, :, None])
            seen &= torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool, device=ids.device).tril()
            mask = torch.zeros(seen.shape, dtype=self._model.dtype, device=ids.device)
            mask.masked_fill_(~seen, torch.finfo(mask.dtype).min)
            given = {"attention_mask": mask[:, None], "position_ids": sheet["positions"]}
        return self._model.base_model(input_ids=ids, use_cache=False, **given).last_hidden_state

    def _can_share_rows(self, name: str) -> bool:
        """Whether readings may share rows; raises `ConfigError` for a model that is read in another way than this.

        Tried out on a few tokens: no configuration tells it. Attention that sees only so far back sees too little
        across a row, which a few tokens do not show.
        """
        torch = self._torch
        tokens = self._tokenizer.encode(_SAMPLE, add_special_tokens=False).ids[: self._context]
        half = len(tokens) // 2
        others = tokens[:half] + tokens[half:][::-1]
        near = 0.05 if self._model.dtype == torch.bfloat16 else 1e-3

        def same(one: Any, other: Any) -> bool:  # on average: a single token in bfloat16 may be off by more
            return bool(np.abs(one - other).mean() <= near * (1 + np.abs(other).mean()))

        whole, _ = self._losses(one_per_row([Reading(0, tokens, 1)]))
        first, _ = self._losses(one_per_row([Reading(0, tokens[:half], 1)]))
        with torch.inference_mode():
            ids = torch.tensor([tokens], device=self._model.device)
            own, by_parts = (
                torch.nn.functional.cross_entropy(logits[:-1].float(), ids[0, 1:], reduction="none").cpu().numpy()
                for [logits] in (
                    self._model(input_ids=ids, use_cache=False).logits,
                    self._head(self._hidden({"ids": ids})),  # not `_logits`, which rounds less
                )
            )
        if not same(first, whole[: half - 1]):
            raise ConfigError(
                f"the model {name} is no causal language model: later tokens change the reading of earlier ones"
            )
        if not same(by_parts, own):
            raise ConfigError(f"the model {name} changes the output of its last layer; it cannot be read in parts")
        takes = inspect.signature(self._model.base_model.forward).parameters
        if "position_ids" not in takes or any(getattr(self._model.config, key, None) for key in _WINDOWED):
            return False
        readings = [Reading(0, tokens, 1), Reading(1, others, 1)]
        apart, _ = self._losses(one_per_row(readings))
        together, _ = self._losses([Row(half, readings)])
        return same(apart, together)


def _slide(tokens: list[int], first: int, context: int) -> list[tuple[list[int], int]]:
    """Return windows that overlap by half a context, and the first scored token of each."""
    windows = [(tokens[:context], first)]
    stride = context // 2
    end = context
    while end < len(tokens):
        windows.append((tokens[end - context + stride : end + stride], context - stride))
        end += stride
    return windows


def _blank(rows: int, length: int) -> Sheet:
    return Sheet(one_per_row([Reading(0, [0] * length, 1)] * rows))
