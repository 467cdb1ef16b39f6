"""Fill the tables that dashboards read as the product would leave them, inside ClickHouse.

Minutes are made from random numbers, hours and days from the minutes. A score is a row of `scores`; the windows have
the same number of records, but not the same values.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from ragtide.drift import sql
from ragtide.drift.windows import LOG_ORIGIN, LOG_STEP
from ragtide.evaluators.spec import Evaluator
from ragtide.sinks.clickhouse.database import Database

APPS = tuple(f"app-{number:02}" for number in range(10))
MODELS = ("model-a", "model-b")
TENANTS = ("acme", "globex", "initech", "__other__")
_SEGMENTED = APPS[:2]  # these split primary metrics by tenant
_PROBLEMS = 400
_COLUMNS = (
    "run_id, size_s, app, environment, evaluator, metric, start, fingerprint, model, prompt_version, segment, "
    "segment_value, seen, sampled, applicable, scored, failed, skipped, failures, sum, sum_squares, min, max, bins, "
    "late, revision, state, incomplete, closed_at, version"
)


@dataclass(frozen=True, slots=True)
class Volume:
    """How much: `scores` rows of these evaluators over whole days up to `until`."""

    evaluators: Sequence[Evaluator]
    scores: int
    days: int
    until: datetime

    @property
    def since(self) -> datetime:
        """Start of the first day."""
        return self.until - timedelta(days=self.days)

    @property
    def minutes(self) -> int:
        """Minutes of all days."""
        return self.days * 1440

    @property
    def traces(self) -> int:
        """Traces in all."""
        return self.scores // len(self.evaluators)

    @property
    def per_window(self) -> float:
        """Traces of an application and model in a minute, on average."""
        return self.traces / self.minutes / len(APPS) / len(MODELS)


def fill(database: Database, volume: Volume) -> None:
    """Fill every table. The tables are empty before."""
    for app in APPS:
        _minutes(database, volume, app)
        _scores(database, volume, app)
    for size_s, of_s in ((3600, 60), (86400, 3600)):
        _larger(database, volume, size_s, of_s)
    _verdicts(database, volume)
    _problems(database, volume)
    _rest(database, volume)


def _at(time: datetime) -> str:
    return f"toDateTime('{time:%Y-%m-%d %H:%M:%S}', 'UTC')"


def _metrics(volume: Volume, *, primary: bool = False) -> str:
    """An array of evaluator, metric and whether it is bounded."""
    found = [
        f"({sql.text(one.id)}, {sql.text(f'{one.id}.{metric.key}')}, {int(metric.bounded)}, "
        f"{metric.low if metric.bounded else 0.0}, "
        f"{metric.high - metric.low if metric.bounded else 1.0})"
        for one in volume.evaluators
        for metric in one.metrics
        if metric.primary or not primary
    ]
    return f"[{', '.join(found)}]"


def _minutes(database: Database, volume: Volume, app: str) -> None:
    """The minutes of one application: all metrics, and the primary ones by tenant where they are split."""
    cuts = [("", "", _metrics(volume), 1.0)]
    if app in _SEGMENTED:
        cuts += [("tenant", tenant, _metrics(volume, primary=True), 0.25) for tenant in TENANTS]
    for segment, value, metrics, share in cuts:
        each = max(volume.per_window * share, 0.5)
        # Each record is a uniform number u: most are good, the rest have a long tail.
        rows = (
            "SELECT metric.1 AS evaluator, metric.2 AS name, metric.3 AS bounded, metric.4 AS low, metric.5 AS span, "
            f"{_at(volume.since)} + intDiv(number, {len(MODELS)}) * 60 AS start, "
            f"[{sql.texts(MODELS)[1:-1]}][number % {len(MODELS)} + 1] AS model, "
            f"toUInt32(round({each} * (0.5 + cityHash64(number, '{value}') % 1000 / 1000.))) AS n, "
            "arrayMap(i -> cityHash64(number, metric.2, i) / 18446744073709551616., range(n)) AS u, "
            "arrayMap(x -> if(bounded, low + span * (1 - 0.7 * pow(x, 3)), exp(2 * x * x)), u) AS found, "
            f"arrayMap(x -> if(bounded, toInt32(floor((x - low) / span * 100)), toInt32({LOG_ORIGIN} + "
            f"floor(log(x) / {LOG_STEP!r}))), found) "
            f"AS places, arrayDistinct(places) AS bin FROM numbers({volume.minutes * len(MODELS)}) "
            f"ARRAY JOIN {metrics} AS metric WHERE n > 0"
        )
        database.command(
            f"INSERT INTO windows ({_COLUMNS}) SELECT 'live', 60, {sql.text(app)}, 'prod', evaluator, name, start, "
            f"'f1', model, 'p1', {sql.text(segment)}, {sql.text(value)}, n + 1, n + 1, n, n, 0, "
            f"map('missing_contexts', 1), "
            "map(), arraySum(found), arraySum(x -> x * x, found), arrayMin(found), arrayMax(found), "
            "mapFromArrays(bin, arrayMap(x -> toUInt64(countEqual(places, x)), bin)), 0, 1, 'frozen', 0, start, 1 "
            f"FROM ({rows})"
        )


def _larger(database: Database, volume: Volume, size_s: int, of_s: int) -> None:
    for app in APPS:
        database.command(
            f"INSERT INTO windows ({_COLUMNS}) SELECT 'live', {size_s}, app, environment, evaluator, metric, begin, "
            "fingerprint, model, prompt_version, segment, segment_value, sum(seen), sum(sampled), sum(applicable), "
            "sum(scored), sum(failed), sumMap(skipped), map(), sum(sum), sum(sum_squares), min(min), max(max), "
            f"sumMap(bins), 0, 1, 'frozen', 0, begin, 1 FROM (SELECT *, toStartOfInterval(start, INTERVAL "
            f"{size_s} second) "
            f"AS begin FROM windows WHERE run_id = 'live' AND size_s = {of_s} AND app = {sql.text(app)}) "
            "GROUP BY app, environment, evaluator, metric, begin, fingerprint, model, prompt_version, segment, "
            "segment_value"
        )


def _scores(database: Database, volume: Volume, app: str) -> None:
    """Scores and traces of one application."""
    traces = volume.traces // len(APPS)
    keys = ", ".join(
        f"({sql.text(one.id)}, [{', '.join(sql.text(metric.key) for metric in one.metrics)}])"
        for one in volume.evaluators
    )
    place = (
        f"'live', {sql.text(app)}, 'prod', toDateTime64({_at(volume.since)}, 3, 'UTC') "
        f"+ number * {volume.minutes * 60 / max(traces, 1)!r} AS time, concat('{app}-', toString(number)) AS "
        f"trace_id, 1"
    )
    model = f"[{sql.texts(MODELS)[1:-1]}][cityHash64(number) % {len(MODELS)} + 1], 'p1'"
    for day in range(volume.days):
        first, count = traces * day // volume.days, traces * (day + 1) // volume.days - traces * day // volume.days
        numbers = f"FROM numbers({first}, {count})"
        database.command(
            "INSERT INTO scores (run_id, app, environment, time, trace_id, version, evaluator, status, metrics, "
            f"fingerprint, weight, model, prompt_version) SELECT {place}, one.1, 'scored', mapFromArrays(one.2, "
            "arrayMap(key -> cityHash64(number, key) / 18446744073709551616., one.2)), 'f1', 1, "
            f"{model} {numbers} ARRAY JOIN [{keys}] AS one"
        )
        database.command(
            "INSERT INTO traces (run_id, app, environment, time, trace_id, version, model, prompt_version, latency_s, "
            f"cost_usd) SELECT {place}, {model}, 1, 0.01 {numbers}"
        )


def _verdicts(database: Database, volume: Volume) -> None:
    series = (
        f"FROM (SELECT DISTINCT app, environment, metric, model FROM windows WHERE size_s = 86400 AND "
        f"segment = '' AND metric IN {_primary(volume)})"
    )
    database.command(
        "INSERT INTO verdicts (rule_id, run_id, app, environment, metric, model, fingerprint, start, end, revision, "
        "breached, value, threshold, samples, wrong, version) SELECT 'mean:1', 'live', app, environment, "
        "metric, model, "
        f"'f1', {_at(volume.since)} + minute * 60 AS begin, begin + 60, 1, cityHash64(metric, minute) % 100 = 0, 0.8, "
        f"0.75, 40, 3, 1 {series} ARRAY JOIN range({volume.minutes}) AS minute"
    )
    database.command(
        "INSERT INTO expected_levels (app, environment, metric, model, effective_from, quantity, of_records, min_bin, "
        "max_bin, levels, variance_per_record, variance_floor, tick_s, version) SELECT app, environment, "
        "metric, model, "
        f"{_at(volume.since)} + day * 86400, 'mean', 0, -1000000000, 1000000000, "
        f"arrayMap(hour -> 0.8, range(168)), 0.03, 0.0001, 300, 1 {series} ARRAY JOIN range({volume.days}) AS day"
    )


def _primary(volume: Volume) -> str:
    return sql.texts(f"{one.id}.{metric.key}" for one in volume.evaluators for metric in one.metrics if metric.primary)


def _problems(database: Database, volume: Volume) -> None:
    """Problems of all applications, of which one in ten is still open, with an update each ten minutes of an hour."""
    metrics = [f"{one.id}.{metric.key}" for one in volume.evaluators for metric in one.metrics if metric.primary]
    database.command(
        "INSERT INTO problem_events (problem_id, event_id, event, episode, at, app, environment, model, "
        "aspect, metric, "
        "kind, type, severity, description, attributes, examples, actions, rule_id) "
        "SELECT concat('p', toString(number)), concat('e', toString(step)), "
        "multiIf(step = 0, 'opened', step < 7, 'updated', 'resolved'), 1, "
        f"{_at(volume.since)} + cityHash64(number) % {volume.minutes * 60} + step * 600, "
        f"[{sql.texts(APPS)[1:-1]}][number % {len(APPS)} + 1], 'prod', 'model-a', 'level', "
        f"[{sql.texts(metrics)[1:-1]}][cityHash64(number, 1) % {len(metrics)} + 1], 'threshold', 'accuracy', "
        "['critical', 'warning', 'info'][number % 3 + 1], 'It fell from 0.8 to 0.6 on 1,000 traces.', '{}', ['t1'], "
        f"['Look.'], 'mean:1' FROM numbers({_PROBLEMS}) ARRAY JOIN range(if(number % 10 = 0, 7, 8)) AS step"
    )


def _rest(database: Database, volume: Volume) -> None:
    database.command(
        "INSERT INTO insights (insight_id, type, app, environment, description, examples, actions, period_start, "
        "period_end, epoch) SELECT toString(number), 'weak_point', "
        f"[{sql.texts(APPS)[1:-1]}][number % {len(APPS)} + 1], 'prod', 'A tenth of the questions fail.', "
        f"['t1'], ['Look.'], "
        f"{_at(volume.since)} + number * 3600, {_at(volume.since)} + number * 3600 + 86400, 1 FROM "
        f"numbers({24 * volume.days})"
    )
