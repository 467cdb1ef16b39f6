"""Tiny language models with random weights and a real byte-level tokenizer, as folders that transformers wrote."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from ragtide.evaluators.spec import Ask, Vectors

os.environ.setdefault("HF_HUB_OFFLINE", "1")

WORDS = (
    "The router has a button. In other words, hold the button for ten seconds. Paris is the capital of France; it has "
    "two million people. Question: Answer: Yes. Prices rose by 3.5 % in May, and nobody knows why! 漢字 naïve café"
)
CONTEXT = 128
BEGIN = "<s>"
STORY = "Paris is the capital of France; it has two million people. Hold the button for ten seconds."
BOTH = f"{STORY} Prices rose in May. {STORY}\n"
LONG = " ".join(f"{i} people and the router has a button." for i in range(60))
ASKS: list[Ask] = [
    (STORY,),
    ("Paris",),
    (LONG,),
    (BOTH, "Answer: Yes"),
    (BOTH + "Question: ", "who?"),
    (BOTH + "In other words, ", "nobody knows why!"),
    ("", "The button"),
    ("漢字 naïve ", "café 漢字"),
    ("a", "b"),
]


def causal(folder: Path, kind: str = "gpt2", begins: bool = False, context: int = CONTEXT, **config: Any) -> Path:
    """A language model that reads `context` tokens at once, of kind gpt2, llama, opt or another with their settings.

    `begins` says whether its tokenizer puts a token before a text.
    """
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    tokenizer = _tokenizer(begins, context)
    own = AutoConfig.for_model(kind, vocab_size=len(tokenizer), **_sizes(kind, context), **config)
    torch.manual_seed(len(kind))
    model = AutoModelForCausalLM.from_config(own)
    with torch.no_grad():
        for weights in model.parameters():  # the usual ones are so small that every token is as likely as any other
            if weights.dim() > 1:
                weights.normal_(0, 0.25)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _sizes(kind: str, context: int) -> dict[str, Any]:
    if kind == "gpt2":
        return {"n_layer": 2, "n_head": 2, "n_embd": 32, "n_positions": context}
    shared = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 32, "max_position_embeddings": context}
    if kind == "opt":
        return {**shared, "ffn_dim": 48, "word_embed_proj_dim": 16, "dropout": 0.0, "do_layer_norm_before": False}
    return {**shared, "intermediate_size": 48}


def _tokenizer(begins: bool, context: int) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    specials = ["<|endoftext|>", BEGIN]
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=specials, initial_alphabet=alphabet)
    tokenizer.train_from_iterator([WORDS], trainer)
    tokenizer.post_processor = (
        processors.TemplateProcessing(single=f"{BEGIN} $A", special_tokens=[(BEGIN, 1)])
        if begins
        else processors.ByteLevel(trim_offsets=False)
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|endoftext|>", model_max_length=context)


def assert_near(rounded: Vectors, full: Vectors) -> None:
    """Averages over tokens of `ASKS` within a fiftieth of themselves; where they are many, of a nat."""
    tokens = full[:, 1]
    assert np.array_equal(rounded[:, 1], tokens)
    averages, expected = rounded[:, 0] / tokens.clip(1), full[:, 0] / tokens.clip(1)
    np.testing.assert_allclose(averages, expected, rtol=2e-2, atol=0)
    many = tokens >= 20
    assert many.sum() >= 2
    np.testing.assert_allclose(averages[many], expected[many], rtol=0, atol=2e-2)
