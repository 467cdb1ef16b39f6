"""SQL of a trace's texts, cut at the borders of evidence and judged by it.

Offsets of evidence are characters (code points), as Python counts them: `substringUTF8` and `lengthUTF8` do too. They
fit only texts that are stored as sent (`rest` is not empty): masked texts stay whole.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from ragtide.dashboards.rule_lines import RuleLine
from ragtide.dashboards.sql import Tables
from ragtide.drift.rules import ROUNDING
from ragtide.drift.sql import array, text
from ragtide.evaluators.spec import Evaluator, Metric

Field = Literal["question", "contexts", "answer", "expected"]
VERDICTS = {"bad": "red", "weak": "orange", "good": "green", "noted": "blue", "not judged": "text", "masked": "text"}
LONGEST_PIECE = 4_000  # characters that a table shows
_EVIDENCE = (
    "Array(Tuple(field String, start UInt32, end UInt32, chunk_id String, kind String, score Nullable(Float64)))"
)
# Kinds of evidence that say themselves whether the place is good.
_SPEAKING = {"supported": "good", "unsupported": "bad"}
# Kinds whose score is that of another metric than the evaluator's first one, where they are not called as the metric.
_METRIC_OF_KIND = {"looping_detection": {"longest_repeat": "longest_repeated_substring"}}
_MOST_PIECES = 2_000


class Line(NamedTuple):
    """The line between good and bad values of a metric. `sign` is 1 where small values are bad, else -1."""

    evaluator: str
    key: str
    line: float
    sign: int
    share: bool  # its values go from 0 to 1

    @property
    def metric(self) -> str:
        """`evaluator.metric`."""
        return f"{self.evaluator}.{self.key}"


def lines_of(registry: Mapping[str, Evaluator], rule_lines: Mapping[str, RuleLine]) -> list[Line]:
    """Return the line of every metric that has one: that of its rule, else its own threshold."""
    found = []
    for evaluator in registry.values():
        for metric in evaluator.metrics:
            rule = rule_lines.get(f"{evaluator.id}.{metric.key}")
            line = metric.threshold if rule is None else rule.line
            if line is not None:
                is_min = metric.better == "higher" if rule is None else rule.is_min
                found.append(Line(evaluator.id, metric.key, float(line), 1 if is_min else -1, _is_share(metric)))
    return found


def is_bad(value: str, line: str, sign: str) -> str:
    """Write the condition that a value is on the bad side of its line."""
    return f"({value} - {line}) * {sign} < -{ROUNDING} * abs({line})"


def evidence(tables: Tables, place: str, registry: Mapping[str, Evaluator], lines: Sequence[Line]) -> str:
    """Return a query of all evidence: evaluator, number, field, start, end, chunk_id, kind, score, nearest, verdict.

    `place` is the condition of the trace's rows. `nearest` is the chunk that the evaluator names next to the place.

    A place is bad if its own score is beyond the line of the metric that the score is of, and the record's is too; weak
    if only its own is. Without a score that compares it is bad if the record is, else noted.
    """
    by_metric = {line.metric: line for line in lines}
    firsts = [by_metric[f"{one.id}.{key}"] for one in registry.values() if (key := _first(one, by_metric))]
    other = [
        (f"{evaluator}.{kind}", by_metric[f"{evaluator}.{key}"])
        for evaluator, kinds in _kinds(registry).items()
        for kind, key in kinds.items()
        if f"{evaluator}.{key}" in by_metric
    ]
    names = array((text(line.evaluator) for line in firsts), "String")
    kinds = array((text(kind) for kind, _ in other), "String")

    def of(values: Iterable[object], type_: str, at: str) -> str:
        return f"arrayElement({array(map(str, values), type_)}, {at})"

    own = "indexOf(kinds, concat(evaluator, '.', e.kind))"
    first = "indexOf(firsts, toString(evaluator))"
    shares = [line.share for _, line in other], [line.share for line in firsts]
    compares = f"isNotNull(e.score) AND if(own > 0, {of(map(int, shares[0]), 'UInt8', 'own')}, "
    compares += f"{of(map(int, shares[1]), 'UInt8', 'first')})"
    own_line = f"if(own > 0, {of((line.line for _, line in other), 'Float64', 'own')}, first_line)"
    own_sign = f"if(own > 0, {of((line.sign for _, line in other), 'Int8', 'own')}, first_sign)"
    speaking = "".join(f"e.kind = {text(kind)}, {text(verdict)}, " for kind, verdict in _SPEAKING.items())
    return (
        f"WITH {names} AS firsts, {kinds} AS kinds SELECT evaluator, number, e.field AS field, e.start AS start, "
        "e.end AS end, e.chunk_id AS chunk_id, e.kind AS kind, e.score AS score, "
        f"if(e.field = 'contexts', '', nearest) AS nearest, {first} AS first, {own} AS own, "
        f"{of((line.line for line in firsts), 'Float64', 'first')} AS first_line, "
        f"{of((line.sign for line in firsts), 'Int8', 'first')} AS first_sign, "
        f"arrayElement(metrics, {of((text(line.key) for line in firsts), 'String', 'first')}) AS value, "
        f"first > 0 AND {is_bad('value', 'first_line', 'first_sign')} AS record_bad, "
        f"{compares} AS compares, compares AND {is_bad('ifNull(e.score, 0)', own_line, own_sign)} AS beyond, "
        f"multiIf({speaking}record_bad AND (beyond OR NOT compares), 'bad', beyond, 'weak', compares, 'good', 'noted') "
        "AS verdict FROM (SELECT evaluator, metrics, every, "
        "arrayMap(i -> if(every[i + 1].field = 'contexts', every[i + 1].chunk_id, ''), arrayEnumerate(every)) AS nexts "
        f"FROM (SELECT evaluator, metrics, JSONExtract(evidence, {text(_EVIDENCE)}) AS every "
        f"FROM {tables.name('scores')} FINAL WHERE {place} AND status = 'scored' AND evidence NOT IN ('', '[]'))) "
        "ARRAY JOIN every AS e, nexts AS nearest, arrayEnumerate(every) AS number"
    )


def pieces(tables: Tables, names: str, place: str, evidence_sql: str, field: Field) -> str:
    """Return a query of the consecutive pieces of a trace's texts of that field, in order.

    `names` goes into the WITH of the statement. Columns: rank and chunk (of contexts), text, verdict (the worst of the
    evidence that covers the piece), why, nearest chunk, from (offset). Pieces of white space without evidence belong to
    the piece before.
    """
    spans = (
        f"SELECT groupArray((start, end, chunk_id, indexOf({_ranked()}, verdict), {_why()}, nearest)) "
        f"FROM ({evidence_sql}) WHERE field = {text(field)} AND start < end"
    )
    here = (
        "arrayFilter(s -> s.2 > begin AND s.1 < until, spans)"
        if field == "expected"
        else ("arrayFilter(s -> s.3 = id, spans)")
    )
    # Offsets in expected count over all of them.
    moved = f"arrayMap(s -> (toInt64(s.1) - begin, toInt64(s.2) - begin, s.4, s.5, s.6), {here})"
    return (
        f"WITH {names}, ({spans}) AS spans SELECT {_columns(field)} FROM ("
        "SELECT rank, id, content, is_masked, cut.1 AS start, cut.2 AS end, "
        "arraySort(s -> s.3, arrayFilter(s -> s.1 <= start AND s.2 > start, placed)) AS covering "
        "FROM (SELECT *, arrayFilter(b -> b = 0 OR NOT match(substringUTF8(content, b + 1, "
        "borders[indexOf(borders, b) + 1] - b), '^\\\\s*$') OR arrayExists(s -> s.1 <= b AND s.2 > b, placed), "
        "arrayPopBack(borders)) AS starts FROM (SELECT rank, id, content, is_masked, lengthUTF8(content) AS size, "
        f"begin + size AS until, if(is_masked, [], {moved}) AS placed, "
        "arraySort(arrayDistinct(arrayConcat([toInt64(0), toInt64(size)], arrayFilter(b -> b > 0 AND b < size, "
        "arrayConcat(arrayMap(s -> s.1, placed), arrayMap(s -> s.2, placed)))))) AS borders "
        f"FROM ({_texts(tables, place, field)})) WHERE size > 0) "
        "ARRAY JOIN arrayZip(starts, arrayConcat(arrayPopFront(starts), [toInt64(size)])) AS cut) "
        f"ORDER BY rank, start LIMIT {_MOST_PIECES}"
    )


def _columns(field: Field) -> str:
    verdict = (
        f"multiIf(is_masked, 'masked', empty(covering), 'not judged', arrayElement({_ranked()}, "
        "covering[1].3)) AS verdict"
    )
    piece = f"leftUTF8(substringUTF8(content, start + 1, end - start), {LONGEST_PIECE})"
    why = "arrayStringConcat(arrayDistinct(arrayMap(s -> s.4, covering)), '; ') AS why"
    nearest = "arrayStringConcat(arrayDistinct(arrayFilter(c -> c != '', arrayMap(s -> s.5, covering))), ', ')"
    named = {
        "contexts": f"rank, id AS chunk, {verdict}, {piece} AS text, {why}",
        "expected": f"rank, {verdict}, {piece} AS text, {why}",
    }
    return named.get(field, f"{verdict}, {piece} AS text, {why}, {nearest} AS `nearest chunk`") + ", start AS `from`"


def _texts(tables: Tables, place: str, field: Field) -> str:
    """Return a query of the texts of a field: rank, id, content, begin (offset of the text in its field), is_masked."""
    rows = f"FROM {tables.name('trace_texts')} FINAL WHERE {place}"
    if field == "contexts":
        each = "ARRAY JOIN arrayZip(arrayResize(chunk_ids, length(chunks)), chunks, arrayEnumerate(chunks)) AS c"
        columns = "c.3 AS rank, c.1 AS id, c.2 AS content, toInt64(0) AS begin"
        return f"SELECT {columns}, is_masked FROM (SELECT chunk_ids, chunks, rest = '' AS is_masked {rows}) {each}"
    if field == "expected":
        offsets = "arrayPopBack(arrayPushFront(arrayCumSum(arrayMap(t -> toInt64(lengthUTF8(t)), expected)), 0))"
        each = f"ARRAY JOIN arrayZip(expected, {offsets}, arrayEnumerate(expected)) AS c"
        columns = "c.3 AS rank, '' AS id, c.1 AS content, c.2 AS begin"
        return f"SELECT {columns}, is_masked FROM (SELECT expected, rest = '' AS is_masked {rows}) {each}"
    return (
        f"SELECT 1 AS rank, '' AS id, ifNull({field}, '') AS content, toInt64(0) AS begin, rest = '' AS "
        f"is_masked {rows}"
    )


def _ranked() -> str:
    """Write the verdicts, the worst first."""
    return array(map(text, list(VERDICTS)[:4]), "String")


def _why() -> str:
    score = "if(isNull(score), '', concat(' ', toString(round(ifNull(score, 0), 2))))"
    return f"concat(evaluator, ': ', replaceAll(kind, '_', ' '), {score})"


def _first(evaluator: Evaluator, by_metric: Mapping[str, Line]) -> str:
    """Return the key of the metric that judges a record: the first primary one with a line; empty if there is none."""
    keys = (metric.key for metric in evaluator.metrics if metric.primary and not metric.per)
    return next((key for key in keys if f"{evaluator.id}.{key}" in by_metric), "")


def _kinds(registry: Mapping[str, Evaluator]) -> dict[str, dict[str, str]]:
    """Return by evaluator the metric that each kind of evidence has its score of: the one of its name, or as listed."""
    return {
        evaluator.id: {metric.key: metric.key for metric in evaluator.metrics} | _METRIC_OF_KIND.get(evaluator.id, {})
        for evaluator in registry.values()
    }


def _is_share(metric: Metric) -> bool:
    return (metric.low, metric.high) == (0.0, 1.0)
