"""What all rule and n-gram evaluators together cost a realistic trace, and each one's share.

`python -m benchmarks.fast_lane [--records 200] [--rounds 5]`: a question, an answer of about 120 words and five chunks
of 150, without a reference and with one of about 60 words, through the engine as in a worker, in micro-batches of all
records. Evaluators that a judge can take over run by rule; `unsuccessful_requests` would not look at answers as long as
these, so that it is told to. CPU time of the best round counts, since other processes only ever slow things down; no
record is seen twice, since much is remembered. A share is what an evaluator costs alone: work that several share counts
for each of them.
"""

import argparse
from collections.abc import Sequence
from itertools import count

import msgspec

from benchmarks.ngrams import cpu_s, ours, traces
from ragtide.evaluators import registry
from ragtide.evaluators.plan import PreparedEvaluator, prepare
from ragtide.evaluators.settings import EvaluatorSettings

LIMIT_MS, LIMIT_WITH_REFERENCE_MS = 2.0, 4.0
METHODS = ("rule", "ngram", "judge")  # in the fast lane without a judge: by rule
PARAMS = {"unsuccessful_requests": {"longest_words": 1_000}}


class Bench:
    """Times plans on records of their own."""

    def __init__(self, records: int, rounds: int) -> None:
        self._records, self._rounds = records, rounds
        self._seeds = count()

    def ms(self, prepared: Sequence[PreparedEvaluator], with_reference: bool) -> float:
        """Milliseconds of CPU a record."""
        return min(self._round(prepared, with_reference) for _ in range(self._rounds)) / self._records * 1e3

    def _round(self, prepared: Sequence[PreparedEvaluator], with_reference: bool) -> float:
        changes: dict[str, None] = {"task": None} if with_reference else {"task": None, "expected": None}
        made = traces(self._records, next(self._seeds))
        records = [msgspec.structs.replace(trace, **changes) for trace in made]
        return cpu_s(lambda: ours(prepared, records), rounds=1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()

    bench = Bench(options.records, options.rounds)
    every = registry.load()
    ids = tuple(id for id, evaluator in every.items() if evaluator.lane == "fast" and evaluator.method in METHODS)
    plan = prepare(every, EvaluatorSettings(enabled=ids, params=PARAMS), "fast", None).prepared
    bench.ms(plan, with_reference=True)  # what is loaded once
    whole = bench.ms(plan, with_reference=False), bench.ms(plan, with_reference=True)
    rows = [
        (each.evaluator.id, bench.ms([each], with_reference=False), bench.ms([each], with_reference=True))
        for each in plan
    ]
    print(f"{'ms of CPU a record':34}{'no reference':>14}{'reference':>14}")
    for name, without, having in sorted(rows, key=lambda row: -row[2]):
        print(f"  {name:32}{without:14.3f}{having:14.3f}")
    print(f"{'all together':34}{whole[0]:14.3f}{whole[1]:14.3f}")
    print(f"{'limit':34}{LIMIT_MS:14.3f}{LIMIT_WITH_REFERENCE_MS:14.3f}")
    return 0 if whole[0] <= LIMIT_MS and whole[1] <= LIMIT_WITH_REFERENCE_MS else 1


if __name__ == "__main__":
    raise SystemExit(main())
