"""Check whether answers to the same question contradict each other.

An answer conflicts if it differs from more than half of the others. So of two camps the smaller one conflicts, and one
wrong pair does not make ten answers a conflict.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ragtide.drift import sql
from ragtide.drift.checks import CheckContext, Observation
from ragtide.drift.problems import Detection, ProblemKey, build_details
from ragtide.drift.robustness.perturbation_links import STREAM, id_batches
from ragtide.drift.robustness.repeated_questions import (
    AnswerPair,
    Consistency,
    RepeatedQuestions,
    above_limit,
    describe_share,
    share_attributes,
)
from ragtide.drift.settings import RuleSettings
from ragtide.drift.stats import Share
from ragtide.drift.text import scope_label, timestamp
from ragtide.evaluators.encoder.thresholds import ENCODER_THRESHOLDS, EncoderThresholds
from ragtide.evaluators.spec import Vectors
from ragtide.sinks.clickhouse.database import Database

ConflictType = Literal["refusal", "stance", "claims", "meaning"]
STANCE = "stance"
_MIN_ANSWERS = 3  # answers with a claim of one kind, or with vectors: of two, neither is in the majority


@dataclass(frozen=True, slots=True, eq=False)
class AnswerFeatures:
    """Features of an answer: claims by kind, as hashes; `vector` of any length, of the same encoder as the others."""

    trace_id: str
    is_refusal: bool | None = None
    claims: Mapping[str, frozenset[str]] = field(default_factory=dict)
    vector: Vectors | None = None

    @property
    def is_known(self) -> bool:
        """Whether there is anything to compare."""
        return self.is_refusal is not None or bool(self.claims) or self.vector is not None


class AnswerConflict(NamedTuple):
    """A conflict: its type, the trace id of an answer that conflicts with most others, and of one of those."""

    by: ConflictType
    odd: str
    other: str


def find_conflict(answers: Sequence[AnswerFeatures], min_cosine: float | None) -> AnswerConflict | None:
    """Find the clearest conflict. `min_cosine`: smallest cosine of answers that agree; None: not known."""
    found = _refusal_conflict(answers)
    if found is None:
        answering = [one for one in answers if not one.is_refusal]
        found = next(_claim_conflicts(answering), None)
        if found is None and min_cosine is not None:
            found = _meaning_conflict(answering, min_cosine)
    return found


def _refusal_conflict(answers: Sequence[AnswerFeatures]) -> AnswerConflict | None:
    refused = [one for one in answers if one.is_refusal]
    answered = [one for one in answers if one.is_refusal is False]
    if not refused or not answered:
        return None
    odd, other = sorted((refused, answered), key=len)
    return AnswerConflict("refusal", odd[0].trace_id, other[0].trace_id)


def _claim_conflicts(answers: Sequence[AnswerFeatures]) -> Iterator[AnswerConflict]:
    """Find conflicts of claims, by kind; answers without a claim of that kind do not count."""
    kinds = {kind for one in answers for kind in one.claims}
    for kind in sorted(kinds, key=lambda kind: (kind != STANCE, kind)):
        stating = [one for one in answers if kind in one.claims]
        if len(stating) < _MIN_ANSWERS:
            continue
        for one in stating:
            against = [other for other in stating if one.claims[kind].isdisjoint(other.claims[kind])]
            if 2 * len(against) > len(stating) - 1:
                by: ConflictType = "stance" if kind == STANCE else "claims"
                yield AnswerConflict(by, one.trace_id, against[0].trace_id)


def _meaning_conflict(answers: Sequence[AnswerFeatures], min_cosine: float) -> AnswerConflict | None:
    """Find an answer whose median cosine to the others is too low."""
    known = [(one.trace_id, one.vector) for one in answers if one.vector is not None]
    if len(known) < _MIN_ANSWERS:
        return None
    vectors = np.stack([vector for _, vector in known])
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, np.nan)
    nearness = np.nanmedian(cosines, axis=1)
    odd = int(nearness.argmin())
    if nearness[odd] >= min_cosine:
        return None
    return AnswerConflict("meaning", known[odd][0], known[int(np.nanargmin(cosines[odd]))][0])


MAX_ANSWERS = 10  # newest ones of a question: of hundreds one differs by chance
MAX_TRACES = 20_000  # of an application, about; with more, questions are a random sample
_REFUSALS = "unsuccessful_requests"  # evaluator; where its metric `unsuccessful` is 1, the answer is none
_WITHIN = (
    f"{STREAM} AND app = {{app:String}} AND time >= {{since:DateTime64(3, 'UTC')}} "
    "AND time < {until:DateTime64(3, 'UTC')}"
)
_NUMBERS = "arrayStringConcat(arrayMap(number -> hex(number), answer))"  # a tenth of the memory of lists

_Row = Mapping[str, Any]
_Key = tuple[str, str]  # environment, trace id


class RepeatedQuestion(NamedTuple):
    """A question under one prompt version, and its answers with features, the newest first."""

    environment: str
    model: str
    encoder: str  # of all vectors of the answers; empty: there are none
    first: datetime
    last: datetime
    answers: Sequence[AnswerFeatures]


def read_repeated_questions(
    database: Database, app: str, min_repeats: int, since: datetime, until: datetime
) -> Iterator[RepeatedQuestion]:
    """Read questions with at least `min_repeats` answers with features, in a fixed order."""
    within = {"app": app, "since": since, "until": until}
    rows = _newest_traces(database, within, min_repeats)
    ids = {row["trace_id"] for row in rows}
    embedded, refusals = _embeddings(database, within, ids), _refusals(database, within, ids)
    groups: dict[tuple[str, ...], list[_Row]] = defaultdict(list)
    for row in rows:
        groups[row["environment"], row["model"], row["prompt_version"], row["question_hash"]].append(row)
    for (environment, model, *_), some in groups.items():
        keys = [(environment, row["trace_id"]) for row in some]
        encoder = _encoder([embedded[key] for key in keys if key in embedded])
        made = [
            (row["time"], _features(key, embedded.get(key), refusals, encoder))
            for row, key in zip(some, keys, strict=True)
        ]
        known = [(time, answer) for time, answer in made if answer.is_known]
        if len(known) >= min_repeats:
            times = [time for time, _ in known]
            yield RepeatedQuestion(environment, model, encoder, min(times), max(times), [answer for _, answer in known])


def answer_features(
    trace_id: str, is_refusal: bool | None, claims: Sequence[str], numbers: npt.NDArray[np.int8]
) -> AnswerFeatures:
    """Make features from the columns of `embeddings`; without numbers there is no vector."""
    by_kind: dict[str, set[str]] = defaultdict(set)
    for claim in claims:
        kind, _, value = claim.partition(":")
        by_kind[kind].add(value)
    stated = {kind: frozenset(values) for kind, values in by_kind.items()}
    return AnswerFeatures(trace_id, is_refusal, stated, numbers.astype(np.float32) if numbers.size else None)


def _newest_traces(database: Database, within: Mapping[str, Any], min_repeats: int) -> Sequence[_Row]:
    """Read the newest traces of repeated questions, by model and prompt version."""
    again = f"SELECT question_hash FROM traces WHERE {_WITHIN} AND question_hash != ''"
    often = f"GROUP BY question_hash HAVING count() >= {min_repeats}"
    [counted] = database.rows(
        f"SELECT sum(least(n, {MAX_ANSWERS})) AS n FROM (SELECT count() AS n FROM traces "
        f"WHERE {_WITHIN} AND question_hash != '' {often})",
        within,
    )
    sampled = f"cityHash64(question_hash) % {math.ceil(counted['n'] / MAX_TRACES) or 1} = 0"
    return database.rows(
        f"""
        SELECT environment, model, prompt_version, question_hash, trace_id, time FROM traces FINAL
        WHERE {_WITHIN} AND question_hash IN ({again} AND {sampled} {often})
        ORDER BY environment, model, prompt_version, question_hash, time DESC, trace_id
        LIMIT {MAX_ANSWERS} BY environment, model, prompt_version, question_hash""",
        within,
    )


def _embeddings(database: Database, within: Mapping[str, Any], ids: set[str]) -> dict[_Key, _Row]:
    return {
        (row["environment"], row["trace_id"]): row
        for some in id_batches(sorted(ids))
        for row in database.rows(
            f"SELECT environment, trace_id, model AS encoder, {_NUMBERS} AS numbers, answer_claims AS claims "
            f"FROM embeddings FINAL WHERE {_WITHIN} AND trace_id IN {sql.texts(some)}",
            within,
        )
    }


def _refusals(database: Database, within: Mapping[str, Any], ids: set[str]) -> dict[_Key, bool]:
    """Read which traces are refusals, of those that the evaluator of refusals scored."""
    return {
        (row["environment"], row["trace_id"]): bool(row["refused"])
        for some in id_batches(sorted(ids))
        for row in database.rows(
            f"SELECT environment, trace_id, metrics['unsuccessful'] >= 0.5 AS refused FROM scores FINAL "
            f"WHERE {_WITHIN} AND evaluator = '{_REFUSALS}' AND status = 'scored' AND trace_id IN {sql.texts(some)}",
            within,
        )
    }


def _encoder(embedded: Sequence[_Row]) -> str:
    """Return the encoder of most vectors; vectors of two encoders do not compare."""
    counted = Counter(row["encoder"] for row in embedded if row["numbers"])
    return max(counted, key=lambda name: (counted[name], name), default="")


def _features(key: _Key, embedded: _Row | None, refusals: Mapping[_Key, bool], encoder: str) -> AnswerFeatures:
    claims = embedded["claims"] if embedded is not None else ()
    encoded = bytes.fromhex(embedded["numbers"]) if embedded is not None and embedded["encoder"] == encoder else b""
    return answer_features(key[1], refusals.get(key), claims, np.frombuffer(encoded, np.int8))


METRIC = "answers.agreement"
RULE = "answers"
_EXAMPLES = 5  # questions
_CONFLICT_PHRASES: Mapping[ConflictType, str] = {  # the clearest first
    "stance": "in yes or no",
    "claims": "in figures",
    "refusal": "in answering or refusing",
    "meaning": "in meaning",
}


@dataclass(slots=True)
class _ComparedQuestions:
    """Questions of one key whose answers were compared, and the conflicts."""

    key: ProblemKey
    first: datetime
    last: datetime
    questions: int = 0
    answers: int = 0
    conflicts: list[AnswerConflict] = field(default_factory=list)

    @property
    def share(self) -> Share:
        return Share(len(self.conflicts), self.questions)

    @property
    def examples(self) -> Sequence[AnswerConflict]:
        """Some conflicts, the clearest first."""
        return sorted(self.conflicts, key=lambda conflict: (list(_CONFLICT_PHRASES).index(conflict.by), conflict))[
            :_EXAMPLES
        ]


class AnswerAgreement(RepeatedQuestions):
    """Answers to the same question conflict."""

    @classmethod
    def owns(cls, key: ProblemKey) -> bool:
        """Exclude scores, which `ScoreConsistency` compares."""
        return key.metric == METRIC

    def compare(
        self, ctx: CheckContext, apps: Mapping[str, int], since: datetime, until: datetime
    ) -> Iterator[Consistency]:
        """Compare refusals, claims and vectors of the answers."""
        for app in apps:
            own = ctx.rules.of(app)
            if not own.compare_answers:
                continue
            questions = read_repeated_questions(ctx.database, app, own.inconsistency_askings, since, until)
            for one in _compare(app, questions):
                state = above_limit(one.share, own.disagreement_limit) if one.answers >= own.min_sample else "unclear"
                detection = partial(_detection, one, own) if state == "bad" else None
                pairs = [AnswerPair(*conflict) for conflict in one.examples]
                observation = Observation(one.key, state, detection, one.answers)
                yield Consistency(observation, one.share, own.disagreement_limit, pairs)


def _compare(app: str, questions: Iterable[RepeatedQuestion]) -> Iterable[_ComparedQuestions]:
    by_key: dict[ProblemKey, _ComparedQuestions] = {}
    for one in questions:
        key = ProblemKey(app, one.environment, one.model, "inconsistency", METRIC)
        found = by_key.setdefault(key, _ComparedQuestions(key, one.first, one.last))
        found.first, found.last = min(found.first, one.first), max(found.last, one.last)
        found.questions += 1
        found.answers += len(one.answers)
        conflict = find_conflict(one.answers, _min_cosine(one.encoder))
        if conflict is not None:
            found.conflicts.append(conflict)
    return by_key.values()


def _min_cosine(encoder: str) -> float | None:
    return ENCODER_THRESHOLDS.get(encoder.rpartition("@")[0], EncoderThresholds()).same_answer


def _detection(one: _ComparedQuestions, rules: RuleSettings) -> Detection:
    key, share = one.key, one.share
    by = Counter(conflict.by for conflict in one.conflicts)
    message = (
        f"{scope_label(key.app, key.environment)}: answers to {share.hits} of {share.n} repeated questions conflict: "
        f"{', '.join(f'{by[name]} {phrase}' for name, phrase in _CONFLICT_PHRASES.items() if by[name])}. "
        f"{describe_share('Share', share, rules.disagreement_limit)} "
        f"Sample: {one.answers} answers since {timestamp(one.first)}."
    )
    attributes: dict[str, Any] = {
        **share_attributes(share, rules.disagreement_limit),
        "answers": one.answers,
        "compared": "answers",
        "by": dict(by),
        "pairs": [conflict._asdict() for conflict in one.examples],
    }
    details = build_details(
        AnswerAgreement.kind,
        key,
        None,
        message,
        attributes,
        rules,
        bad=share.hits,
        traffic=share.n,
        examples=[trace_id for conflict in one.examples for trace_id in (conflict.odd, conflict.other)],
        rule_id=RULE,
    )
    return Detection(one.key, details, one.first, one.last)
