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
from evaluators.outcome import Scored
from evaluators.spec import Metric, evaluator

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
    (folder / "misbehaving.py").write_text(code)
    about = folder / "misbehaving-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: misbehaving\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[ragwatch.evaluators]\nmisbehaving = misbehaving\n")
