"""Leaks found and falsely found on the labelled corpus, and how fast, against presidio-analyzer and detect-secrets.

python -m benchmarks.leakage     needs extra `dev`, and for the comparison `compare`; takes a minute

Each finds what it can in the same texts in the same run. Recall: positives in whose place something is found, whatever
it is called. Precision: of all places found in positives and negatives, those of a positive. Rate: characters a second
of processor time, on one core, of the corpus and of prose without leaks. presidio runs with its own recognizers for
English and without a language model (spaCy's blank tokenizer): its patterns, check digits and context words.
"""

import logging
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from ragtide.evaluators.leaks import PERSONAL, SECRETS, scanner
from tests.evaluators.leaks.corpus import Example, negatives, positives

THRESHOLD = 0.4  # of presidio's score, as its own documentation recommends against noise
PROSE = tuple(path.read_text() for path in sorted(Path(__file__).parents[1].glob("docs/*.md")))
RUNS = 3


class Place(NamedTuple):
    start: int
    end: int


Find = Callable[[str], Sequence[Place]]


class Result(NamedTuple):
    recall: float
    precision: float
    corpus_per_s: float  # characters
    prose_per_s: float


def ours(kinds: Sequence[str]) -> Find:
    scan, wanted = scanner(), frozenset(kinds)
    return lambda text: [Place(hit.start, hit.end) for hit in scan(text).hits if hit.kind in wanted]


def presidio() -> Find:
    import spacy
    import tldextract
    from presidio_analyzer import AnalyzerEngine
    from presidio_analyzer.nlp_engine import NerModelConfiguration, SpacyNlpEngine

    logging.getLogger("presidio-analyzer").setLevel(logging.ERROR)
    tldextract.tldextract.TLD_EXTRACTOR = tldextract.TLDExtract(suffix_list_urls=())  # its own list, no download

    engine = SpacyNlpEngine(ner_model_configuration=NerModelConfiguration(labels_to_ignore=[]))
    engine.nlp = {"en": spacy.blank("en")}
    analyzer = AnalyzerEngine(nlp_engine=engine, supported_languages=["en"])

    def find(text: str) -> Sequence[Place]:
        found = analyzer.analyze(text, "en", score_threshold=THRESHOLD)
        return [Place(each.start, each.end) for each in found if each.entity_type not in ("DATE_TIME", "URL")]

    return find


def detect_secrets() -> Find:
    from detect_secrets.core.scan import scan_file
    from detect_secrets.settings import default_settings

    file = Path(tempfile.mkstemp(suffix=".txt")[1])  # it reads files: with lines alone it calls every word a secret

    def find(text: str) -> Sequence[Place]:
        file.write_text(text)
        lines = text.splitlines(keepends=True)
        starts = [0, *accumulate(map(len, lines))]
        places = []
        with default_settings():
            for secret in scan_file(str(file)):
                value, number = secret.secret_value or "", secret.line_number - 1
                at = lines[number].find(value)  # a value that was read otherwise counts as its whole line
                start = starts[number] + max(at, 0)
                places.append(Place(start, start + (len(value) if at >= 0 else len(lines[number]))))
        return places

    return find


def measured(find: Find, examples: Sequence[Example]) -> Result:
    found = right = wrong = 0
    for example in examples:
        start = example.text.index(example.value) if example.value else -1
        end = start + len(example.value)
        hits = [place.start < end and start < place.end for place in find(example.text)]
        found += any(hits)
        right += sum(hits)
        wrong += len(hits) - sum(hits)
    leaking = sum(bool(example.value) for example in examples)
    precision = right / (right + wrong) if right + wrong else 1.0
    texts = [example.text for example in examples]
    return Result(found / leaking, precision, rate(find, texts), rate(find, PROSE))


def rate(find: Find, texts: Sequence[str]) -> float:
    best = min(timed(find, texts) for _ in range(RUNS))
    return sum(map(len, texts)) / best


def timed(find: Find, texts: Sequence[str]) -> float:
    start = time.process_time()
    for text in texts:
        find(text)
    return time.process_time() - start


def row(name: str, result: Result) -> str:
    rates = f"{result.corpus_per_s / 1e6:8.3f} {result.prose_per_s / 1e6:8.3f}"
    return f"{name:<28} {result.recall:7.3f} {result.precision:10.3f} {rates}"


def main() -> None:
    harmless = negatives()
    for family, kinds, rival_name, rival in (
        ("personal data", PERSONAL, "presidio-analyzer", presidio),
        ("secrets", SECRETS, "detect-secrets", detect_secrets),
    ):
        leaking = [example for example in positives() if example.kind in kinds]
        examples: list[Any] = [*leaking, *harmless]
        own = measured(ours(kinds), examples)
        varied = len({example.kind for example in leaking})
        print(f"{family}: {len(leaking)} leaks of {varied} kinds, {len(harmless)} texts without")
        print(f"{'':<28} {'recall':>7} {'precision':>10} {'MB/s':>8} {'prose':>8}")
        print(row("ragtide, all kinds at once", own))
        if find_spec(rival_name.replace("-", "_")) is None:
            print(f"{rival_name} is not installed: pip install 'ragtide[compare]'\n")
            continue
        other = measured(rival(), examples)
        print(row(rival_name, other))
        times = (own.corpus_per_s / other.corpus_per_s, own.prose_per_s / other.prose_per_s)
        print(f"rate: {times[0]:.0f} times on the corpus, {times[1]:.0f} times on prose\n")


if __name__ == "__main__":
    main()
