"""Progress of replays: one row per run in table `runs`, written after the rows that it covers."""

import hashlib
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from ragtide.evaluators.builtin.pii_leakage import pii_leakage
from ragtide.evaluators.builtin.sensitive_data_leakage import sensitive_data_leakage
from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.fingerprint import fingerprint
from ragtide.evaluators.plan import Plan, parameters
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import LIVE
from ragtide.sinks.settings import PrivacySettings
from ragtide.stream.settings.loader import Settings

Position = Mapping[str, Mapping[str, int]]  # what a source needs to go on; JSON in the table
MASKERS = (pii_leakage, sensitive_data_leakage)  # their parameters say what is masked, whether they run or not
STARTED, COMPLETED = "started", "completed"


class RunRow(NamedTuple):
    """Table `runs`; the newest version of a run counts."""

    run_id: str
    source: str
    evaluators: list[str]
    fingerprints: dict[str, str]
    settings_hash: str
    state: str
    position: str
    traces: int
    dead_letters: int
    version: int
    started_at: datetime

    @property
    def where(self) -> Position:
        """The position as a source takes it; empty: nothing was read."""
        found: Position = json.loads(self.position or "{}")
        return found


class Runs:
    """Reads and writes the rows of runs."""

    def __init__(self, database: Database, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._database = database
        self._clock = clock

    def claim(self, run_id: str, source: str, identity: str, plan: Plan, settings: Settings) -> RunRow:
        """Return the unfinished run, or a new one; raise `ConfigError` if the name was used with other settings.

        Each backfill of `live` has its own row, named by its range, so that it continues where it stopped.
        """
        digest = settings_hash(identity, plan, settings)
        name = f"{LIVE}:{digest[:12]}" if run_id == LIVE else run_id
        fingerprints = {prepared.evaluator.id: prepared.fingerprint for prepared in plan.prepared}
        new = RunRow(name, source, sorted(fingerprints), fingerprints, digest, STARTED, "{}", 0, 0, 1, self._clock())
        before = self.find(name)
        if before is None:
            self.store(new)
            return new
        if before.settings_hash != digest:
            raise ConfigError(f"run {name!r} was made {_difference(before, new)}; choose another --run name")
        return before

    def find(self, name: str) -> RunRow | None:
        """The newest row of a run."""
        columns = ", ".join(RunRow._fields)
        found = self._database.rows(f"SELECT {columns} FROM runs FINAL WHERE run_id = {{name:String}}", {"name": name})
        return RunRow(**found[0]) if found else None

    def store(self, row: RunRow) -> None:
        """Durable when this returns."""
        self._database.insert("runs", [row])


def settings_hash(identity: str, plan: Plan, settings: Settings) -> str:
    """Hash that differs for runs that would not leave the same rows."""
    decides = {
        "source": identity,
        "evaluators": {p.evaluator.id: [p.fingerprint, p.evaluator.version, *p.tasks] for p in plan.prepared},
        "ingest": settings.ingest.model_dump(),
        "sampling": settings.sampling.model_dump(),
        "companions": settings.evaluators.judge.companions,
        "texts": _texts(settings),
        "embeddings": settings.privacy.stores_embeddings,
        "users": _key(settings.privacy) if settings.privacy.hash_users else False,
    }
    return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()


def _texts(settings: Settings) -> str | list[str]:
    """How texts are stored; if they are masked, with which parameters and key."""
    privacy = settings.privacy
    if privacy.store_texts not in ("masked", "hashed"):
        return privacy.store_texts
    maskers = [fingerprint(one, parameters(one, settings.evaluators)) for one in MASKERS]
    return [privacy.store_texts, *maskers, *([_key(privacy)] if privacy.store_texts == "hashed" else [])]


def _key(privacy: PrivacySettings) -> str:
    """A hash of the key, which reveals nothing else of it."""
    key = privacy.hash_key.get_secret_value()
    return hashlib.sha256(f"privacy.hash_key {key}".encode()).hexdigest()


def _difference(before: RunRow, new: RunRow) -> str:
    if before.source != new.source:
        return f"from {before.source}, not {new.source}"
    if before.evaluators != new.evaluators:
        return f"with evaluators {', '.join(before.evaluators)}, not {', '.join(new.evaluators)}"
    changed = [name for name, value in new.fingerprints.items() if before.fingerprints.get(name) != value]
    if changed:
        return f"with other versions or parameters of {', '.join(changed)}"
    return (
        "with other content of the file, or other settings of ingest, sampling or privacy, or parameters of "
        f"{' or '.join(masker.id for masker in MASKERS)}, by which texts are masked"
    )
