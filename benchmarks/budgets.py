"""What the worst text that an evaluator's budget lets in costs it.

`python -m benchmarks.budgets [ID ...]`: for each registered evaluator the hostile text of the fuzz test that takes it
longest when the record is as long as the evaluator's budget allows (8 MB where it allows more: no record is longer), in
processor time, and that as a share of the two seconds that it may take. Encoders and models cost nothing here: what
their tokens take depends on the machine, and budgets of sentences and of pairs bound them. Evaluators that take JSON
Schemas follow once more for each schema of the fuzz test, with the JSON that is worst for it.
"""

import argparse
import gc
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from ragtide.evaluators.checks.growth import ConstantEncoder, ConstantModel
from ragtide.evaluators.outcome import NotApplicable
from ragtide.evaluators.registry import load
from ragtide.evaluators.spec import Evaluator
from tests.evaluators.builtin.hostile import TEXTS, hostile
from tests.evaluators.builtin.hostile_schemas import SCHEMAS, params
from tests.evaluators.builtin.hostile_schemas import TEXTS as JSON_TEXTS
from tests.evaluators.builtin.scoring import outcomes
from tests.evaluators.builtin.test_hostile_texts import REGISTERED

LIMIT_S = 2.0
RECORD = 8_000_000  # characters
BESIDE = 10_000  # characters of a hostile trace that stand in other fields than answer and chunks
TAKE_SCHEMAS = ("agent_sanity", "json_schema")

Texts = Mapping[str, Callable[[int], str]]


class Worst(NamedTuple):
    cpu_s: float
    text: str
    outcome: str


def cost(evaluator: Evaluator, name: str, text: str, given_params: Mapping[str, Any] | None = None) -> Worst:
    of = hostile(text)
    gc.collect()
    start = time.process_time()
    [given] = outcomes(evaluator.id, [of], given_params, ConstantEncoder(), ConstantModel)
    took = time.process_time() - start
    return Worst(took, name, given.reason if isinstance(given, NotApplicable) else type(given).__name__)


def cases(evaluator: Evaluator) -> Iterator[tuple[str, Texts, Mapping[str, Any] | None]]:
    """What a line is about, the texts to try, and the evaluator's parameters."""
    yield evaluator.id, TEXTS, None
    if evaluator.id in TAKE_SCHEMAS:
        for name, schema in SCHEMAS.items():
            yield f"  {name}", JSON_TEXTS, params(evaluator.id, schema)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ids", nargs="*", metavar="ID", help="evaluators; all, if none is named")
    chosen = parser.parse_args().ids or REGISTERED
    registry = load()
    print(f"{'evaluator':28} {'characters':>10} {'worst text':28} {'outcome':24} {'CPU s':>6} {'of limit':>8}")
    beyond = []
    for id in chosen:
        evaluator = registry[id]
        most = min(evaluator.budget.characters or RECORD, RECORD)
        size = int((most - BESIDE) / 1.5)  # half of it once more in a chunk
        for line, texts, with_params in cases(evaluator):
            cost(evaluator, "prose", TEXTS["prose"](1_000), with_params)
            worst = max(cost(evaluator, name, text(size), with_params) for name, text in texts.items())
            beyond += [line.strip()] if worst.cpu_s > LIMIT_S else []
            share = worst.cpu_s / LIMIT_S
            print(
                f"{line:28} {size:10,} {worst.text:28} {worst.outcome:24} {worst.cpu_s:6.2f} {share:8.0%}", flush=True
            )
    print(f"beyond {LIMIT_S:.0f} s: {', '.join(beyond) or 'none'}")


if __name__ == "__main__":
    main()
