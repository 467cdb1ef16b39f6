"""SQL that bounds the parts of a window: the labels of so many classes at most, one of them for all others.

`evaluators.parts` says what keys are made of. Counts of keys that become one are added.
"""

from drift.windows import sql
from evaluators.parts import MOST_CLASSES, POOLED

_MOST_COPIES = 5_000_000


def pooled(parts: str) -> str:
    """Expression: the map `parts` bounded. The classes with the largest counts keep their labels, of equal ones the
    first by name.
    """
    keys = rf"arrayMap(part -> splitByChar('\t', part), mapKeys({parts}))"
    labels = "arrayDistinct(arraySlice(key, 2))"
    weights = (
        f"arrayReduce('sumMap', arrayMap(key -> {labels}, keys), "
        f"arrayMap((key, n) -> arrayWithConstant(length({labels}), n), keys, mapValues({parts})))"
    )
    order = f"(one.1 = {sql.text(POOLED)}, -one.2, one.1)"
    # Labels that are kept are copied for each key: where keys are very many, as where every record has a class of its
    # own, they must be fewer.
    most = f"least({MOST_CLASSES - 1}, intDiv({_MOST_COPIES}, greatest(length(keys), 1)))"
    kept = f"arraySlice(arraySort(one -> {order}, arrayZip(weights.1, weights.2)), 1, {most}).1"
    bounded = f"if(place = 1 OR has(kept, part), part, {sql.text(POOLED)})"
    summed = (
        "arrayReduce('sumMap', arrayMap(key -> [arrayStringConcat("
        rf"arrayMap((part, place) -> {bounded}, key, arrayEnumerate(key)), '\t')], keys), "
        f"arrayMap(n -> [n], mapValues({parts})))"
    )
    pool = _let("kept", kept, _let("summed", summed, "mapFromArrays(summed.1, summed.2)"))
    return _let("keys", keys, _let("weights", weights, f"if(length(weights.1) <= {MOST_CLASSES}, {parts}, {pool})"))


def _let(name: str, value: str, then: str) -> str:
    """Expression: `then`, in which `name` is `value`, worked out and analysed once."""
    return f"arrayMap({name} -> {then}, [{value}])[1]"
