"""The n-gram evaluators against rouge_score, sacrebleu and NLTK, record by record on one core.

`python -m benchmarks.ngrams [--records 200] [--rounds 5]`: answers of about 120 words and references of about 60, cut
from the demo's own corpus. ROUGE, BLEU and METEOR must come out equal, and at `GOAL` times the rate of the libraries or
more: rouge_score's four scores, NLTK's sentence_bleu (BLEU-1 to BLEU-4 in one call, cheaper than sacrebleu's four) on
sacrebleu's tokens, and NLTK's METEOR on NLTK's own. Ours run as in a worker, through the engine. CPU time of the best
round counts, since other processes only ever slow things down. `benchmarks.fast_lane` tells each one's share.
"""

import argparse
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from ragtide.evaluators import registry
from ragtide.evaluators.outcome import Outcome, Scored
from ragtide.evaluators.plan import PreparedEvaluator, prepare
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.run import run_all
from ragtide.evaluators.settings import EvaluatorSettings
from ragtide.evaluators.text import sentences
from ragtide.evaluators.trace import Chunk, Trace
from ragtide.stream.demo import corpus

GOAL = 3.0
COMPARED = ("bleu", "meteor", "rouge")
TOLERANCE = 1e-9
ANSWER, REFERENCE, CHUNK, CHUNKS = 120, 60, 150, 5  # words


def traces(count: int, seed: int = 0) -> list[Trace]:
    """Answers that say half of their reference in its own words, in another order, and as much again besides."""
    passages = corpus.read(lambda text: [sentence.text for sentence in sentences.split(text)])
    pool = [sentence for passage in passages for sentence in passage.sentences]
    draw = random.Random(seed)

    def some(words: int) -> list[str]:
        told: list[str] = []
        while sum(len(sentence.split()) for sentence in told) < words:
            told.append(draw.choice(pool))
        return told

    made = []
    for number in range(count):
        expected = some(REFERENCE)
        kept = draw.sample(expected, len(expected) // 2 + 1)
        answer = [*kept, *some(ANSWER - sum(len(sentence.split()) for sentence in kept))]
        draw.shuffle(answer)
        made.append(
            Trace(
                trace_id=str(number),
                time=datetime(2026, 1, 1, tzinfo=UTC),
                app="benchmark",
                task="summarization",
                question=draw.choice(pool),
                answer=" ".join(answer),
                expected=(" ".join(expected),),
                contexts=tuple(Chunk(id=str(i), text=" ".join(some(CHUNK))) for i in range(CHUNKS)),
            )
        )
    return made


class Libraries:
    """The reference implementations, each called as its manual says."""

    def __init__(self) -> None:
        from nltk.tokenize.destructive import NLTKWordTokenizer
        from nltk.translate import bleu_score, meteor_score
        from rouge_score.rouge_scorer import RougeScorer
        from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

        self._rouge = RougeScorer(["rouge1", "rouge2", "rougeL", "rougeLsum"])
        self._mteval, self._treebank = Tokenizer13a(), NLTKWordTokenizer()
        self._bleu, self._meteor = bleu_score.sentence_bleu, meteor_score.meteor_score
        self._weights = [tuple(1 / order for _ in range(order)) for order in (1, 2, 3, 4)]

    def synsets(self, word: str) -> list[Any]:
        """No synonyms: NLTK's METEOR asks for a WordNet, and ours matches none either."""
        return []

    def score(self, trace: Trace) -> dict[str, float]:
        answer, [reference] = trace.answer or "", trace.expected or ()
        rouge = self._rouge.score(reference, answer)
        tokens = [self._mteval(text).split() for text in (answer, reference)]
        bleu = self._bleu([tokens[1]], tokens[0], self._weights, smoothing_function=one_more)
        words = [self._treebank.tokenize(text) for text in (answer, reference)]
        return {
            "rouge.rouge_1": rouge["rouge1"].fmeasure,
            "rouge.rouge_2": rouge["rouge2"].fmeasure,
            "rouge.rouge_l": rouge["rougeL"].fmeasure,
            "rouge.rouge_lsum": rouge["rougeLsum"].fmeasure,
            **{f"bleu.bleu_{order}": value for order, value in enumerate(bleu, 1)},
            "meteor.meteor": self._meteor([words[1]], words[0], wordnet=self),
        }


def one_more(precisions: Sequence[Fraction], **_: object) -> list[Fraction]:
    """One more hit and one more n-gram of each order, as Hugging Face smooths; NLTK's fractions are not reduced."""
    return [Fraction(each.numerator + 1, each.denominator + 1) for each in precisions]


def plan(ids: Sequence[str]) -> tuple[PreparedEvaluator, ...]:
    return prepare(registry.load(), EvaluatorSettings(enabled=tuple(ids)), None, None).prepared


def ours(prepared: Sequence[PreparedEvaluator], records: Sequence[Trace]) -> list[list[Outcome | None]]:
    return run_all(prepared, records, Resources().batch())


def by_record(
    prepared: Sequence[PreparedEvaluator], outcomes: Sequence[Sequence[Outcome | None]]
) -> Iterator[dict[str, float]]:
    for row in zip(*outcomes, strict=True):
        named = zip(prepared, row, strict=True)
        yield {
            f"{each.evaluator.id}.{key}": value
            for each, outcome in named
            if isinstance(outcome, Scored)
            for key, value in outcome.metrics.items()
        }


def differing(one: Mapping[str, float], other: Mapping[str, float]) -> bool:
    return one.keys() != other.keys() or any(abs(one[key] - other[key]) > TOLERANCE for key in one)


def cpu_s(work: Callable[[], object], rounds: int) -> float:
    """CPU time of the best round."""

    def spent() -> float:
        start = time.process_time()
        work()
        return time.process_time() - start

    return min(spent() for _ in range(rounds))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()

    records, libraries, compared = traces(options.records), Libraries(), plan(COMPARED)
    theirs = [libraries.score(record) for record in records]
    wrong = sum(map(differing, by_record(compared, ours(compared, records)), theirs))

    def libraries_one_by_one() -> None:
        for record in records:
            libraries.score(record)

    us = 1e6 / len(records)
    slow = cpu_s(libraries_one_by_one, options.rounds) * us
    fast = cpu_s(lambda: ours(compared, records), options.rounds) * us
    print(f"{len(records)} records, {len(records) - wrong} of them with equal ROUGE, BLEU and METEOR")
    print(f"rouge_score, sacrebleu and NLTK {slow:8.0f} µs a record")
    print(f"ragtide                        {fast:8.0f} µs a record")
    print(f"ratio                           {slow / fast:8.1f} (goal {GOAL:g})")
    return 1 if wrong or slow / fast < GOAL else 0


if __name__ == "__main__":
    raise SystemExit(main())
