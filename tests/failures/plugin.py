"""An evaluator package as somebody else would install it, whose evaluators break every rule on some traces."""

from pathlib import Path

UNSPEAKABLE = "what users wrote 4711"
# What each evaluator does about a trace whose answer is that.
BAD = {
    "raises": "raise RuntimeError(row.answer)",
    "gives_too_few": "continue",
    "gives_nan": "outcomes.append(Scored({'value': float('nan')}))",
    "gives_infinity": "outcomes.append(Scored({'value': float('inf')}))",
    "leaves_range": "outcomes.append(Scored({'value': 1.5}))",
    "leaves_metric_out": "outcomes.append(Scored({}))",
    "gives_nonsense": "outcomes.append('nonsense')",
}
_HEAD = """
from dataclasses import dataclass
from ragtide.evaluators.outcome import Scored
from ragtide.evaluators.spec import Metric, evaluator

@dataclass(frozen=True)
class Answer:
    answer: str
"""
_EVALUATOR = '''
@evaluator("{id}", version=1, domain="generation", method="rule", inputs=Answer, metrics=[Metric("value")])
def {id}(rows, shared, params):
    """Half, or something bad."""
    outcomes = []
    for row in rows:
        if row.answer == "{unspeakable}":
            {bad}
        else:
            outcomes.append(Scored({{"value": 0.5}}))
    return outcomes
'''


def install(folder: Path) -> None:
    """Into `folder`, which must be on the path."""
    code = _HEAD + "".join(_EVALUATOR.format(id=name, bad=bad, unspeakable=UNSPEAKABLE) for name, bad in BAD.items())
    _package(folder, "misbehaving", code)


def _package(folder: Path, name: str, code: str) -> None:
    (folder / f"{name}.py").write_text(code)
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[ragtide.evaluators]\n{name} = {name}\n")


_ON_A_CARD = '''
from pathlib import Path
from ragtide.evaluators.runtime.batches import Window, in_batches
from ragtide.evaluators.runtime.torch_batches import TorchBatches

def _forward(tensors):
    import torch
    if Path({gone!r}).exists():
        raise torch.AcceleratorError("CUDA error: unspecified launch failure\\nIt might be reported later.")
    return tensors["input_ids"].sum(1, keepdim=True) / 10

@evaluator("on_a_card", version=1, domain="generation", method="rule", inputs=Answer, metrics=[Metric("value")])
def on_a_card(rows, shared, params):
    """What a model makes of one token each."""
    import torch
    model = TorchBatches(_forward, torch.device("cpu"))
    for [value] in in_batches(model, [Window([5]) for _ in rows]):
        yield Scored({{"value": float(value)}})
'''


def install_on_a_card(folder: Path, gone: Path) -> None:
    """Into `folder`: an evaluator whose model's card is lost, as CUDA tells it, while the file `gone` is there."""
    _package(folder, "carded", _HEAD + _ON_A_CARD.format(gone=str(gone)))
