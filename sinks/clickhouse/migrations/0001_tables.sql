-- The tables of ragwatch. Statements end with a semicolon at the end of a line; every one may run twice and from two
-- processes at once. TTLs are set by `ragwatch migrate` from the settings, not here.

CREATE TABLE IF NOT EXISTS traces
(
    run_id LowCardinality(String),
    app LowCardinality(String),
    environment LowCardinality(String),
    time DateTime64(3, 'UTC'),
    trace_id String,
    version UInt128,
    session_id String,
    user_id String,
    task LowCardinality(String),
    probe LowCardinality(String),
    model LowCardinality(String) COMMENT 'served, else requested',
    model_requested LowCardinality(String),
    provider LowCardinality(String),
    prompt_version LowCardinality(String),
    latency_s Nullable(Float64),
    first_token_s Nullable(Float64),
    cost_usd Nullable(Float64),
    input_tokens Nullable(UInt64),
    output_tokens Nullable(UInt64),
    error LowCardinality(String),
    chunk_ids Array(String),
    categories Array(LowCardinality(String)),
    segments Map(LowCardinality(String), String),
    relationships String,
    test_case String,
    topic LowCardinality(String),
    partition UInt32,
    offset UInt64,
    is_deleted UInt8,
    ingested_at DateTime64(3, 'UTC') DEFAULT now64(3),
    INDEX by_trace trace_id TYPE bloom_filter GRANULARITY 4
)
ENGINE = ReplacingMergeTree(version, is_deleted)
PARTITION BY toYYYYMMDD(time)
ORDER BY (run_id, app, environment, toStartOfMinute(time), trace_id);

CREATE TABLE IF NOT EXISTS trace_texts
(
    run_id LowCardinality(String),
    app LowCardinality(String),
    environment LowCardinality(String),
    time DateTime64(3, 'UTC'),
    trace_id String,
    version UInt128,
    question Nullable(String),
    answer Nullable(String),
    chunk_ids Array(String),
    chunks Array(String),
    expected Array(String),
    error_message String,
    attributes String,
    is_deleted UInt8,
    ingested_at DateTime64(3, 'UTC') DEFAULT now64(3),
    INDEX by_trace trace_id TYPE bloom_filter GRANULARITY 4
)
ENGINE = ReplacingMergeTree(version, is_deleted)
PARTITION BY toYYYYMMDD(time)
ORDER BY (run_id, app, environment, toStartOfMinute(time), trace_id);

CREATE TABLE IF NOT EXISTS scores
(
    run_id LowCardinality(String),
    app LowCardinality(String),
    environment LowCardinality(String),
    evaluator LowCardinality(String),
    time DateTime64(3, 'UTC'),
    trace_id String,
    version UInt128,
    status LowCardinality(String) COMMENT 'scored, not_applicable, failed or sampled_out',
    reason LowCardinality(String),
    metrics Map(LowCardinality(String), Float64),
    categories Map(LowCardinality(String), String),
    parts Map(LowCardinality(String), Float64),
    evidence String,
    findings Array(LowCardinality(String)),
    fingerprint LowCardinality(String),
    weight Float32,
    model LowCardinality(String),
    prompt_version LowCardinality(String),
    segments Map(LowCardinality(String), String),
    is_deleted UInt8,
    ingested_at DateTime64(3, 'UTC') DEFAULT now64(3),
    INDEX by_trace trace_id TYPE bloom_filter GRANULARITY 4
)
ENGINE = ReplacingMergeTree(version, is_deleted)
PARTITION BY toYYYYMMDD(time)
ORDER BY (run_id, app, environment, evaluator, toStartOfMinute(time), trace_id);

CREATE OR REPLACE VIEW metric_values AS
SELECT run_id, app, environment, evaluator, concat(evaluator, '.', metric) AS metric, value, time, trace_id,
       fingerprint, weight, model, prompt_version, segments
FROM scores FINAL
ARRAY JOIN mapKeys(metrics) AS metric, mapValues(metrics) AS value
WHERE status = 'scored';

CREATE TABLE IF NOT EXISTS windows
(
    run_id LowCardinality(String),
    size_s UInt32,
    app LowCardinality(String),
    environment LowCardinality(String),
    evaluator LowCardinality(String),
    metric LowCardinality(String) COMMENT 'evaluator.metric',
    start DateTime('UTC'),
    fingerprint LowCardinality(String),
    model LowCardinality(String),
    prompt_version LowCardinality(String),
    segment LowCardinality(String) COMMENT 'empty: the whole',
    segment_value String,
    seen UInt64 COMMENT 'traces of these dimensions',
    sampled UInt64 COMMENT 'of those, not left out by sampling',
    applicable UInt64 COMMENT 'of those, applicable',
    scored UInt64 COMMENT 'of those, with a value: the n of every mean',
    failed UInt64,
    skipped Map(LowCardinality(String), UInt64) COMMENT 'not applicable and sampled out, by reason',
    failures Map(LowCardinality(String), UInt64) COMMENT 'failed, by kind',
    sum Float64,
    sum_squares Float64,
    min Nullable(Float64),
    max Nullable(Float64),
    bins Map(Int32, UInt64) COMMENT 'bounded: 100 equal bins; unbounded: logarithmic, 1 %',
    category_counts Map(String, UInt64),
    parts Map(String, Float64),
    late UInt64 COMMENT 'rows that came after the window first closed',
    revision UInt32 COMMENT '1 when closed, one more for every change since',
    state LowCardinality(String) COMMENT 'closed, revised or frozen (no alerting on later changes)',
    incomplete UInt8 COMMENT 'closed without waiting longer for a stuck partition',
    closed_at DateTime64(3, 'UTC'),
    version UInt64 COMMENT 'leader epoch << 32 | number of the roll-up',
    computed_at DateTime64(3, 'UTC') DEFAULT now64(3),
    INDEX by_version version TYPE minmax GRANULARITY 1
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY (size_s, toYYYYMM(start))
ORDER BY (run_id, size_s, app, environment, metric, start, fingerprint, model, prompt_version, segment, segment_value);

CREATE TABLE IF NOT EXISTS dirty_windows
(
    run_id LowCardinality(String),
    app LowCardinality(String),
    environment LowCardinality(String),
    lane LowCardinality(String),
    start DateTime('UTC') COMMENT 'of the base window',
    mark_id String,
    done UInt8,
    epoch UInt64 DEFAULT 0 COMMENT 'of the leader that took the mark back',
    marked_at DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree(done)
ORDER BY (run_id, app, environment, start, lane, mark_id);

CREATE TABLE IF NOT EXISTS progress
(
    lane LowCardinality(String),
    topic LowCardinality(String),
    partition UInt32,
    worker String,
    newest DateTime64(3, 'UTC'),
    offset UInt64,
    lag UInt64,
    heartbeat_at DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree(heartbeat_at)
ORDER BY (lane, topic, partition);

CREATE TABLE IF NOT EXISTS watermarks
(
    lane LowCardinality(String),
    topic LowCardinality(String),
    watermark SimpleAggregateFunction(max, DateTime64(3, 'UTC'))
)
ENGINE = AggregatingMergeTree
ORDER BY (lane, topic);

CREATE TABLE IF NOT EXISTS leaders
(
    epoch UInt64,
    holder String,
    elected_at DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree(elected_at)
ORDER BY (epoch, holder);

CREATE TABLE IF NOT EXISTS runs
(
    run_id String,
    source String COMMENT 'topic or file, and its range',
    evaluators Array(String),
    fingerprints Map(String, String),
    settings_hash String,
    state LowCardinality(String) COMMENT 'started or completed',
    position String COMMENT 'JSON: where to go on',
    traces UInt64,
    dead_letters UInt64,
    version UInt64,
    started_at DateTime64(3, 'UTC'),
    updated_at DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree(version)
ORDER BY run_id;

CREATE TABLE IF NOT EXISTS dead_letters
(
    run_id LowCardinality(String),
    topic LowCardinality(String),
    partition UInt32,
    offset UInt64,
    time DateTime64(3, 'UTC') COMMENT 'of the broker',
    reason LowCardinality(String),
    detail String,
    stage LowCardinality(String),
    size UInt64,
    sha256 String,
    ingested_at DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree(ingested_at)
ORDER BY (run_id, topic, partition, offset, time);

CREATE TABLE IF NOT EXISTS verdicts
(
    rule_id LowCardinality(String),
    run_id LowCardinality(String),
    app LowCardinality(String),
    environment LowCardinality(String),
    metric LowCardinality(String),
    model LowCardinality(String),
    segment LowCardinality(String),
    segment_value String,
    fingerprint LowCardinality(String),
    start DateTime('UTC') COMMENT 'first pooled window',
    end DateTime('UTC') COMMENT 'end of the last pooled window',
    revision UInt32,
    breached UInt8,
    value Float64,
    threshold Float64,
    samples UInt64,
    wrong UInt64 COMMENT 'records on the wrong side',
    incomplete UInt8,
    version UInt64,
    judged_at DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (rule_id, run_id, app, environment, metric, model, segment, segment_value, fingerprint, start);

CREATE TABLE IF NOT EXISTS cursors
(
    name LowCardinality(String) COMMENT 'of a job that goes through rows in the order of their version',
    position SimpleAggregateFunction(max, UInt64)
)
ENGINE = AggregatingMergeTree
ORDER BY name;

CREATE TABLE IF NOT EXISTS problem_events
(
    problem_id String,
    event_id String,
    event LowCardinality(String),
    episode UInt32,
    at DateTime64(3, 'UTC'),
    app LowCardinality(String),
    environment LowCardinality(String),
    model LowCardinality(String),
    aspect LowCardinality(String),
    metric LowCardinality(String),
    segment LowCardinality(String),
    segment_value String,
    kind LowCardinality(String),
    type LowCardinality(String),
    severity LowCardinality(String),
    code LowCardinality(String),
    standards Array(LowCardinality(String)),
    description String,
    attributes String COMMENT 'JSON',
    examples Array(String) COMMENT 'trace ids, worst first',
    actions Array(String),
    rule_id LowCardinality(String),
    actor String,
    epoch UInt64,
    recorded_at DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree(epoch)
ORDER BY (problem_id, event_id);

CREATE TABLE IF NOT EXISTS insights
(
    insight_id String,
    type LowCardinality(String),
    app LowCardinality(String),
    environment LowCardinality(String),
    description String,
    attributes String COMMENT 'JSON',
    examples Array(String),
    actions Array(String),
    period_start DateTime('UTC'),
    period_end DateTime('UTC'),
    epoch UInt64,
    recorded_at DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree(epoch)
ORDER BY insight_id;

CREATE TABLE IF NOT EXISTS outbox
(
    message_id String,
    target LowCardinality(String) COMMENT 'grafana',
    action LowCardinality(String) COMMENT 'open or close',
    subject String COMMENT 'what it is about: a problem id and its episode',
    payload String COMMENT 'JSON',
    state LowCardinality(String) COMMENT 'pending, sent or refused',
    external_id String,
    attempts UInt32,
    version UInt64,
    updated_at DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree(version)
ORDER BY message_id;
