"""Read silences of Alertmanager that match alerts of problems back into table `alert_silences`."""

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

import re2

from ragtide.drift.leadership import Term
from ragtide.drift.problems import ProblemSilence
from ragtide.sinks.alertmanager import Matcher, Silence
from ragtide.sinks.clickhouse.database import Database

_LONGEST_COMMENT = 500  # characters
_STORED = ", ".join(("problem_id", *ProblemSilence.__dataclass_fields__))


class SilenceRow(NamedTuple):
    """Table `alert_silences`."""

    url: str
    problem_id: str
    silence_id: str
    created_by: str
    comment: str
    starts_at: datetime
    ends_at: datetime
    is_deleted: int
    version: int


class _Known(NamedTuple):
    problem_id: str
    silence: ProblemSilence


class SilenceLog:
    """Silences of one Alertmanager, as they were last stored."""

    def __init__(self, database: Database, url: str) -> None:
        self._database = database
        self._url = url
        self._known: dict[tuple[str, str], _Known] = {}  # by problem and silence

    def load(self, now: datetime) -> None:
        """Read what earlier leaders stored."""
        rows = self._database.rows(
            f"SELECT {_STORED} FROM alert_silences FINAL "
            "WHERE url = {url:String} AND ends_at > {now:DateTime64(3, 'UTC')}",
            {"url": self._url, "now": now},
        )
        known = [_Known(row.pop("problem_id"), ProblemSilence(**row)) for row in rows]
        self._known = {(one.problem_id, one.silence.silence_id): one for one in known}

    def update(
        self, silences: Iterable[Silence], firing: Mapping[str, Mapping[str, str]], term: Term, now: datetime
    ) -> None:
        """Store what changed: `firing` are labels of the alerts by problem id."""
        current = {(one.problem_id, one.silence.silence_id): one for one in _matching(silences, firing)}
        changed = [self._row(one, term) for key, one in current.items() if self._known.get(key) != one]
        gone = [
            self._row(one, term, is_deleted=True)
            for key, one in self._known.items()
            if key not in current and one.silence.ends_at > now
        ]
        self._database.insert("alert_silences", [*changed, *gone])
        self._known = current

    def _row(self, one: _Known, term: Term, *, is_deleted: bool = False) -> SilenceRow:
        found = one.silence
        return SilenceRow(
            url=self._url,
            problem_id=one.problem_id,
            silence_id=found.silence_id,
            created_by=found.created_by,
            comment=found.comment,
            starts_at=found.starts_at,
            ends_at=found.ends_at,
            is_deleted=int(is_deleted),
            version=term.next_version(),
        )


def end_silences_of_others(database: Database, urls: Collection[str], term: Term, now: datetime) -> None:
    """Take back the silences of Alertmanagers that are not among these: nobody reads their ends any more."""
    rows = database.rows(
        f"SELECT url, {_STORED} FROM alert_silences FINAL "
        "WHERE url NOT IN {urls:Array(String)} AND ends_at > {now:DateTime64(3, 'UTC')}",
        {"urls": list(urls), "now": now},
    )
    ended = [SilenceRow(**row, is_deleted=1, version=term.next_version()) for row in rows]
    database.insert("alert_silences", ended)


def matches(matchers: Iterable[Matcher], labels: Mapping[str, str]) -> bool:
    """Whether all matchers hold for these labels, as Alertmanager decides it."""
    return all(test(labels) for test in map(_test, matchers))


def _matching(silences: Iterable[Silence], firing: Mapping[str, Mapping[str, str]]) -> Iterable[_Known]:
    for one in silences:
        if not one.is_active:
            continue
        tests = [_test(matcher) for matcher in one.matchers]
        found = ProblemSilence(
            one.id, one.created_by, one.comment[:_LONGEST_COMMENT], _to_ms(one.starts_at), _to_ms(one.ends_at)
        )
        for problem_id, labels in firing.items():
            if all(test(labels) for test in tests):
                yield _Known(problem_id, found)


def _to_ms(at: datetime) -> datetime:
    """What the column holds."""
    return at.replace(microsecond=at.microsecond // 1000 * 1000)


def _test(matcher: Matcher) -> Callable[[Mapping[str, str]], bool]:
    name, value, wanted = matcher.name, matcher.value, matcher.is_equal
    if not matcher.is_regex:
        return lambda labels: (labels.get(name, "") == value) == wanted
    pattern = _compiled(value)
    return lambda labels: pattern is not None and (pattern.fullmatch(labels.get(name, "")) is not None) == wanted


def _compiled(value: str) -> Any:
    """The expression; None where this RE2 does not know what Alertmanager's does."""
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(value, options)
    except re2.error:
        return None
