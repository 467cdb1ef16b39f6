"""Assemble a pipeline from settings: registry, encoder if something embeds, plan, resources."""

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragtide.evaluators import registry
from ragtide.evaluators.companions import check_cheap_metric
from ragtide.evaluators.encoder import load_encoder, load_encoders
from ragtide.evaluators.encoder_thresholds import with_encoder_thresholds
from ragtide.evaluators.errors import ConfigError, Unavailable
from ragtide.evaluators.judge.calls import Judge
from ragtide.evaluators.models import load_models
from ragtide.evaluators.plan import Plan, is_on, only_companions, prepare, wanted_encoders, wanted_models
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.runtime.card_memory import limit_cards
from ragtide.evaluators.runtime.cards import take_card
from ragtide.evaluators.spec import SHARED, Evaluator, Lane, Need
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import LIVE
from ragtide.stream.ingest.estimation import stands_for_others
from ragtide.stream.ingest.timeliness import EventBounds
from ragtide.stream.pipeline import Interval, Pipeline
from ragtide.stream.settings.loader import Settings
from ragtide.stream.topic_model_cache import TopicModelCache

if TYPE_CHECKING:
    from ragtide.stream.judge import Usage

log = logging.getLogger(__name__)
_GROUP_BYTES = 256 * 1024 * 1024  # of records, for a batch of judge calls


def restrict(
    settings: Settings, evaluators: Sequence[str], lanes: Sequence[Lane], known: Mapping[str, Evaluator]
) -> Settings:
    """Restrict the settings to these evaluators, and to these lanes; empty: all.

    Other evaluators load no model. Raises `ConfigError` if a named evaluator runs in another lane.
    """
    chosen = settings.evaluators
    if evaluators:
        chosen = chosen.model_copy(update={"enabled": tuple(evaluators)})
    if lanes:
        lane_of = {id: evaluator.lane for id, evaluator in known.items()}
        if elsewhere := [f"{id} ({lane_of[id]})" for id in evaluators if lane_of.get(id, lanes[0]) not in lanes]:
            raise ConfigError(
                f"these evaluators run in another lane: {', '.join(elsewhere)}; only {', '.join(lanes)} is chosen"
            )
        others = tuple(id for id, lane in lane_of.items() if lane not in lanes)
        chosen = chosen.model_copy(update={"disabled": (*chosen.disabled, *others)})
    return settings.model_copy(update={"evaluators": chosen})


def gather_traces(settings: Settings, known: Mapping[str, Evaluator]) -> Settings:
    """Enlarge micro-batches to the traces whose calls `--batch` gathers: rows are the same, however they are cut.

    They have about `batch_traces` sampled traces, and never more than `_GROUP_BYTES` of records. If evaluators of other
    lanes run too, traces outside the sample count as well: their outcomes are in memory.
    """
    traces, share = settings.evaluators.judge.batch_traces, settings.sampling.highest_rate("judge")
    only_judges = all(one.lane == "judge" for one in known.values() if is_on(one, settings.evaluators))
    records = math.ceil(traces / share) if only_judges and share else traces
    larger = {"batch_records": records, "batch_bytes": _GROUP_BYTES}
    return settings.model_copy(update={"worker": settings.worker.model_copy(update=larger)})


@dataclass(frozen=True, slots=True)
class PipelineSetup:
    """A pipeline with its plan; `topics` if it assigns topics to questions."""

    pipeline: Pipeline
    plan: Plan
    resources: Resources
    topics: TopicModelCache | None

    def judge_usage(self) -> list[str]:
        """Describe the calls of judges so far and their cost: a line for each endpoint."""
        if not (usage := self.judge_usage_by_endpoint()):
            return []
        from ragtide.stream.judge import usage_lines

        return usage_lines(usage)

    def judge_usage_by_endpoint(self) -> "dict[str, Usage]":
        """Return calls of judges so far, their tokens and cost, by endpoint."""
        if self.resources.judge is None:
            return {}
        from ragtide.stream.judge import JudgeClient, usage_by_endpoint

        judge = self.resources.judge
        return usage_by_endpoint(judge.usage()) if isinstance(judge, JudgeClient) else {}


def assemble(
    settings: Settings,
    lane: Lane | None,
    *,
    run_id: str = LIVE,
    timely: bool = True,
    interval: Interval | None = None,
    event_bounds: EventBounds | None = None,
    evaluators: Mapping[str, Evaluator] | None = None,
    database: Database | None = None,
    clock: Callable[[], float] = time.time,
    max_usd: float | None = None,
    by_batch: bool = False,
) -> PipelineSetup:
    """Assemble the pipeline of a lane (None: of all lanes at once); raise `ConfigError`.

    Only models that an evaluator of the lane uses are loaded. Evaluators without their model are off, and logged.
    Without a `database` no question gets a topic, and budgets of judges are of this process alone. With `max_usd`
    judges may cost so much in all, calls in flight at the limit aside. Limits of records an hour hold for live traffic.
    With `by_batch` judges are asked through the Batch API of their endpoints, a batch for each step of all traces of a
    micro-batch: see `gather_traces`.
    """
    found = with_encoder_thresholds(
        registry.load(settings.evaluators) if evaluators is None else evaluators, settings.evaluators
    )
    deciding = settings.sampling.cheap_metrics
    cheap_evaluators = {name: check_cheap_metric(found, name, setting) for name, setting in deciding.items()}
    cheap = only_companions(
        found, settings.evaluators, lane, lambda judge: stands_for_others(judge, settings), deciding
    )
    if lane in (None, "judge"):
        for name, evaluator in cheap_evaluators.items():
            if not is_on(evaluator, settings.evaluators.model_copy(update={"enabled": None})):
                log.warning("%s: %s has no effect, because %s is off", deciding[name], name, evaluator.id)
    embedding = {*wanted_encoders(found, settings.evaluators, lane), *wanted_encoders(found, cheap, None)}
    wanted = tuple(
        dict.fromkeys((*wanted_models(found, settings.evaluators, lane), *wanted_models(found, cheap, None)))
    )
    if embedding or wanted:
        if settings.evaluators.workers_per_card:
            take_card(settings.evaluators.workers_per_card)
        limit_cards(settings.evaluators.card_bytes)
    encoder = None
    if SHARED in embedding:
        try:
            encoder = load_encoder(settings.evaluators.encoder)
        except Unavailable as error:
            log.warning("no encoder is available: %s; evaluators that embed texts are off", error)
    encoders = load_encoders(sorted(embedding - {SHARED}), settings.evaluators.encoder)
    models = load_models(wanted, settings.evaluators)
    plan = prepare(found, settings.evaluators, lane, encoder, models, encoders)
    if plan.unavailable:
        log.warning("evaluators are off: %s; `ragtide evaluators` shows why", ", ".join(plan.unavailable))
    companions = prepare(found, cheap, None, encoder, models, encoders)
    if companions.unavailable:
        log.warning("companions of judges are off: %s", ", ".join(companions.unavailable))
    if not plan.prepared and lane not in (None, "fast"):  # `fast` has traces to write all the same
        log.warning("lane %s has no evaluator that can run: it reads the topic and scores nothing", lane)
    resources = Resources(
        encoder,
        settings.evaluators.encoder.cache_bytes,
        models.loaded,
        settings.evaluators.answers_cache_bytes,
        settings.evaluators.portion_bytes,
        encoders.loaded,
        _judge(plan, settings, database, max_usd, by_batch=by_batch, limits_records=run_id == LIVE),
    )
    topics = None
    if encoder is not None and database is not None and settings.topics.enabled:
        topics = TopicModelCache(database, encoder.revision, settings.topics.refresh_s)
        topics.refresh()
    pipeline = Pipeline(
        plan.prepared,
        resources,
        settings,
        lane=lane,
        run_id=run_id,
        timely=timely,
        interval=interval,
        event_bounds=event_bounds,
        companions=companions.prepared,
        topics=topics.current if topics else dict,
        clock=clock,
    )
    return PipelineSetup(pipeline, plan, resources, topics)


def _judge(
    plan: Plan,
    settings: Settings,
    database: Database | None,
    max_usd: float | None,
    *,
    by_batch: bool,
    limits_records: bool,
) -> Judge | None:
    """Return the client of judges if an evaluator asks one. It connects with the first call.

    Without a `database` budgets are of this process alone.
    """
    if not any(Need.JUDGE in prepared.evaluator.needs for prepared in plan.prepared):
        if by_batch:
            raise ConfigError("--batch is for judges, and no evaluator that runs asks one; choose some by --lane judge")
        return None
    from ragtide.stream.judge import JudgeClient, StoredLedger  # aiohttp takes a tenth of a second

    judge = settings.evaluators.judge
    ledger = StoredLedger(database) if database is not None and judge.has_budget else None
    return JudgeClient(judge, ledger=ledger, max_usd=max_usd, limits_records=limits_records, by_batch=by_batch)
