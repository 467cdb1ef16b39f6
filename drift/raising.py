"""Turns verdicts into problem events: each happening once, whoever leads and however often it runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from drift import facts
from drift.actions import actions_for
from drift.events import Account, Happening, Place, event_row, last_account, place_of
from drift.leadership import Term
from drift.lifecycle import Step, disappeared, next_step
from drift.problems import Aspect, EventRow, Problem, load_problems, problem_id
from drift.rules.choose import coverage_rule_for, rule_for
from drift.rules.series import Rule, Series, Verdict
from drift.settings import RuleSettings, Severity
from drift.taxonomy import code_of, standards_of, type_of
from drift.windows import sql
from drift.windows.metrics import WatchedMetric
from drift.windows.segments import SegmentValues
from drift.wording import Figures, describe
from sinks.clickhouse.database import Database

_REMEMBERED = timedelta(days=14)  # verdicts older than this say nothing about today
_ENOUGH = 20  # verdicts of either kind; more where a rule looks back further
_WITHOUT_FIGURES = ("withdrawn", "resolved")  # of a problem that is known


@dataclass(frozen=True, slots=True)
class Raiser:
    """Raises problems for one leader's term."""

    database: Database
    metrics: Mapping[str, WatchedMetric]
    settings: RuleSettings
    segments: SegmentValues
    term: Term

    def run(
        self, rules: Mapping[Series, tuple[Rule, ...]], now: datetime, closed_until: Mapping[str, datetime]
    ) -> list[EventRow]:
        """The events that follow from the verdicts of these series, and of those with a problem; stored on return.

        `closed_until` is the watermark of each lane.
        """
        episodes: dict[str, list[Problem]] = {}
        for problem in load_problems(self.database, states=("pending", "open", "resolved"), every_episode=True):
            episodes.setdefault(problem.problem_id, []).append(problem)
        watched = {(series, _aspect(rule)): rule for series, found in rules.items() for rule in found}
        events = []
        for problem in (one for known in episodes.values() for one in known if one.state in ("pending", "open")):
            if problem.aspect not in ("level", "coverage"):
                continue
            series = _series(problem)
            rule = self._rule(series, problem.aspect)
            if rule is None:
                events.append(self._end(problem, disappeared(problem, now), now))
            else:
                watched.setdefault((series, _aspect(rule)), rule)
        verdicts = self._verdicts(watched, now)
        for (series, aspect), rule in watched.items():
            id_ = problem_id(*_place(series, aspect))
            known = sorted(episodes.get(id_, ()), key=lambda e: e.episode)
            closed = closed_until.get(rule.watched.evaluator.lane, now)
            found = [v for v in verdicts.get((rule.rule_id, series), ()) if v.samples >= rule.min_sample]
            step = next_step(id_, rule, found, known, self.settings, now, closed)
            if step is not None and step.event in _WITHOUT_FIGURES:
                events.append(self._end(known[-1], step, now))
            elif step is not None:
                events.append(self._event(series, rule, step, now))
        self.database.insert("problem_events", events)
        return events

    def _rule(self, series: Series, aspect: str) -> Rule | None:
        metric = self.metrics.get(series.metric)
        if metric is None:
            return None
        choose = coverage_rule_for if aspect == "coverage" else rule_for
        return choose(series, metric, self.settings)

    def _verdicts(
        self, watched: Mapping[tuple[Series, Aspect], Rule], now: datetime
    ) -> dict[tuple[str, Series], list[Verdict]]:
        """The last good and bad verdicts of each rule and series, in order of time, of the newest fingerprint.

        So many of either that the last ones of both together have no gap.
        """
        if not watched:
            return {}
        most = max(_ENOUGH, *(max(rule.m, rule.resolve_after) for rule in watched.values()))
        pairs = {(series.app, series.environment, series.metric) for series, _ in watched}
        listed = ", ".join(f"({', '.join(sql.text(part) for part in pair)})" for pair in sorted(pairs))
        key = f"rule_id, {', '.join(Series._fields)}, fingerprint"
        rows = self.database.rows(
            f"""
            SELECT {", ".join(Verdict._fields)}, first_start FROM (
                SELECT {", ".join(Verdict._fields)}, min(start) OVER (PARTITION BY {key}) AS first_start
                FROM verdicts FINAL
                WHERE run_id = 'live' AND samples > 0
                    AND rule_id IN {sql.texts(sorted({rule.rule_id for rule in watched.values()}))}
                    AND (app, environment, metric) IN ({listed}) AND end > {{remembered:DateTime64(3, 'UTC')}}
            )
            ORDER BY start DESC LIMIT {most} BY {key}, breached
            """,
            {"remembered": now - _REMEMBERED},
        )
        found: dict[tuple[str, Series], dict[tuple[datetime, str], list[Verdict]]] = {}
        for row in rows:
            verdict = Verdict(**{name: row[name] for name in Verdict._fields})
            fingerprints = found.setdefault((verdict.rule_id, verdict.series), {})
            fingerprints.setdefault((row["first_start"], verdict.fingerprint), []).append(verdict)
        return {
            key_: sorted(fingerprints[max(fingerprints)], key=lambda v: v.start) for key_, fingerprints in found.items()
        }

    def _event(self, series: Series, rule: Rule, step: Step, now: datetime) -> EventRow:
        aspect = _aspect(rule)
        figures = facts.figures(self.database, series, rule, step.bad, step.since)
        type_ = type_of(rule.watched, rule.kind)
        account = Account(
            kind="coverage" if aspect == "coverage" else "threshold",
            type=type_,
            severity=self._severity(rule, type_, figures),
            code=code_of(rule.watched, type_),
            standards=standards_of(rule.watched, rule.kind),
            description=describe(series, rule, figures, step.since),
            attributes=self._attributes(series, rule, figures, step),
            examples=facts.examples(self.database, series, rule, self.segments, step.since, step.until),
            actions=actions_for(type_, rule.watched.evaluator.id, aspect),
            rule_id=rule.rule_id,
        )
        return event_row(_place(series, aspect), self._happening(step, now), account)

    def _end(self, before: Problem, step: Step, now: datetime) -> EventRow:
        """The problem's last words stay; only how long it lasted is added."""
        added: dict[str, object] = {"until": step.until.isoformat()}
        if step.newest is not None:
            added["last_value"] = step.newest.value
        return event_row(place_of(before), self._happening(step, now), last_account(before, **added))

    def _happening(self, step: Step, now: datetime) -> Happening:
        return Happening(step.event, step.event_id, step.episode, now, self.term.epoch)

    def _attributes(self, series: Series, rule: Rule, figures: Figures, step: Step) -> dict[str, Any]:
        newest = step.bad[-1]
        return {
            "app": series.app,
            "environment": series.environment,
            "model": series.model,
            "evaluator": rule.watched.evaluator.id,
            "metric": series.metric,
            "segment": series.segment,
            "segment_value": series.segment_value,
            "rule": rule.kind,
            "window": {"start": newest.start.isoformat(), "end": newest.end.isoformat()},
            "window_value": newest.value,
            "value": figures.value,
            "baseline": figures.baseline,
            "threshold": newest.threshold,
            "min": rule.least,
            "max": rule.greatest,
            "limit": rule.limit if rule.kind in ("share", "coverage") else None,
            "sample_size": figures.samples,
            "wrong": figures.wrong,
            "traffic": figures.traffic,
            "effect_size": figures.effect_size,
            "reasons": list(figures.reasons),
            "fingerprint": newest.fingerprint,
            "prompt_versions": list(facts.prompt_versions(self.database, series, step.since, step.until)),
            "since": step.since.isoformat(),
            "until": step.until.isoformat(),
            "revision": newest.revision,
            "incomplete": any(v.incomplete for v in step.bad),
        }

    def _severity(self, rule: Rule, type_: str, figures: Figures) -> Severity:
        """Breaches of privacy and security are high; else the share of the app's traces on the wrong side says."""
        if rule.severity is not None:
            return rule.severity
        if type_ in ("privacy", "security"):
            return "high"
        share = figures.wrong / max(figures.traffic, figures.wrong, 1)
        if share >= self.settings.severity_high:
            return "high"
        return "medium" if share >= self.settings.severity_medium else "low"


def _aspect(rule: Rule) -> Aspect:
    """What of a series the rule watches."""
    return "coverage" if rule.kind == "coverage" else "level"


def _place(series: Series, aspect: Aspect) -> Place:
    return Place(aspect=aspect, **series._asdict())


def _series(problem: Problem) -> Series:
    return Series(
        problem.app, problem.environment, problem.metric, problem.model, problem.segment, problem.segment_value
    )
