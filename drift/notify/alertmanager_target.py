"""Post to one Alertmanager: alerts that begin, change, end, or are due again; and read its silences."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain, islice

from msgspec import UNSET

from ragtide.drift.leadership import Term
from ragtide.drift.notify.alert import Alert
from ragtide.drift.notify.open_problems import WantedAlerts
from ragtide.drift.notify.posted_alerts import PostedAlert, load_posted, store_posted
from ragtide.drift.notify.silences import SilenceLog
from ragtide.drift.problems import Problem
from ragtide.evaluators.errors import RagtideError, Refused
from ragtide.sinks.alertmanager import AlertmanagerGateway, Busy, PostableAlert, Untrusted
from ragtide.sinks.alertmanager_settings import AlertmanagerSettings
from ragtide.sinks.clickhouse.database import Database

logger = logging.getLogger(__name__)

_BATCH = 500  # alerts of one request: about half a megabyte
_LIFETIME = 3  # an alert ends by itself after so many intervals without a post
_MAX_REFUSED = 20  # of one round; if more are refused, not their content is at fault
_REFUSED_FOR = timedelta(minutes=5)  # then it is posted again, even if its content is the same
_STORED_EVERY = timedelta(days=1)  # rows of alerts that fire are renewed: they are kept for `retention.outbox_days`
_SILENCES_EVERY = timedelta(seconds=15)
_ENDS_FOR = timedelta(hours=1)  # an end is posted again within so long, if Alertmanager was started anew
_TICK = timedelta(seconds=1)  # the clock in Alertmanager's answers has whole seconds


@dataclass(frozen=True, slots=True)
class PostResult:
    """Alerts that were accepted (posted again, begun, ended), and those refused."""

    reposted: int = 0
    begun: int = 0
    ended: int = 0
    refused: int = 0

    def __add__(self, other: "PostResult") -> "PostResult":
        return PostResult(
            self.reposted + other.reposted,
            self.begun + other.begun,
            self.ended + other.ended,
            self.refused + other.refused,
        )


@dataclass(frozen=True, slots=True)
class Holding:
    """Alerts that fire at an Alertmanager, those whose begin or end it has not accepted yet, and those it refused."""

    firing: int
    waiting: int
    refused: int


@dataclass(slots=True)
class _Held:
    """An alert that may fire there. `posted_at`: last accepted in this state; None: not yet.

    `may_be_known`: a request with it may have arrived, of this process or another.
    """

    posted: PostedAlert
    posted_at: datetime | None = None
    stored_at: datetime | None = None
    may_be_known: bool = True


@dataclass(frozen=True, slots=True)
class _Refusal:
    """An alert that was refused for its content."""

    alert: Alert
    at: datetime


class _Superseded(Exception):
    """A newer leader was elected."""


class AlertmanagerTarget:
    """One Alertmanager and what it holds. One thread at a time."""

    def __init__(
        self,
        database: Database,
        gateway: AlertmanagerGateway,
        settings: AlertmanagerSettings,
        alert: Callable[[Problem], Alert],
    ) -> None:
        self.url = gateway.url
        self.name = gateway.name
        self._database = database
        self._gateway = gateway
        self._alert = alert
        self._repost = timedelta(seconds=settings.repost_s)
        self._silences = SilenceLog(database, gateway.url)
        self._silences_at: datetime | None = None
        self._term: Term | None = None
        self._wanted: WantedAlerts | None = None  # the last that was compared with what is held
        self._held: dict[str, _Held] = {}  # by fingerprint, as the next two
        self._ended: dict[str, PostedAlert] = {}  # its end was accepted not long ago
        self._refused: dict[str, _Refusal] = {}
        self._ahead = timedelta()  # of Alertmanager's clock
        self._process_start: datetime | None = None  # Alertmanager's
        self._status_at: datetime | None = None

    def sync(self, wanted: WantedAlerts, term: Term, now: datetime) -> PostResult:
        """Post what is due, then read silences. `now` is the server's time.

        Stops before a post if a newer leader was elected. Raises `Transient` or `ConfigError`; what was not accepted is
        posted by the next round.
        """
        if self._term is not term:
            self._load(term, now)
        try:
            if wanted is not self._wanted:
                self._compare(wanted, term, now)
            result = self._post_due(term, now)
            self._notice_restart(now)
            self._read_silences(term, now)
        except _Superseded:
            logger.info("alerts stop: a newer leader than epoch %d was elected", term.epoch)
            return PostResult()
        except RagtideError:
            self._status_at = None  # it may have been restarted
            raise
        return result

    def holding(self) -> Holding:
        """Count what it holds; may be called by another thread."""
        held = list(self._held.values())
        begun = sum(one.posted_at is not None and one.posted.ended_at is None for one in held)
        return Holding(begun, len(held) - begun, len(self._refused))

    def close(self) -> None:
        """Release the connections."""
        self._gateway.close()

    def _load(self, term: Term, now: datetime) -> None:
        """Begin a term: nothing that an earlier leader posted is known to have arrived."""
        known = load_posted(self._database, self.url, now - _ENDS_FOR)
        self._held = {one.fingerprint: _Held(one) for one in known if one.state == "firing"}
        self._ended = {one.fingerprint: one for one in known if one.state == "ended"}
        self._refused = {}
        self._silences.load(now)
        self._wanted = self._status_at = self._silences_at = None
        self._term = term

    def _compare(self, wanted: WantedAlerts, term: Term, now: datetime) -> None:
        """Store alerts that begin, and mark those that end."""
        fires = {one.posted.alert.problem_id for one in self._held.values() if one.posted.ended_at is None}
        going_on = (alert for problem_id, alert in wanted.explained.items() if problem_id in fires)
        firing = {alert.fingerprint: alert for alert in chain(wanted.firing.values(), going_on)}
        new = [alert for fingerprint, alert in firing.items() if self._begins(fingerprint, alert, now)]
        store_posted(self._database, self.url, map(PostedAlert, new), term)
        for alert in new:
            self._held[alert.fingerprint] = _Held(PostedAlert(alert), stored_at=now, may_be_known=False)
            self._refused.pop(alert.fingerprint, None)
            self._ended.pop(alert.fingerprint, None)
        over = [held for fingerprint, held in self._held.items() if fingerprint not in firing]
        for held in over:
            if held.posted.ended_at is None:
                self._end(held, wanted.resolved.get(held.posted.alert.problem_id), now)
        self._store_ended([held for held in over if not held.may_be_known], now, term)
        self._refused = {one: refusal for one, refusal in self._refused.items() if one in firing}
        self._wanted = wanted

    def _begins(self, fingerprint: str, alert: Alert, now: datetime) -> bool:
        """Whether the alert is new here; one that fires already gets the newest annotations, and keeps its start."""
        held = self._held.get(fingerprint)
        if held is None:
            refusal = self._refused.get(fingerprint)
            is_same = refusal is not None and refusal.alert.annotations == alert.annotations
            return refusal is None or not is_same or now - refusal.at >= _REFUSED_FOR
        if held.posted.alert.annotations != alert.annotations:
            held.posted = replace(held.posted, alert=replace(alert, starts_at=held.posted.alert.starts_at))
        if held.posted.ended_at is not None:  # it came back before its end was accepted
            held.posted, held.posted_at = replace(held.posted, ended_at=None), None
        return False

    def _end(self, held: _Held, resolved: Problem | None, now: datetime) -> None:
        """Resolve it at the end of its problem; now, if the problem goes on under other labels or is muted."""
        at = now
        if resolved is not None and resolved.resolved_at is not None:
            at = resolved.resolved_at
            annotations = self._alert(resolved).annotations
            held.posted = replace(held.posted, alert=replace(held.posted.alert, annotations=annotations))
        held.posted, held.posted_at = held.posted.ended(min(at, now - _TICK)), None

    def _post_due(self, term: Term, now: datetime) -> PostResult:
        held = self._held.values()
        ends = (one for one in held if one.posted.ended_at is not None)
        begins = (one for one in held if one.posted.ended_at is None and one.posted_at is None)
        again = (one for one in held if one.posted_at is not None and now - one.posted_at >= self._repost)
        result = PostResult()
        # What changed first and together: an alert under new labels, and the end of the old one.
        for batch in _batches(list(chain(ends, begins, again)), _BATCH):
            result += self._post(batch, term, now)
            if result.refused > _MAX_REFUSED:
                raise Refused(
                    f"{self.name} refused {result.refused} alerts; column why of alerts_posted has its reason"
                )
        return result

    def _post(self, batch: Sequence[_Held], term: Term, now: datetime) -> PostResult:
        """Post a batch; if it is refused, halve it until the alert at fault is found."""
        newest = self._database.rows("SELECT max(epoch) AS newest FROM leaders")[0]["newest"]
        if int(newest) > term.epoch:
            raise _Superseded
        until = now + max(self._ahead, timedelta()) + _LIFETIME * self._repost
        known = [one.may_be_known for one in batch]
        for one in batch:
            one.may_be_known = True
        try:
            clock = self._gateway.post([postable(one.posted, until) for one in batch])
        except (Busy, Untrusted) as error:
            if not error.is_sent:
                for one, was_known in zip(batch, known, strict=True):
                    one.may_be_known = was_known
            raise
        except Refused as error:
            if len(batch) == 1 and batch[0].posted_at is not None:
                raise Busy(f"{error}, and had accepted the same alert before; will be tried again") from error
            if len(batch) == 1:
                return self._refuse(batch[0], str(error), term, now)
            half = len(batch) // 2
            first = self._post(batch[:half], term, now)
            if first.refused > _MAX_REFUSED:
                return first
            return first + self._post(batch[half:], term, now)
        if clock is not None:
            self._ahead = clock - now
        return self._accepted(batch, clock, term, now)

    def _accepted(self, batch: Sequence[_Held], clock: datetime | None, term: Term, now: datetime) -> PostResult:
        """Note what arrived. An end that Alertmanager's clock has not reached yet is posted again."""
        ends = [one for one in batch if one.posted.ended_at is not None]
        over = [one for one in ends if clock is None or one.posted.ended_at is None or clock > one.posted.ended_at]
        self._store_ended(over, clock or now, term)
        fires = [one for one in batch if one.posted.ended_at is None]
        begun = sum(one.posted_at is None for one in fires)
        aged = [one for one in fires if one.stored_at is None or now - one.stored_at >= _STORED_EVERY]
        store_posted(self._database, self.url, [one.posted for one in aged], term)
        for one in aged:
            one.stored_at = now
        for one in fires:
            one.posted_at = now
        return PostResult(reposted=len(fires) - begun, begun=begun, ended=len(over))

    def _store_ended(self, over: Sequence[_Held], accepted_at: datetime, term: Term) -> None:
        ended = [replace(one.posted, state="ended", accepted_at=accepted_at) for one in over]
        store_posted(self._database, self.url, ended, term)
        for one in ended:
            del self._held[one.fingerprint]
            self._ended[one.fingerprint] = one

    def _refuse(self, held: _Held, why: str, term: Term, now: datetime) -> PostResult:
        alert = held.posted.alert
        logger.error("alert of problem %s was refused: %s", alert.problem_id, why)
        store_posted(self._database, self.url, [replace(held.posted, state="refused", why=why)], term)
        del self._held[alert.fingerprint]
        self._refused[alert.fingerprint] = _Refusal(alert, now)
        return PostResult(refused=1)

    def _notice_restart(self, now: datetime) -> None:
        """Post everything again to an Alertmanager that was started anew; also ends that it may not have sent on."""
        if self._status_at is not None and now - self._status_at < self._repost:
            return
        started = self._gateway.status().uptime
        self._status_at = now
        if self._process_start is not None and started > self._process_start:
            for held in self._held.values():
                held.posted_at = None
        self._process_start = started
        for fingerprint, ended in list(self._ended.items()):
            accepted_at = ended.accepted_at or now
            if accepted_at < now - _ENDS_FOR:
                del self._ended[fingerprint]
            elif accepted_at <= started:
                del self._ended[fingerprint]
                self._held[fingerprint] = _Held(replace(ended, state="firing"))

    def _read_silences(self, term: Term, now: datetime) -> None:
        if self._silences_at is not None and now - self._silences_at < _SILENCES_EVERY:
            return
        firing: Mapping[str, Mapping[str, str]] = {
            one.posted.alert.problem_id: one.posted.alert.labels
            for one in self._held.values()
            if one.posted.ended_at is None
        }
        self._silences.update(self._gateway.silences(), firing, term, now)
        self._silences_at = now


def postable(one: PostedAlert, until: datetime) -> PostableAlert:
    """Return the alert as the API takes it: resolved at its end, or else at `until` unless it is posted again."""
    alert = one.alert
    return PostableAlert(
        labels=alert.labels,
        annotations=alert.annotations,
        starts_at=alert.starts_at,
        ends_at=one.ended_at or until,
        generator_url=alert.annotations.get("dashboard_url", UNSET),
    )


def _batches(some: Iterable[_Held], size: int) -> Iterator[list[_Held]]:
    left = iter(some)
    while batch := list(islice(left, size)):
        yield batch
