"""What the worst text that an evaluator's budget lets in costs it.

`python -m benchmarks.budgets [ID ...]`: for each registered evaluator the hostile text of the fuzz test that takes it
longest when the record is as long as the evaluator's budget allows (8 MB where it allows more: no record is longer), in
processor time, and that as a share of the two seconds that it may take. Encoders cost nothing here: what their tokens
take depends on the machine, and budgets of sentences bound them.
"""

import argparse
import gc
import time
from typing import NamedTuple

from evaluators.outcome import NotApplicable
from evaluators.registry import load
from evaluators.spec import Evaluator
from tests.evaluators.builtin.hostile import TEXTS, hostile
from tests.evaluators.builtin.scoring import outcomes
from tests.evaluators.builtin.test_hostile_texts import REGISTERED, OneVector

LIMIT_S = 2.0
RECORD = 8_000_000  # characters
BESIDE = 10_000  # characters of a hostile trace that stand in other fields than answer and chunks


class Worst(NamedTuple):
    cpu_s: float
    text: str
    outcome: str


def cost(evaluator: Evaluator, name: str, size: int) -> Worst:
    of = hostile(TEXTS[name](size))
    gc.collect()
    start = time.process_time()
    [given] = outcomes(evaluator.id, [of], encoder=OneVector())
    took = time.process_time() - start
    return Worst(took, name, given.reason if isinstance(given, NotApplicable) else type(given).__name__)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ids", nargs="*", metavar="ID", help="evaluators; all, if none is named")
    chosen = parser.parse_args().ids or REGISTERED
    registry = load()
    print(f"{'evaluator':28} {'characters':>10} {'worst text':24} {'outcome':16} {'CPU s':>6} {'of limit':>8}")
    beyond = []
    for id in chosen:
        evaluator = registry[id]
        size = int((min(evaluator.budget.characters, RECORD) - BESIDE) / 1.5)  # half of it once more in a chunk
        cost(evaluator, "prose", 1_000)
        worst = max(cost(evaluator, name, size) for name in TEXTS)
        beyond += [id] if worst.cpu_s > LIMIT_S else []
        share = worst.cpu_s / LIMIT_S
        print(f"{id:28} {size:10,} {worst.text:24} {worst.outcome:16} {worst.cpu_s:6.2f} {share:8.0%}", flush=True)
    print(f"beyond {LIMIT_S:.0f} s: {', '.join(beyond) or 'none'}")


if __name__ == "__main__":
    main()
