"""Tiny models with random weights and real tokenizers, as folders that transformers wrote."""

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

WORDS = (
    "The router has a button. Paris is the capital of France; it has two million people. Prices rose by 3.5 % in May, "
    "and nobody knows why! Is the answer kind, rude or neither? 漢字 naïve café — “quoted”."
)
SIZES = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 32, "intermediate_size": 48}
LABELS = ("entailment", "neutral", "contradiction")


def classifier(folder: Path, kind: str, labels: tuple[str, ...] = LABELS, **config: Any) -> Path:
    """A sequence classifier that reads 40 tokens at once, of kind bert, roberta, distilbert, deberta-v2 or albert."""
    import torch
    from transformers import AutoConfig, AutoModelForSequenceClassification

    tokenizer = _tokenizer(kind)
    places = {label: place for place, label in enumerate(labels)}
    names: Mapping[str, Any] = {"id2label": dict(enumerate(labels)), "label2id": places}
    own = AutoConfig.for_model(kind, **_own(kind), vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id)
    own.update({**names, **config})
    torch.manual_seed(len(kind))
    with warnings.catch_warnings():  # DeBERTa's code uses what torch deprecates; as it is first imported that is told
        warnings.filterwarnings("ignore", ".*torch.jit.script.* is deprecated", DeprecationWarning)
        model = AutoModelForSequenceClassification.from_config(own)
    with torch.no_grad():
        for weights in model.parameters():  # the usual ones are so small that every answer is the same
            if weights.dim() > 1:
                weights.normal_(0, 0.25)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _own(kind: str) -> dict[str, Any]:
    if kind == "distilbert":
        return {"n_layers": 2, "n_heads": 2, "dim": 32, "hidden_dim": 48, "max_position_embeddings": 40}
    own: dict[str, Any] = {**SIZES, "max_position_embeddings": 42 if kind == "roberta" else 40}
    if kind == "albert":
        own["embedding_size"] = 16
    if kind == "deberta-v2":
        own |= {
            "relative_attention": True,
            "pos_att_type": ["p2c", "c2p"],
            "position_buckets": 16,
            "type_vocab_size": 0,
        }
        own |= {"norm_rel_ebd": "layer_norm", "share_att_key": True, "position_biased_input": False}
    if kind == "roberta":
        own["type_vocab_size"] = 1
    return own


def _tokenizer(kind: str) -> Any:
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    if kind == "roberta":
        specials = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
        tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        bpe = trainers.BpeTrainer(vocab_size=320, special_tokens=specials, initial_alphabet=alphabet)
        tokenizer.train_from_iterator([WORDS], bpe)
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
        )
        names = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
        return PreTrainedTokenizerFast(
            tokenizer_object=tokenizer, **names, cls_token="<s>", sep_token="</s>", model_max_length=40
        )
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    names = {"cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]", "pad_token": "[PAD]"}
    if kind in ("bert", "distilbert"):
        tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer: Any = trainers.WordPieceTrainer(vocab_size=160, special_tokens=specials)
    else:
        tokenizer = Tokenizer(models.Unigram())
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        trainer = trainers.UnigramTrainer(vocab_size=120, special_tokens=specials, unk_token="[UNK]")
    tokenizer.train_from_iterator([WORDS], trainer)
    ids = [(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ids
    )
    inputs = ["input_ids", "attention_mask"] + (["token_type_ids"] if kind in ("bert", "albert") else [])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names, model_max_length=40, model_input_names=inputs)
