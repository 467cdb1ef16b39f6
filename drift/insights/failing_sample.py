"""Read a random sample of a period's traces: failed metrics, vectors and traits of each.

The first words of a question tell its type, in English, German, French and Spanish."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ragtide.drift import sql
from ragtide.drift.insights.model import IN_PERIOD, AppEnvironment, Period
from ragtide.drift.rules import Rule, bound_parameters
from ragtide.drift.stats import Share
from ragtide.drift.topics import ENCODED_VECTOR, TOPIC, decode_vectors
from ragtide.evaluators.spec import Vectors
from ragtide.sinks.clickhouse.database import Database

OTHER = "other"
_HEAD = 200  # characters in which the first words stand
_MAX_WORDS = 6  # words that are read


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WORD = re.compile(r"[^\W\d_]+")
_PLEASE = re.compile(r"s['\u2019]il (?:vous|te) pla[iî]t|por favor")
_SKIPPED = _words(
    "please hi hello hey ok okay so and but also well bitte hallo und aber also na bonjour salut et mais alors "
    "hola y pero entonces"
)
_PREPOSITIONS = _words(
    "in at for to from with by on of about since until mit für von bei an auf zu seit bis über aus à de dans pour avec "
    "depuis en par sur por para con desde hasta sobre a"
)
_WORDS = {
    "who": "who whose whom wer wem wen wessen qui quién quien quiénes quienes",
    "what": "what whats which welche welcher welches welchen welchem que quoi quel quelle quels quelles qu qué cuál "
    "cual cuáles cuales worum woran womit wofür",
    "when": "when wann quand cuándo cuando",
    "where": "where wo woher wohin où dónde donde adónde",
    "how": "how wie comment cómo como",
    "how_many": "wieviel wieviele combien cuánto cuánta cuántos cuántas cuanto cuanta cuantos cuantas",
    "why": "why warum wieso weshalb pourquoi",
    "yes_no": "is are am were do does did can could will would shall should may might must has have had isn aren don "
    "doesn didn won wouldn shouldn ist sind bin war waren hat haben kann können könnte darf dürfen muss müssen soll "
    "sollte sollten wird werden würde gibt peut puis peux pouvez est sont ai as avons avez ont",
    "command": "tell show list explain give find write summarize summarise translate compare describe create help make "
    "define calculate suggest recommend erkläre erklär zeige zeig nenne liste schreibe finde gib beschreibe vergleiche "
    "übersetze hilf explique expliquez montre montrez donne donnez écris écrivez décris décrivez traduis traduisez "
    "résume résumez explica explique muestra muéstrame dime dame escribe traduce resume enumera",
}
_TYPE_OF = {word: kind for kind, words in _WORDS.items() for word in words.split()}
_PHRASES = {
    ("how", "many"): "how_many",
    ("how", "much"): "how_many",
    ("how", "come"): "why",
    ("wie", "viel"): "how_many",
    ("wie", "viele"): "how_many",
    ("por", "qué"): "why",
    ("por", "que"): "why",
    ("est", "ce"): "yes_no",
    ("can", "you"): "command",
    ("could", "you"): "command",
    ("would", "you"): "command",
    ("will", "you"): "command",
}
# English "was" asks for yes or no, the German one for a thing: what follows it tells.
_AFTER_WAS = _words("the it there this that he she a an my your his her our their any i you we they")
TYPES = (*_WORDS, OTHER)


def question_type(question: str) -> str:
    """Return one of `TYPES`; `other` if the first words decide none."""
    head = _PLEASE.sub(" ", question[:_HEAD].casefold())
    words = [word for word in _WORD.findall(head)[:_MAX_WORDS] if word not in _SKIPPED]
    if not words:
        return OTHER
    pair = (words[0], words[1] if len(words) > 1 else "")
    if pair in _PHRASES:
        return _PHRASES[pair]
    if words[0] == "was":
        return "yes_no" if pair[1] in _AFTER_WAS else "what"
    if words[0] in _TYPE_OF:
        return _TYPE_OF[words[0]]
    if words[0] in _PREPOSITIONS:
        asked = _TYPE_OF.get(pair[1], OTHER)
        return OTHER if asked in ("yes_no", "command") else asked
    return "yes_no" if question.lstrip().startswith("¿") else OTHER


_APP_PERIOD = f"run_id = 'live' AND app = {{app:String}} AND {IN_PERIOD}"
_MAX_EXAMPLES = 10


@dataclass(frozen=True, slots=True)
class SampledTrace:
    """One trace; `failed_metrics` are quality metrics out of bounds, `sample_key` is a random number."""

    trace_id: str
    sample_key: int
    failed_metrics: tuple[str, ...]
    traits: Mapping[str, str]  # topic, question type, model, prompt version and segments, where known
    vector_row: int | None = None  # of `TraceSample.vectors`


@dataclass(frozen=True, slots=True, eq=False)
class TraceSample:
    """Traces of one environment; `vectors` (float32 [n, dimension]) are of one encoder."""

    app: str
    environment: str
    traces: Sequence[SampledTrace]
    vectors: Vectors

    @property
    def where(self) -> AppEnvironment:
        """Whose traces they are."""
        return AppEnvironment(self.app, self.environment)

    def examples(self, traits: Mapping[str, str]) -> list[str]:
        """Ids of the worst failing traces with these traits."""
        return example_ids(one for one in self.traces if traits.items() <= one.traits.items())


def failing(traces: Iterable[SampledTrace]) -> list[SampledTrace]:
    """Select failing traces, in most metrics first."""
    found = (one for one in traces if one.failed_metrics)
    return sorted(found, key=lambda one: (-len(one.failed_metrics), one.sample_key))


def example_ids(traces: Iterable[SampledTrace]) -> list[str]:
    """Ids of the worst failing traces, ten at most."""
    return [one.trace_id for one in failing(traces)[:_MAX_EXAMPLES]]


def failure_share(traces: Sequence[SampledTrace]) -> Share:
    """Return the share of traces that failed."""
    return Share(sum(bool(one.failed_metrics) for one in traces), len(traces))


def select_failed_metrics(rules: Mapping[str, Rule]) -> str:
    """SELECT of environment, trace_id and `bad` (metrics out of the bounds of rules), of live traces of a period.

    Needs `rule_bounds_query` before it, and parameters app, start and end.
    """
    return f"""
        SELECT environment, trace_id, any(model) AS some_model, any(prompt_version) AS some_prompt,
            any(segments) AS some_segments, groupArrayIf(metric, value < least[at] OR value > greatest[at]) AS bad
        FROM (
            SELECT environment, trace_id, model, prompt_version, segments, concat(evaluator, '.', key) AS metric, value,
                indexOf(names, metric) AS at
            FROM scores FINAL ARRAY JOIN mapKeys(metrics) AS key, mapValues(metrics) AS value
            WHERE {_APP_PERIOD} AND status = 'scored'
            AND evaluator IN {sql.texts(sorted({n.split(".")[0] for n in rules}))}
        )
        WHERE at > 0
        GROUP BY environment, trace_id"""


def rule_bounds_query(rules: Mapping[str, Rule]) -> str:
    """WITH clause that `select_failed_metrics` reads."""
    names = sorted(rules)
    least, greatest = ([repr(bound_parameters(rules[name])[side]) for name in names] for side in ("least", "greatest"))
    return (
        f"WITH {sql.array(map(sql.text, names), 'String')} AS names, {sql.array(least, 'Float64')} AS least, "
        f"{sql.array(greatest, 'Float64')} AS greatest"
    )


def read_samples(
    database: Database, app: str, rules: Mapping[str, Rule], period: Period, max_traces: int
) -> list[TraceSample]:
    """Scored traces of the app with their questions' vectors, by environment; repeated reads give the same traces."""
    bound: dict[str, Any] = {"app": app, **period.bound}
    rows = database.rows(
        f"{rule_bounds_query(rules)} SELECT *, cityHash64(trace_id) AS lot FROM ({select_failed_metrics(rules)}) "
        "ORDER BY lot, environment, trace_id LIMIT {most:UInt64}",
        {**bound, "most": max_traces},
    )
    if not rows:
        return []
    # Of other tables those with a hash as low: no list of ids goes back, and no join holds their vectors in memory.
    in_sample = f"{_APP_PERIOD} AND cityHash64(trace_id) <= {{lot:UInt64}}"
    bound["lot"] = rows[-1]["lot"]
    embedded = database.rows(
        f"SELECT environment, trace_id, topic, model, {ENCODED_VECTOR} AS encoded FROM embeddings FINAL "
        f"WHERE {in_sample}",
        bound,
    )
    questions = database.rows(
        f"SELECT environment, trace_id, substringUTF8(ifNull(question, ''), 1, {_HEAD}) AS head "
        f"FROM trace_texts FINAL WHERE {in_sample}",
        bound,
    )
    found = []
    for environment in sorted({row["environment"] for row in rows}):
        here, vectors, heads = (
            {row["trace_id"]: row for row in table if row["environment"] == environment}
            for table in (rows, embedded, questions)
        )
        types = {trace_id: question_type(row["head"]) for trace_id, row in heads.items() if row["head"].strip()}
        found.append(_sample(AppEnvironment(app, environment), here, vectors, types))
    return found


def _sample(
    where: AppEnvironment,
    rows: Mapping[str, Mapping[str, Any]],
    vectors: Mapping[str, Mapping[str, Any]],
    types: Mapping[str, str],
) -> TraceSample:
    """Make the sample, by trace id; with vectors of the encoder that most of the traces have."""
    encoders = Counter(vectors[trace_id]["model"] for trace_id in rows if trace_id in vectors)
    encoder = min(encoders, key=lambda name: (-encoders[name], name), default="")
    traces: list[SampledTrace] = []
    encoded: list[str] = []
    for trace_id, row in rows.items():
        own = vectors.get(trace_id)
        traits = {
            **row["some_segments"],
            "model": row["some_model"],
            "prompt_version": row["some_prompt"],
            "question_type": types.get(trace_id, ""),
        }
        if own:
            traits[TOPIC] = own["topic"]
        vector_row = None
        if own and own["model"] == encoder:
            vector_row = len(encoded)
            encoded.append(own["encoded"])
        known = {name: value for name, value in traits.items() if value}
        traces.append(SampledTrace(trace_id, row["lot"], tuple(sorted(row["bad"])), known, vector_row))
    return TraceSample(*where, traces, decode_vectors(encoded) if encoded else np.zeros((0, 0), np.float32))
