"""Evaluate records in this process: the pipeline of workers and replays, without Kafka and ClickHouse."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing

from ragtide.evaluators import registry
from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.spec import Evaluator, Lane
from ragtide.stream.api.columns import Collector
from ragtide.stream.api.effective_settings import NO_CHANGES, Changes, evaluation_settings
from ragtide.stream.api.inputs import Item, RefusedItem, Source, open_source
from ragtide.stream.api.progress import progress_bar
from ragtide.stream.api.result import Rejected, Result
from ragtide.stream.assembly import assemble, gather_traces, restrict
from ragtide.stream.ingest.adjustments import Adjustments, describe_unknown
from ragtide.stream.ingest.decoding import Limits
from ragtide.stream.ingest.normalisations import RULES
from ragtide.stream.ingest.records import DeadLetter, StoredRecord
from ragtide.stream.ingest.validation import validate
from ragtide.stream.settings.loader import Settings

_LANES: tuple[Lane, ...] = ("fast", "model", "judge")
_DEFAULT_LANES: tuple[Lane, ...] = ("fast",)
_RUN = "evaluate"
_MOST_NOTES = 20


def evaluate(
    records: object,
    evaluators: Sequence[str | Evaluator] | str | None = None,
    *,
    lanes: Sequence[Lane] | Lane | None = None,
    config: str | os.PathLike[str] | None = None,
    settings: Changes = NO_CHANGES,
    progress: bool | None = None,
) -> Result:
    """Evaluate records and return the scores of every trace, as workers and replays compute them.

    `records` are dicts with the fields of a trace, `Trace` objects, JSON texts (each from a list or a generator), the
    path of a JSON lines file, a pandas DataFrame or an Arrow table (a column per field, missing values not recorded).
    Invalid records are in `Result.rejected`. Of several with one trace id the last one counts.

    `evaluators` are names as in the settings, or `Evaluator` objects of your own. By default those of `lanes` run, and
    by default that is the lane `fast`, whose evaluators need no model. `config` is a settings file, read as commands
    read it, with RAGTIDE_ variables; without it neither file nor variables are read. `settings` are changes on top,
    with the tables of that file: `{"evaluators": {"params": {"rouge": {"use_stemmer": True}}}}`.

    A progress bar shows on a terminal and in a notebook after two seconds; `progress` True or False decides otherwise.

    Raises `ConfigError` for an unknown name or setting, an evaluator that cannot run (the message names the package to
    install), and records of a form that cannot be read.
    """
    chosen = evaluation_settings(config, settings)
    named = [evaluators] if isinstance(evaluators, str) else evaluators
    wanted: Sequence[Lane] | None = [lanes] if isinstance(lanes, str) else lanes
    known = _with_own(registry.load(chosen.evaluators), [one for one in named or () if isinstance(one, Evaluator)])
    names = [_name_of(one) for one in named or ()]
    if named is not None and not names:
        raise ConfigError("evaluators: the list is empty; name at least one, or leave it out")
    if wanted is None:
        wanted = () if names else _DEFAULT_LANES
    _check_lanes(wanted)
    chosen = restrict(chosen, names, wanted, known)
    return evaluate_source(open_source(records, chosen.ingest.max_bytes), chosen, known, progress)


def evaluate_source(
    source: Source,
    settings: Settings,
    known: Mapping[str, Evaluator],
    progress: bool | None = None,
    max_usd: float | None = None,
    by_batch: bool = False,
    store: Callable[[Result], None] = lambda result: None,
) -> Result:
    """Evaluate the records of a source with the evaluators that the settings choose of those known.

    `max_usd` limits what judges may cost in all. With `by_batch` they are asked through the Batch API.
    Once `store` has the result, nothing is held for a repetition of this evaluation.
    """
    if by_batch:
        settings = gather_traces(settings, known)
    privacy = settings.privacy.model_copy(update={"store_embeddings": False})  # nothing is stored
    settings = settings.model_copy(update={"privacy": privacy})
    made = assemble(settings, None, run_id=_RUN, timely=False, evaluators=known, max_usd=max_usd, by_batch=by_batch)
    if not made.plan.prepared:
        off = "; ".join(f"{id}: {reason}" for id, reason in made.plan.unavailable.items())
        raise ConfigError(f"no evaluator can run{f': {off}' if off else ''}; `ragtide evaluators` lists all")
    limits = Limits.of(settings.ingest, settings.retention, timely=False)
    collector = Collector(made.plan.prepared)
    rejected: list[Rejected] = []
    adjustments = Adjustments()
    with closing(made.resources):
        with progress_bar(f"evaluating {source.name}", source.total, progress) as report:
            for items in _slices(source, settings):
                found = [item.record for item in items]
                processed = made.pipeline.process([one for one in found if isinstance(one, StoredRecord)])
                collector.add(processed.block, processed.decoded, processed.findings)
                refused = (one for one in found if isinstance(one, RefusedItem))
                faults = [Rejected(one.number, one.fault.key, one.fault.reason, one.fault.detail) for one in refused]
                faults += [fault for letter in processed.dead for fault in _faults(letter, limits)]
                rejected += sorted(faults, key=lambda fault: fault.record)
                adjustments.normalised += processed.adjustments.normalised
                adjustments.unknown += processed.adjustments.unknown
                report(items[-1].done)
        collected = collector.finish()
        result = Result(
            collected.traces,
            collected.columns,
            tuple(rejected),
            collected.replaced,
            dict(made.plan.unavailable),
            tuple(_notes(adjustments)),
            made.judge_usage_by_endpoint(),
        )
        store(result)
        made.resources.finish()
    return result


def _name_of(one: object) -> str:
    if isinstance(one, Evaluator):
        return one.id
    if isinstance(one, str):
        return one
    raise ConfigError(f"evaluators: a {type(one).__name__} is neither a name nor an Evaluator")


def _with_own(known: Mapping[str, Evaluator], own: Sequence[Evaluator]) -> Mapping[str, Evaluator]:
    """Add evaluators that are not registered; one with a registered name takes its place. Raises `ConfigError`."""
    for one in own:
        if faults := registry.spec_faults(one):
            raise ConfigError(f"evaluator {one.id!r} is not declared correctly: {'; '.join(faults)}")
    return dict(sorted({**known, **{one.id: one for one in own}}.items()))


def _check_lanes(lanes: Sequence[str]) -> None:
    for lane in lanes:
        if lane not in _LANES:
            raise ConfigError(f"lanes: there is no lane {lane!r} (valid: {', '.join(_LANES)})")


def _slices(source: Source, settings: Settings) -> Iterator[list[Item]]:
    """Cut the records into slices of a micro-batch each."""
    items: list[Item] = []
    size = 0
    for item in source.items:
        items.append(item)
        size += len(item.record.value or b"") if isinstance(item.record, StoredRecord) else 0
        if len(items) >= settings.worker.batch_records or size >= settings.worker.batch_bytes:
            yield items
            items, size = [], 0
    if items:
        yield items


def _faults(letter: DeadLetter, limits: Limits) -> list[Rejected]:
    """Every fault of the record, as `ragtide validate` finds them."""
    number = letter.record.offset
    found = validate(letter.record.value, limits).faults if letter.record.value is not None else ()
    if not found:
        return [Rejected(number, "", letter.reason, letter.detail)]
    return [Rejected(number, fault.key, fault.reason, fault.detail) for fault in found]


def _notes(adjustments: Adjustments) -> Iterator[str]:
    """Say how records were read, the most frequent first, as `ragtide validate` does."""
    for one, n in adjustments.normalised.most_common(_MOST_NOTES):
        where = f" at {one.field}" if one.field else ""
        yield f"read: {one.rule}{where} in {_records(n)}: {RULES[one.rule]}"
    for field, n in adjustments.unknown.most_common(_MOST_NOTES):
        yield f"unknown: in {_records(n)}: {describe_unknown(field)}"


def _records(n: int) -> str:
    return f"{n:,} record{'' if n == 1 else 's'}"
