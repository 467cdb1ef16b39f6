"""Parts of one record, and the metrics of a window from their sums.

Parts: `records`, `correct` (all classes as expected), `scored` (records with scores); by class `truth`, `guess`, `hit`
(both) and `lost` (expected, and nothing was predicted); by expected and predicted class `confusion`, of single-label
records; `positive`, the class named so by the settings. Of scores, by class and with the bin after a dot: `pos` where
the class was expected, `neg` where it was not, and `top`, the highest score of a record that expected it. A record with
scores, but none of the class, has 0 there: in `pos` it is counted; `neg` lacks it, so that a record adds only what it
names, and `combine` knows the number from `scored`.
"""

from collections.abc import Iterable, Mapping, Sequence

from ragtide.evaluators.classification.labels import Classes
from ragtide.evaluators.classification.score_bins import roc_auc, score_bin
from ragtide.evaluators.parts import POOLED, ClassValue, Combined, hidden_label, name_and_labels, part_key

_PAIRS = ("yes", "no"), ("true", "false"), ("1", "0"), ("positive", "negative"), ("pos", "neg")
_POSITIVE = {label: pair[0] for pair in _PAIRS for label in pair}
_Counts = dict[str, float]


def parts_of(record: Classes, positive: str | None) -> dict[str, float]:
    """Return a count of 1 for each key that the record adds to."""
    hits = record.expected & record.predicted
    keys = ["records"]
    keys += ["correct"] if record.expected == record.predicted else []
    keys += [part_key("positive", positive)] if positive else []
    keys += [part_key("truth", label) for label in record.expected]
    keys += [part_key("guess", label) for label in record.predicted]
    keys += [part_key("hit", label) for label in hits]
    if not record.predicted:
        keys += [part_key("lost", label) for label in record.expected]
    elif not record.multi:
        keys += [part_key("confusion", *record.expected, *record.predicted)]
    if record.scores:
        keys += ["scored", *_score_keys(record.expected, record.scores)]
    return dict.fromkeys(sorted(keys), 1.0)


def _score_keys(expected: Iterable[str], scores: Mapping[str, float]) -> Iterable[str]:
    top = score_bin(max(scores.values()))
    for label in expected:
        yield part_key(f"pos.{score_bin(scores.get(label, 0.0))}", label)
        yield part_key(f"top.{top}", label)
    for label in scores.keys() - set(expected):
        yield part_key(f"neg.{score_bin(scores[label])}", label)


def combine(parts: Mapping[str, float]) -> Combined:
    """Compute the metrics of a window, without undefined ones (0 / 0)."""
    records = parts.get("records", 0.0)
    if not records:
        return Combined()
    classes = _by_class(parts)
    positive = _positive(classes)
    metrics: dict[str, float | None] = {"accuracy": parts.get("correct", 0.0) / records}
    metrics |= _averages(list(classes.values()))
    of_positive = {} if positive is None else _quotients(classes.get(positive, {}))
    for key in ("precision", "recall", "f1"):
        metrics[key] = metrics[f"macro_{key}"] if positive is None else of_positive[key]
    ranked = sorted(classes.keys() - {POOLED}) if positive is None else [positive]
    areas = [_area(classes.get(label, {}), parts.get("scored", 0.0)) for label in ranked]
    metrics["roc_auc"] = _mean([area for area in areas if area is not None])
    return Combined({key: value for key, value in metrics.items() if value is not None}, _per_class(classes))


def _by_class(parts: Mapping[str, float]) -> dict[str, _Counts]:
    """Group the counts of single classes by class and name.

    A hidden wrong answer gets its label back if a record of the window expected that class.
    """
    split = [
        (name, labels[0], count)
        for (name, labels), count in ((name_and_labels(key), count) for key, count in parts.items())
        if len(labels) == 1
    ]
    known = {hidden_label(label): label for name, label, _ in split if name == "truth"}
    classes: dict[str, _Counts] = {}
    for name, label, count in split:
        one = classes.setdefault(known.get(label, label), {})
        one[name] = one.get(name, 0.0) + count
    return classes


def _positive(classes: Mapping[str, _Counts]) -> str | None:
    """Return the positive class: that of the settings, else of a known pair if it has all expected classes."""
    named = [label for label, one in classes.items() if "positive" in one]
    pairs = {_POSITIVE.get(label.casefold()) for label, one in classes.items() if "truth" in one}
    wanted = named[0] if named else pairs.pop() if len(pairs) == 1 else None
    if wanted is None:
        return None
    spelt = [label for label, one in classes.items() if label.casefold() == wanted.casefold() and _occurs(one)]
    return min(spelt, key=lambda label: (label != wanted, label), default=wanted)


def _occurs(one: _Counts) -> bool:
    return "truth" in one or "guess" in one


def _quotients(one: _Counts) -> dict[str, float | None]:
    truth, guess, hit = (one.get(key, 0.0) for key in ("truth", "guess", "hit"))
    return {
        "precision": hit / guess if guess else None,
        "recall": hit / truth if truth else None,
        "f1": 2 * hit / (truth + guess) if truth + guess else None,
    }


def _averages(classes: Sequence[_Counts]) -> dict[str, float | None]:
    """Micro: from the sums over classes. Macro: the mean over expected or predicted classes, 0 / 0 being 0."""
    total = {key: sum(one.get(key, 0.0) for one in classes) for key in ("truth", "guess", "hit")}
    averaged = {f"micro_{key}": value for key, value in _quotients(total).items()}
    found = [_quotients(one) for one in classes if _occurs(one)]
    for key in ("precision", "recall", "f1"):
        averaged[f"macro_{key}"] = _mean([one[key] or 0.0 for one in found])
    return averaged


def _per_class(classes: Mapping[str, _Counts]) -> dict[str, dict[tuple[str, ...], ClassValue]]:
    """Precision counts predictions of the class, recall records that expect it, F1 both."""
    per: dict[str, dict[tuple[str, ...], ClassValue]] = {}
    for label, one in sorted(classes.items()):
        truth, guess, hit = (int(one.get(key, 0.0)) for key in ("truth", "guess", "hit"))
        records = {"precision": guess, "recall": truth, "f1": truth + guess - hit}
        for key, value in _quotients(one).items():
            if value is not None:
                per.setdefault(f"class_{key}", {})[label,] = ClassValue(value, records[key])
    return per


def _area(one: _Counts, scored: float) -> float | None:
    """Return the area under the ROC curve of the class against the rest, over all records with scores."""
    positive, negative = _bins(one, "pos."), _bins(one, "neg.")
    without = scored - sum(positive.values()) - sum(negative.values())
    if without > 0:
        negative[0] = negative.get(0, 0.0) + without
    return roc_auc(positive, negative)


def _bins(one: _Counts, kind: str) -> dict[int, float]:
    return {int(name.removeprefix(kind)): count for name, count in one.items() if name.startswith(kind)}


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
