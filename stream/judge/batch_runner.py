"""The life of a batch: its file is sent, it is looked at until it ends, its results are read, its files are deleted.

Every step is noted in the state before the next one, so that a process that is killed pays for no call twice.
"""

import asyncio
import logging
import random
import sqlite3
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from ragtide.evaluators.judge.settings import JudgeEndpoint
from ragtide.stream.judge.batch_api import ENDED, BatchApi, BatchObject, Counts
from ragtide.stream.judge.batch_lines import CANCELLED
from ragtide.stream.judge.batch_state import BatchRecord, BatchState
from ragtide.stream.judge.connection import Miss
from ragtide.stream.judge.protocol import Completion, safe_code

_log = logging.getLogger(__name__)
_FIRST_LOOK_S = 1.0
_CANCELLING_S = 600.0  # a batch that is cancelled may take so long to give the replies that it has
_GONE_S = 300.0  # a batch that is not found may be found so much later
_NOT_THERE = frozenset((404, 405, 501))  # statuses of what an endpoint does not have
_DELETING_S = 60.0  # for all files together
_DELETED_AT_ONCE = 16  # batches
_TOO_MUCH = frozenset(("token_limit_exceeded", "rate_limit_exceeded"))
Answer = Completion | Miss


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """What a batch gave: answers by id of the call, and the answer to every other of its calls."""

    answers: Mapping[str, Answer]
    otherwise: Miss

    def of(self, id: str) -> Answer:
        """Return the answer to a call."""
        return self.answers.get(id, self.otherwise)


class BatchRunner:
    """Runs batches of one endpoint. Used by one event loop."""

    def __init__(
        self, name: str, settings: JudgeEndpoint, state: BatchState, now: Callable[[], float], rng: random.Random
    ) -> None:
        self._name, self._settings = name, settings
        self._state, self._now, self._random = state, now, rng
        self._api = BatchApi(settings, rng)
        self._grace_s = min(_CANCELLING_S, settings.batch.max_wait_s / 10)  # once the longest wait is over
        self._result_files: dict[str, list[str]] = {}  # by token

    async def close(self, read: Sequence[BatchRecord]) -> None:
        """Delete the files of these batches, forget the batches, and close all connections."""
        turns = asyncio.Semaphore(_DELETED_AT_ONCE)

        async def delete(record: BatchRecord) -> None:
            async with turns:
                if record.batch is not None and record.token not in self._result_files:
                    seen = await self._api.look(record.batch)  # an earlier process read its results
                    if isinstance(seen, BatchObject):
                        self._result_files[record.token] = seen.result_files
                    elif seen.status != 404:
                        why = "the next command deletes its files"
                        _log.warning("judge %s: batch %s: %s; %s", self._name, record.batch, seen.why, why)
                        return
                await self._discard(record)

        try:
            async with asyncio.timeout(_DELETING_S):
                await asyncio.gather(*map(delete, read))
        except TimeoutError:
            _log.warning("judge %s: not all files of batches could be deleted; the next command goes on", self._name)
        await self._api.close()

    async def send(self, record: BatchRecord, lines: bytes) -> BatchOutcome:
        """Send a batch of calls and return what became of it."""
        try:
            self._state.begin(self._settings.url, record)
        except sqlite3.Error as error:
            return BatchOutcome({}, Miss("judge_unavailable", f"the batch cannot be noted: {type(error).__name__}"))
        creating = self._create(record, lines)
        del lines  # they are large, and a batch may take a day
        miss = await self._in_time(record, creating)
        del creating
        return BatchOutcome({}, miss) if miss is not None else await self._follow(record)

    async def resume(self, record: BatchRecord) -> BatchOutcome | None:
        """Return what became of a batch of an earlier process. None: it was never sent, and is forgotten.

        So is one whose endpoint has no list of batches, once the longest wait is over.
        """
        if record.batch is None:
            miss = await self._in_time(record, self._find(record))
            if miss is not None and (self._left_s(record) > 0 or miss.status not in _NOT_THERE):
                return BatchOutcome({}, miss)
            if record.batch is None:
                await self._discard(record)
                return None
        _log.info("judge %s: batch %s with %d calls is found again", self._name, record.batch, len(record.sizes))
        return await self._follow(record)

    async def _in_time(self, record: BatchRecord, step: Coroutine[None, None, Miss | None]) -> Miss | None:
        """Take a step before the batch exists, within the longest wait."""
        left_s = max(self._left_s(record), self._settings.timeout_s)
        try:
            async with asyncio.timeout(left_s):
                return await step
        except TimeoutError:
            why = f"no batch was accepted within {left_s:.3g} s"
            return Miss("judge_timeout", why, lost=record.file is not None)

    def _left_s(self, record: BatchRecord) -> float:
        return record.begun_s + self._settings.batch.max_wait_s - self._now()

    async def _create(self, record: BatchRecord, lines: bytes) -> Miss | None:
        def keep(made: str) -> None:
            record.file = made
            self._note(self._state.update, record)

        file = await self._api.upload(lines, f"ragtide-{record.token}.jsonl", keep)
        if isinstance(file, Miss):
            await self._discard(record)
            return replace(file, why=f"the file of a batch was not accepted: {file.why}", lost=False)
        made = await self._api.create(file)
        if isinstance(made, Miss):
            if not made.lost:  # else the next process looks for it
                await self._discard(record)
            return replace(made, why=f"a batch was not accepted: {made.why}")
        record.batch = made.id
        self._note(self._state.update, record)
        _log.info("judge %s: batch %s with %d calls is sent", self._name, made.id, len(record.sizes))
        return None

    async def _find(self, record: BatchRecord) -> Miss | None:
        """Find out whether a batch was made of the file before the earlier process ended."""
        found = None if record.file is None else await self._api.find(record.file)
        if isinstance(found, Miss):
            return replace(found, why=f"whether a batch has this call is not known: {found.why}", lost=True)
        if found is not None:
            record.batch = found.id
            self._note(self._state.update, record)
        return None

    async def _follow(self, record: BatchRecord) -> BatchOutcome:
        """Look at a batch until it ends or the longest wait is over. Then cancel it, and take the replies it has.

        It is forgotten if it does not end then, or is not found although the longest wait is over. After every other
        failure the next process looks at it again, because it may have been paid for.
        """
        assert record.batch is not None
        last = await self._look_until(record.batch, self._now() + self._left_s(record))
        longest_s = self._settings.batch.max_wait_s
        late = Miss("judge_timeout", f"batch {record.batch} did not end within {longest_s:.6g} s", lost=True)
        is_late = last.again if isinstance(last, Miss) else last.status.lower() not in ENDED
        if is_late:
            _log.warning("judge %s: %s; it is cancelled", self._name, late.why)
            with suppress(TimeoutError):
                async with asyncio.timeout(max(self._grace_s, self._settings.timeout_s)):
                    await self._api.cancel(record.batch, self._grace_s)
            last = await self._look_until(record.batch, self._now() + self._grace_s)
        if isinstance(last, BatchObject) and last.status.lower() in ENDED:
            return await self._end(record, last, late if is_late else None)
        if isinstance(last, BatchObject) or (last.status == 404 and self._left_s(record) <= 0):
            await self._discard(record)
        if isinstance(last, Miss) and not is_late:
            return BatchOutcome({}, replace(last, why=f"batch {record.batch}: {last.why}", lost=True))
        return BatchOutcome({}, late)

    async def _look_until(self, batch: str, until_s: float) -> BatchObject | Miss:
        """Return the batch once it has ended, else the last look at it. Look for a while at one that is not found."""
        longest_s = self._settings.batch.poll_s
        pause_s = min(_FIRST_LOOK_S, longest_s)
        reported: tuple[str, int] | None = None
        gone_until_s: float | None = None
        while True:
            got = await self._api.look(batch)
            is_gone = isinstance(got, Miss) and got.status == 404
            if not is_gone:
                gone_until_s = None
            elif gone_until_s is None:
                gone_until_s = self._now() + min(_GONE_S, self._settings.batch.max_wait_s / 10)
            if isinstance(got, BatchObject):
                counts = got.request_counts or Counts()
                now = (safe_code(got.status.lower()) or "in another state", counts.completed + counts.failed)
                if now != reported:
                    _log.info("judge %s: batch %s: %s, %d of %d calls", self._name, batch, *now, counts.total)
                    reported = now
            if got.status.lower() in ENDED if isinstance(got, BatchObject) else not (got.again or is_gone):
                return got
            left_s = (until_s if gone_until_s is None else gone_until_s) - self._now()
            if left_s <= 0:
                return got
            asked_s = got.wait_s if isinstance(got, Miss) else None
            wait_s = self._random.uniform(pause_s / 2, pause_s) if asked_s is None else asked_s
            await asyncio.sleep(min(wait_s, left_s))
            pause_s = min(2 * pause_s, longest_s)

    async def _end(self, record: BatchRecord, batch: BatchObject, late: Miss | None) -> BatchOutcome:
        status = batch.status.lower()
        if status == "failed":
            kind = "judge_throttled" if batch.code in _TOO_MUCH else "judge_rejected"
            await self._discard(record)
            return BatchOutcome(
                {}, Miss(kind, f"batch {batch.id} was refused{f' ({batch.code})' if batch.code else ''}")
            )
        self._result_files[record.token] = batch.result_files
        results = await self._api.results(batch.result_files, record.sizes, self._grace_s)
        if ignored := results.ignored():
            _log.warning("judge %s: batch %s: lines of its results are ignored: %s", self._name, batch.id, ignored)
        otherwise = {
            "expired": Miss("judge_timeout", f"batch {batch.id} expired", lost=True),
            "cancelled": late or Miss("judge_unavailable", f"batch {batch.id} was cancelled", lost=True),
        }.get(status, Miss("judge_unavailable", f"batch {batch.id} has no line about this call", lost=True))
        answers = dict(results.answers)
        if late is not None:
            answers |= {id: replace(late, lost=False) for id, answer in answers.items() if answer is CANCELLED}
        if (fault := results.fault) is not None and len(answers) < len(record.sizes):  # the next command reads them
            why = f"the results of batch {batch.id} cannot be read: {fault.why}"
            return BatchOutcome(answers, replace(fault, why=why, lost=True))
        record.was_read = True
        self._note(self._state.update, record)
        return BatchOutcome(answers, otherwise)

    async def _discard(self, record: BatchRecord) -> None:
        """Delete the files of a batch, where the endpoint allows it, and forget the batch."""
        files = [*([record.file] if record.file else []), *self._result_files.pop(record.token, ())]
        left = [file for file in files if not await self._api.delete(file)]
        if left:
            _log.warning("judge %s: the endpoint did not delete the files %s", self._name, ", ".join(left))
        self._note(self._state.forget, record)

    def _note(self, change: Callable[[BatchRecord], None], record: BatchRecord) -> None:
        """Change the state. If that fails, the batch goes on; only a process that is killed would pay for it again."""
        try:
            change(record)
        except sqlite3.Error as error:
            _log.warning("judge %s: the state of a batch is not stored: %s", self._name, type(error).__name__)
