"""Classifiers of BERT's shape, weights random and the tokenizer real: they cost what trained ones do."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from evaluators.encoder.model import find
from evaluators.settings import PACKAGED_MODEL, EncoderSettings

HIDDEN, HEADS, INNER = 768, 12, 3_072  # of BERT base, which has 12 layers


def classifier(folder: Path, labels: tuple[str, ...], layers: int) -> Path:
    """A BertForSequenceClassification with these labels; without labels, with one score."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    torch.manual_seed(layers)
    names = dict(enumerate(labels or ("score",)))
    config = BertConfig(
        hidden_size=HIDDEN,
        num_hidden_layers=layers,
        num_attention_heads=HEADS,
        intermediate_size=INNER,
        id2label=names,
        label2id={label: place for place, label in names.items()},
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    packaged = find(EncoderSettings(model=PACKAGED_MODEL)).folder
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(packaged / name, folder / name)
    return folder


def operations(lengths: Iterable[int], layers: int) -> float:
    """Multiplications and additions of reading windows of so many tokens; head and word vectors are left out."""
    weights = layers * (4 * HIDDEN * HIDDEN + 2 * HIDDEN * INNER)
    return sum(2 * length * weights + 4 * layers * HIDDEN * length**2 for length in lengths)
