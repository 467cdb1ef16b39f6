"""SQL that bounds the parts of a window: the labels of so many classes at most, one of them for all others.

`evaluators.parts` says what keys are made of. Counts of keys that become one are added.
"""

from collections.abc import Iterable

from drift.windows import sql
from evaluators.parts import MOST_CLASSES, POOLED

_TAB = r"'\t'"


def pooled(rows: str, evaluator: str, evaluators: Iterable[str]) -> str:
    """SELECT of the same rows, `parts` bounded where the expression `evaluator` is one of these.

    The classes with the largest counts keep their labels; of equal ones the first by name.
    """
    own = f"{evaluator} IN {sql.texts(evaluators)}"
    bounded = f"if(place = 1 OR has(kept, part), part, {sql.text(POOLED)})"
    return f"""
    SELECT * EXCEPT (parts, keys, counts, weights, kept, bounded),
        if(empty(kept), parts, mapFromArrays(bounded.1, bounded.2)) AS parts
    FROM (
        SELECT *, arrayReduce(
            'sumMap',
            arrayMap(
                key -> [arrayStringConcat(arrayMap((part, place) -> {bounded}, key, arrayEnumerate(key)), {_TAB})],
                if(empty(kept), [], keys)
            ),
            arrayMap(n -> [n], if(empty(kept), [], counts))
        ) AS bounded
        FROM (
            SELECT *, if(length(weights.1) <= {MOST_CLASSES}, [], arrayMap(one -> one.1, arraySlice(arraySort(
                one -> (one.1 = {sql.text(POOLED)}, -one.2, one.1), arrayZip(weights.1, weights.2)
            ), 1, {MOST_CLASSES - 1}))) AS kept
            FROM (
                SELECT *, arrayReduce(
                    'sumMap',
                    arrayMap(key -> arrayDistinct(arraySlice(key, 2)), keys),
                    arrayMap((key, n) -> arrayWithConstant(length(arrayDistinct(arraySlice(key, 2))), n), keys, counts)
                ) AS weights
                FROM (
                    SELECT *, if({own}, arrayMap(key -> splitByChar({_TAB}, key), mapKeys(parts)), []) AS keys,
                        if({own}, mapValues(parts), []) AS counts
                    FROM ({rows})
                )
            )
        )
    )"""
