"""Try a prompt of the settings on records: verdicts, cost, and agreement with people's labels."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ragtide.drift.calibration import AtThreshold, LabelledScore, agreement_at
from ragtide.drift.windows import metrics_by_name
from ragtide.evaluators.errors import BadRecord, ConfigError
from ragtide.evaluators.judge.settings import needs_prices
from ragtide.evaluators.spec import Evaluator
from ragtide.stream.api.evaluation import evaluate_source
from ragtide.stream.api.inputs import Item, Source
from ragtide.stream.api.labelling import read_labels
from ragtide.stream.api.result import Result, Score
from ragtide.stream.ingest.records import StoredRecord
from ragtide.stream.labels.decoding import decode
from ragtide.stream.labels.label import Verdict
from ragtide.stream.settings.loader import Settings
from ragtide.stream.settings.sampling import SamplingSettings

if TYPE_CHECKING:
    from ragtide.stream.judge import Usage

_METRIC = "passes"
_NO_ID = "record"  # stands for the trace id of a record's own verdict


@dataclass(slots=True)
class PeopleLabels:
    """What people say of answers: whether they are bad, by trace or by number of the record.

    Labels are thumbs; with `good_from` scores, which are good from there on. Verdicts in records count unless labels
    were read; `faults` are those that cannot be read.
    """

    good_from: float | None = None
    by_trace: dict[str, bool] = field(default_factory=dict)
    by_record: dict[int, bool] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    from_records: bool = True

    def read(self, source: Source, max_bytes: int) -> None:
        """Read labels as messages of `rag.labels`, of each trace the last one. Raises `ConfigError`."""
        self.from_records = False
        for label, _ in read_labels(source, max_bytes, f"{source.name}: some labels cannot be read"):
            if (is_bad := self._is_bad(label.verdict)) is not None:
                self.by_trace[label.trace_id] = is_bad

    def collect(self, source: Source, max_bytes: int) -> Source:
        """Return the source; the field `verdict` of its records is collected while they are read."""
        return source._replace(items=self._collected(source.items, max_bytes)) if self.from_records else source

    def of(self, score: Score) -> bool | None:
        """Return whether people say that the answer is bad, or None."""
        return self.by_trace.get(score.trace_id, self.by_record.get(score.record))

    def _collected(self, items: Iterator[Item], max_bytes: int) -> Iterator[Item]:
        for item in items:
            if isinstance(item.record, StoredRecord):
                try:
                    is_bad = self._is_bad(_verdict_in(item.record, max_bytes))
                except BadRecord as fault:
                    self.faults.append(f"record {item.record.offset}: {fault.detail or fault.reason}")
                    is_bad = None
                if is_bad is not None:
                    self.by_record[item.record.offset] = is_bad
            yield item

    def _is_bad(self, verdict: Verdict | None) -> bool | None:
        if verdict is None:
            return None
        if self.good_from is not None:
            return None if verdict.score is None else verdict.score < self.good_from
        return None if verdict.thumbs is None else verdict.thumbs == "down"


class TrialVerdict(NamedTuple):
    """What the judge says of a trace, and people. None: no verdict, for the `reason`; no label."""

    record: int
    trace_id: str
    status: str  # as in table `scores`
    reason: str
    passes: bool | None
    verdict: bool | None
    people_say_bad: bool | None


@dataclass(frozen=True, slots=True)
class PromptTrial:
    """The verdicts of a prompt, in the order of the evaluated traces. `agreement` is None without labelled verdicts.

    `has_prices` is whether the settings have the prices of the endpoint: without, the cost is unknown.
    """

    prompt: str
    verdicts: tuple[TrialVerdict, ...]
    result: Result
    agreement: AtThreshold | None
    label_faults: tuple[str, ...]
    has_prices: bool

    @property
    def usage(self) -> "Usage":
        """Calls, tokens and cost."""
        from ragtide.stream.judge import Usage

        return next(iter(self.result.judge_usage_by_endpoint.values()), Usage())  # of its only endpoint

    @property
    def usd_per_1000(self) -> float | None:
        """Mean cost of 1,000 traces that are judged, repairs included; None without prices, or calls that were paid."""
        asked = self.usage.calls - self.usage.repairs
        return 1_000 * self.usage.cost_usd / asked if asked and self.has_prices else None

    @property
    def labelled(self) -> int:
        """Number of verdicts on traces with a label."""
        return sum(one.passes is not None and one.people_say_bad is not None for one in self.verdicts)


def try_prompt(
    name: str,
    source: Source,
    settings: Settings,
    known: Mapping[str, Evaluator],
    labels: PeopleLabels,
    max_usd: float | None = None,
) -> PromptTrial:
    """Judge every record with the prompt, through the client, limits and cache of the lane, and compare with labels.

    Sampling does not apply, and the prompt may be disabled. `max_usd` limits the cost, calls in flight at the limit
    aside. Raises `ConfigError` without an endpoint, and for `max_usd` without its prices.
    """
    judge = settings.evaluators.judge
    endpoint = judge.endpoint_of(name)
    has_prices = endpoint is not None and judge.without_prices([endpoint]) is None
    if max_usd is not None and endpoint is not None and not has_prices:
        raise ConfigError(f"a limit of the cost {needs_prices(endpoint)}")
    evaluators = settings.evaluators.model_copy(update={"enabled": (name,), "disabled": ()})
    settings = settings.model_copy(update={"evaluators": evaluators, "sampling": SamplingSettings()})
    result = evaluate_source(labels.collect(source, settings.ingest.max_bytes), settings, known, max_usd=max_usd)
    good = judge.byop[name].good_verdict
    verdicts = tuple(_verdict(score, good, labels.of(score)) for score in result.scores(name))
    metric = metrics_by_name(known)[f"{name}.{_METRIC}"]
    threshold = metric.metric.threshold
    assert threshold is not None, "every check has one"
    scores = [
        LabelledScore(float(one.passes), one.people_say_bad)
        for one in verdicts
        if one.passes is not None and one.people_say_bad is not None
    ]
    agreement = agreement_at(metric, scores, threshold) if scores else None
    return PromptTrial(name, verdicts, result, agreement, tuple(labels.faults), has_prices)


def _verdict(score: Score, good_verdict: bool, people_say_bad: bool | None) -> TrialVerdict:
    value = score.metrics.get(_METRIC)
    passes = None if value is None else value == 1
    verdict = None if passes is None else passes == good_verdict
    return TrialVerdict(score.record, score.trace_id, score.status, score.reason, passes, verdict, people_say_bad)


def _verdict_in(record: StoredRecord, max_bytes: int) -> Verdict | None:
    """Return the verdict of a person that a trace carries. Raises `BadRecord` for one that cannot be read."""
    if record.value is None or b'"verdict"' not in record.value:
        return None
    try:
        fields = msgspec.json.decode(record.value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None  # the pipeline reads it, or says why not
    if not isinstance(fields, dict) or fields.get("verdict") is None:
        return None
    label = msgspec.json.encode({"trace_id": _NO_ID, "verdict": fields["verdict"]})
    return decode(StoredRecord(record.topic, 0, record.offset, 0, None, label), max_bytes).verdict
