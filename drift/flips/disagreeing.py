"""The same question asked again and answered otherwise: a problem where the answers to many questions disagree."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from drift.flips.answers import Asked, asked_again
from drift.flips.asked import KIND, Pair, Seen, asked_since, asking, told
from drift.flips.disagreement import By, Disagreement, disagreement
from drift.flips.judging import attributes_of, in_words, judged
from drift.insights.shares import Share
from drift.leadership import Term
from drift.phrases import moment, percent, whereabouts
from drift.problems.accounts import account_of
from drift.problems.events import Account, Place
from drift.problems.troubles import Trouble, Watched, standing
from drift.settings import RuleSettings
from evaluators.encoder.thresholds import LINES, Lines
from sinks.clickhouse.database import Database

METRIC = "answers.agreement"
RULE = "answers"
_EXAMPLES = 5  # questions
_WORDS: Mapping[By, str] = {  # the plainest first
    "stance": "in yes or no",
    "claims": "in figures",
    "refusal": "in whether they answer at all",
    "meaning": "in what they speak of",
}


@dataclass(slots=True)
class _Found:
    """Questions of one place whose answers were compared, and how those disagree that do."""

    place: Place
    first: datetime
    last: datetime
    questions: int = 0
    answers: int = 0
    apart: list[Disagreement] = field(default_factory=list)

    @property
    def share(self) -> Share:
        return Share(len(self.apart), self.questions)

    @property
    def shown(self) -> Sequence[Disagreement]:
        """Some, the plainest first."""
        return sorted(self.apart, key=lambda apart: (list(_WORDS).index(apart.by), apart))[:_EXAMPLES]


def watch_answers(database: Database, rules: RuleSettings, term: Term, now: datetime) -> Watched:
    """What answers to questions asked again in the last day or so say is told on return; `now` is the server's time."""
    since = asked_since(rules, now)
    before = [place for place in standing(database, KIND) if place.metric == METRIC]
    return told(database, seen(database, rules, asking(database, since, now), since, now), before, rules, term, now)


def seen(
    database: Database, rules: RuleSettings, apps: Iterable[str], since: datetime, until: datetime
) -> Iterator[Seen]:
    """What these applications answered in that time."""
    for app in apps:
        own = rules.of(app)
        compared = asked_again(database, app, own.inconsistency_askings, since, until) if own.compare_answers else ()
        for one in _found(app, compared):
            state = judged(one.share, own.disagreement_limit) if one.answers >= own.min_sample else "unclear"
            trouble = Trouble(one.place, _account(one, own), one.first, one.last) if state == "bad" else None
            pairs = [Pair(*apart) for apart in one.shown]
            yield Seen(one.place, one.answers, one.share, own.disagreement_limit, pairs, state, trouble)


def _found(app: str, asked: Iterable[Asked]) -> Iterable[_Found]:
    by_place: dict[Place, _Found] = {}
    for one in asked:
        place = Place(app, one.environment, one.model, "inconsistency", METRIC)
        found = by_place.setdefault(place, _Found(place, one.first, one.last))
        found.first, found.last = min(found.first, one.first), max(found.last, one.last)
        found.questions += 1
        found.answers += len(one.answers)
        apart = disagreement(one.answers, _least_cosine(one.encoder))
        if apart is not None:
            found.apart.append(apart)
    return by_place.values()


def _least_cosine(encoder: str) -> float | None:
    return LINES.get(encoder.rpartition("@")[0], Lines()).same_answer


def _account(one: _Found, rules: RuleSettings) -> Account:
    place, share = one.place, one.share
    by = Counter(apart.by for apart in one.apart)
    said = (
        f"{whereabouts(place.app, place.environment)}: the answers to {share.hits} of {share.n} questions that were "
        f"asked again ({in_words(share)}) disagree, above the limit of {percent(rules.disagreement_limit)}: "
        f"{', '.join(f'{by[name]} {words}' for name, words in _WORDS.items() if by[name])}; "
        f"{one.answers} answers since {moment(one.first)}."
    )
    attributes: dict[str, Any] = {
        **attributes_of(share, rules.disagreement_limit),
        "answers": one.answers,
        "compared": "answers",
        "by": dict(by),
        "pairs": [apart._asdict() for apart in one.shown],
    }
    return account_of(
        KIND,
        place,
        None,
        said,
        attributes,
        rules,
        wrong=share.hits,
        traffic=share.n,
        examples=[trace_id for apart in one.shown for trace_id in (apart.odd, apart.other)],
        rule_id=RULE,
    )
