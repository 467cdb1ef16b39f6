-- The tables of ragtide. Statements end with a semicolon at the end of a line; every one may run twice and from two
-- processes at once. TTLs are set by `ragtide migrate` from the settings, not here.

CREATE TABLE IF NOT EXISTS traces
(
    run_id LowCardinality(String) COMMENT 'live, probe (traces asked by probes) or the name of a replay',
    app LowCardinality(String) COMMENT 'Application that answered',
    environment LowCardinality(String) COMMENT 'Deployment environment; empty: the trace named none',
    time DateTime64(3, 'UTC') COMMENT 'Event time: when the answer was given, UTC',
    trace_id String COMMENT 'Identifier of the trace, as the application sent it',
    version UInt128 COMMENT 'Order among messages of one trace: timestamp, source, offset, revision, evaluator version; the largest wins',
    session_id String COMMENT 'Session of the user; empty: not recorded',
    user_id String COMMENT 'User, as a keyed hash where privacy.hash_users is on; empty: not recorded',
    task LowCardinality(String) COMMENT 'Task of the trace, as sent or by ingest.tasks and ingest.default_task; empty: none',
    probe LowCardinality(String) COMMENT 'Name of the probe that asked; empty: real traffic',
    model LowCardinality(String) COMMENT 'Model that answered, else the one requested; empty: not recorded',
    model_requested LowCardinality(String) COMMENT 'Model that the application requested; empty: not recorded',
    provider LowCardinality(String) COMMENT 'Provider of the model; empty: not recorded',
    prompt_version LowCardinality(String) COMMENT 'Version of the prompt; empty: not recorded',
    latency_s Nullable(Float64) COMMENT 'Time to the complete answer, in seconds; NULL: not recorded',
    first_token_s Nullable(Float64) COMMENT 'Time to the first token, in seconds; NULL: not recorded',
    cost_usd Nullable(Float64) COMMENT 'Cost of the trace, in US dollars; NULL: not recorded and not priced',
    input_tokens Nullable(UInt64) COMMENT 'Tokens read by models, summed over their calls; NULL: not recorded',
    output_tokens Nullable(UInt64) COMMENT 'Tokens written by models, summed over their calls; NULL: not recorded',
    error LowCardinality(String) COMMENT 'Type of the application''s error, its message is in trace_texts; empty: no error',
    chunk_ids Array(String) COMMENT 'Identifiers of the retrieved chunks, in rank order; empty: none retrieved or not recorded',
    categories Array(LowCardinality(String)) COMMENT 'Categories that the application assigned; empty: none',
    segments Map(LowCardinality(String), String) COMMENT 'Segments of the trace by name, such as tenant or region; empty: none sent',
    relationships String COMMENT 'JSON list of links to other traces or test cases; []: none',
    test_case String COMMENT 'JSON object with suite, test and key of a test run; {}: no test',
    topic LowCardinality(String) COMMENT 'Kafka topic of the message, or file:NAME',
    partition UInt32 COMMENT 'Partition of the message; 0 for a file',
    offset UInt64 COMMENT 'Offset of the message, or the line of the file',
    question_hash String COMMENT 'Hash of the question without case and spacing, keyed where there is a hash_key; empty: no question, or texts are not stored in full and there is no key',
    span_id String COMMENT 'Root span of the trace in OpenTelemetry, 16 hex digits; empty: not recorded',
    is_deleted UInt8 COMMENT '1: deleted, FINAL leaves the row out; 0: current',
    ingested_at DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'Time of the insert by the server''s clock, UTC',
    INDEX by_trace trace_id TYPE bloom_filter GRANULARITY 4,
    INDEX by_ingested_at ingested_at TYPE minmax GRANULARITY 1
)
ENGINE = ReplacingMergeTree(version, is_deleted)
PARTITION BY toYYYYMMDD(time)
ORDER BY (run_id, app, environment, toStartOfMinute(time), trace_id)
COMMENT 'One row per trace: what it was and what served it. Its texts are in trace_texts.';

CREATE TABLE IF NOT EXISTS trace_texts
(
    run_id LowCardinality(String) COMMENT 'live, probe (traces asked by probes) or the name of a replay',
    app LowCardinality(String) COMMENT 'Application that answered',
    environment LowCardinality(String) COMMENT 'Deployment environment; empty: the trace named none',
    time DateTime64(3, 'UTC') COMMENT 'Event time: when the answer was given, UTC',
    trace_id String COMMENT 'Identifier of the trace, as the application sent it',
    version UInt128 COMMENT 'Order among messages of one trace: timestamp, source, offset, revision, evaluator version; the largest wins',
    question Nullable(String) COMMENT 'Question, in full or masked; NULL: not recorded',
    answer Nullable(String) COMMENT 'Answer, in full or masked; NULL: not recorded',
    chunk_ids Array(String) COMMENT 'Identifiers of the retrieved chunks, in rank order; empty: none retrieved or not recorded',
    chunks Array(String) COMMENT 'Texts of the chunks, one per chunk id; empty: none, an empty item: text not recorded',
    expected Array(String) COMMENT 'Reference answers; empty: none',
    error_message String COMMENT 'Message of the application''s error; empty: no error or no message',
    attributes String COMMENT 'JSON object of fields that no evaluator reads; {}: none',
    rest String CODEC(ZSTD(1)) COMMENT 'JSON of what the trace held beyond these columns; empty: texts are masked, the trace cannot be evaluated again',
    is_deleted UInt8 COMMENT '1: deleted, FINAL leaves the row out; 0: current',
    ingested_at DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'Time of the insert by the server''s clock, UTC',
    INDEX by_trace trace_id TYPE bloom_filter GRANULARITY 4
)
ENGINE = ReplacingMergeTree(version, is_deleted)
PARTITION BY toYYYYMMDD(time)
ORDER BY (run_id, app, environment, toStartOfMinute(time), trace_id)
COMMENT 'Texts of each trace, and all that no other column holds, so that it can be evaluated again.';

-- A mean over NaN or infinity is meaningless: ClickHouse refuses such a row, and its lane makes the record a dead letter.
CREATE TABLE IF NOT EXISTS scores
(
    run_id LowCardinality(String) COMMENT 'live, probe (traces asked by probes) or the name of a replay',
    app LowCardinality(String) COMMENT 'Application that answered',
    environment LowCardinality(String) COMMENT 'Deployment environment; empty: the trace named none',
    evaluator LowCardinality(String) COMMENT 'Identifier of the evaluator',
    time DateTime64(3, 'UTC') COMMENT 'Event time: when the answer was given, UTC',
    trace_id String COMMENT 'Identifier of the trace, as the application sent it',
    version UInt128 COMMENT 'Order among messages of one trace: timestamp, source, offset, revision, evaluator version; the largest wins',
    status LowCardinality(String) COMMENT 'scored, not_applicable, failed or sampled_out',
    reason LowCardinality(String) COMMENT 'Slug of why there is no score; empty: status is scored',
    metrics Map(LowCardinality(String), Float64) COMMENT 'Value by metric key, in the unit of the metric; empty: status is not scored',
    categories Map(LowCardinality(String), String) COMMENT 'Label by category key; empty: none',
    parts Map(LowCardinality(String), Float64) COMMENT 'Counts by key that window metrics are computed from; of judges sums of a sample: ppi.METRIC.NAME, weights.METRIC.BIN, squared_weights.METRIC.BIN; empty: none',
    evidence String COMMENT 'JSON list of places in the trace, never quotes; []: none',
    findings Array(LowCardinality(String)) COMMENT 'Slugs of remarks about the trace; empty: none',
    fingerprint LowCardinality(String) COMMENT 'Hash of the evaluator''s id, version, parameters and model revision; series of two fingerprints never mix',
    weight Float32 COMMENT 'Traces that the row stands for: 1 / sampling rate; 0: the rate is 0, or it was judged because somebody disliked the answer',
    model LowCardinality(String) COMMENT 'Model that answered, else the one requested; empty: not recorded',
    prompt_version LowCardinality(String) COMMENT 'Version of the prompt; empty: not recorded',
    segments Map(LowCardinality(String), String) COMMENT 'Segments of the trace by name, such as tenant or region; empty: none sent',
    is_deleted UInt8 COMMENT '1: deleted, FINAL leaves the row out; 0: current',
    ingested_at DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'Time of the insert by the server''s clock, UTC',
    INDEX by_trace trace_id TYPE bloom_filter GRANULARITY 4,
    INDEX by_ingested_at ingested_at TYPE minmax GRANULARITY 1,
    CONSTRAINT finite_metrics CHECK arrayAll(value -> isFinite(value), mapValues(metrics)),
    CONSTRAINT finite_parts CHECK arrayAll(value -> isFinite(value), mapValues(parts))
)
ENGINE = ReplacingMergeTree(version, is_deleted)
PARTITION BY toYYYYMMDD(time)
ORDER BY (run_id, app, environment, evaluator, toStartOfMinute(time), trace_id)
COMMENT 'One row per trace and evaluator. Rows with NaN or infinity are refused.';

CREATE TABLE IF NOT EXISTS explanations
(
    run_id LowCardinality(String) COMMENT 'live, probe (traces asked by probes) or the name of a replay',
    app LowCardinality(String) COMMENT 'Application that answered',
    environment LowCardinality(String) COMMENT 'Deployment environment; empty: the trace named none',
    evaluator LowCardinality(String) COMMENT 'Identifier of the evaluator',
    time DateTime64(3, 'UTC') COMMENT 'Event time: when the answer was given, UTC',
    trace_id String COMMENT 'Identifier of the trace, as the application sent it',
    version UInt128 COMMENT 'That of the row of table scores which it explains; the largest wins',
    explanation String COMMENT 'Why the score is as it is, in the words of a judge, in full or masked',
    is_deleted UInt8 COMMENT '1: deleted, FINAL leaves the row out; 0: current',
    ingested_at DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'Time of the insert by the server''s clock, UTC',
    INDEX by_trace trace_id TYPE bloom_filter GRANULARITY 4
)
ENGINE = ReplacingMergeTree(version, is_deleted)
PARTITION BY toYYYYMMDD(time)
ORDER BY (run_id, app, environment, evaluator, toStartOfMinute(time), trace_id)
COMMENT 'What judges wrote about scores. It may quote the trace, so it is masked and kept like trace_texts.';

CREATE OR REPLACE VIEW metric_values
(
    run_id LowCardinality(String) COMMENT 'live, probe (traces asked by probes) or the name of a replay',
    app LowCardinality(String) COMMENT 'Application that answered',
    environment LowCardinality(String) COMMENT 'Deployment environment; empty: the trace named none',
    evaluator LowCardinality(String) COMMENT 'Identifier of the evaluator',
    metric String COMMENT 'Metric, as evaluator.metric',
    value Float64 COMMENT 'Value of the metric, in its unit',
    time DateTime64(3, 'UTC') COMMENT 'Event time: when the answer was given, UTC',
    trace_id String COMMENT 'Identifier of the trace, as the application sent it',
    fingerprint LowCardinality(String) COMMENT 'Hash of the evaluator''s id, version, parameters and model revision; series of two fingerprints never mix',
    weight Float32 COMMENT 'Traces that the row stands for: 1 / sampling rate; 0: the rate is 0, or it was judged because somebody disliked the answer',
    model LowCardinality(String) COMMENT 'Model that answered, else the one requested; empty: not recorded',
    prompt_version LowCardinality(String) COMMENT 'Version of the prompt; empty: not recorded',
    segments Map(LowCardinality(String), String) COMMENT 'Segments of the trace by name, such as tenant or region; empty: none sent'
)
AS
SELECT run_id, app, environment, evaluator, concat(evaluator, '.', metric) AS metric, value, time, trace_id,
       fingerprint, weight, model, prompt_version, segments
FROM scores FINAL
ARRAY JOIN mapKeys(metrics) AS metric, mapValues(metrics) AS value
WHERE status = 'scored'
COMMENT 'One row per scored trace and metric: table scores with its map of metrics unfolded.';

CREATE TABLE IF NOT EXISTS windows
(
    run_id LowCardinality(String) COMMENT 'live, probe (traces asked by probes) or the name of a replay',
    size_s UInt32 COMMENT 'Length of the window, in seconds',
    app LowCardinality(String) COMMENT 'Application that answered',
    environment LowCardinality(String) COMMENT 'Deployment environment; empty: the trace named none',
    evaluator LowCardinality(String) COMMENT 'Identifier of the evaluator',
    metric LowCardinality(String) COMMENT 'Metric, as evaluator.metric',
    start DateTime('UTC') COMMENT 'Start of the window by event time, UTC',
    fingerprint LowCardinality(String) COMMENT 'Hash of the evaluator''s id, version, parameters and model revision; series of two fingerprints never mix',
    model LowCardinality(String) COMMENT 'Model that answered, else the one requested; empty: not recorded',
    prompt_version LowCardinality(String) COMMENT 'Version of the prompt; empty: not recorded',
    segment LowCardinality(String) COMMENT 'Name of the segment; empty: all traces',
    segment_value String COMMENT 'Value of the segment, __other__ for rare ones; empty: all traces, or no value sent',
    seen UInt64 COMMENT 'Traces of these dimensions',
    sampled UInt64 COMMENT 'Of those seen, the ones that sampling kept',
    applicable UInt64 COMMENT 'Of those sampled, the ones that the evaluator applies to',
    scored UInt64 COMMENT 'Of those applicable, the ones with a value: the n of every mean',
    failed UInt64 COMMENT 'Of those applicable, the ones whose evaluation failed',
    skipped Map(LowCardinality(String), UInt64) COMMENT 'Traces not applicable or sampled out, by reason; empty: none',
    failures Map(LowCardinality(String), UInt64) COMMENT 'Failed traces, by kind; empty: none',
    sum Float64 COMMENT 'Sum of the values, in the unit of the metric',
    sum_squares Float64 COMMENT 'Sum of the squared values',
    min Nullable(Float64) COMMENT 'Smallest value, in the unit of the metric; NULL: none scored',
    max Nullable(Float64) COMMENT 'Largest value, in the unit of the metric; NULL: none scored',
    bins Map(Int32, UInt64) COMMENT 'Scored traces by histogram bin: 100 equal bins if bounded, logarithmic 1 % bins if not; empty: none scored',
    category_counts Map(String, UInt64) COMMENT 'Traces by category and label; empty: none',
    parts Map(String, Float64) COMMENT 'Sums of the parts of window metrics, by key; empty: none',
    value Nullable(Float64) COMMENT 'Value of a window metric, computed from parts; NULL: no window metric, or undefined here',
    late UInt64 COMMENT 'Rows that arrived after the window first closed',
    revision UInt32 COMMENT '1 when first closed, then one more for every change',
    state LowCardinality(String) COMMENT 'closed, revised or frozen (later changes raise no problem)',
    incomplete UInt8 COMMENT '1: closed without waiting for a stuck partition; 0: complete',
    closed_at DateTime64(3, 'UTC') COMMENT 'When the window first closed, UTC',
    version UInt64 COMMENT 'Leader epoch * 2^32 + number of the roll-up; the largest wins',
    estimate Nullable(Float64) COMMENT 'Mean score that a judge would give to all traces, estimated from judged ones and a companion; NULL: not sampled, or none scored',
    estimate_low Nullable(Float64) COMMENT 'Lower end of the 95 % interval of the estimate; NULL: unknown, too few scores or all alike',
    estimate_high Nullable(Float64) COMMENT 'Upper end of the 95 % interval of the estimate; NULL: unknown, too few scores or all alike',
    weighted_mean Nullable(Float64) COMMENT 'Mean of the scores alone, weighted by 1 / probability; NULL: not sampled, or none scored',
    saved_calls Nullable(Float64) COMMENT 'Further judged traces that the weighted mean would need for as narrow an interval; NULL: no estimate',
    computed_at DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'Time of the insert by the server''s clock, UTC',
    INDEX by_version version TYPE minmax GRANULARITY 1
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY (size_s, toYYYYMM(start))
ORDER BY (run_id, size_s, app, environment, metric, start, fingerprint, model, prompt_version, segment, segment_value)
COMMENT 'Roll-up of scores by time and dimensions. Mean of a metric: sum / scored. Window metrics have a value instead.';

CREATE TABLE IF NOT EXISTS dirty_windows
(
    run_id LowCardinality(String) COMMENT 'live, probe (traces asked by probes) or the name of a replay',
    app LowCardinality(String) COMMENT 'Application that answered',
    environment LowCardinality(String) COMMENT 'Deployment environment; empty: the trace named none',
    lane LowCardinality(String) COMMENT 'Lane that stored the rows',
    start DateTime('UTC') COMMENT 'Start of the base window, UTC',
    mark_id String COMMENT 'Unique identifier of the mark',
    done UInt8 COMMENT '1: rolled up; 0: waiting',
    epoch UInt64 DEFAULT 0 COMMENT 'Epoch of the leader that cleared the mark; 0: waiting',
    marked_at DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'Time of the insert by the server''s clock, UTC'
)
ENGINE = ReplacingMergeTree(done)
ORDER BY (run_id, app, environment, start, lane, mark_id)
COMMENT 'Marks of base windows whose rows changed. The roll-up computes them and then clears the marks.';

CREATE TABLE IF NOT EXISTS progress
(
    lane LowCardinality(String) COMMENT 'Lane of the worker',
    topic LowCardinality(String) COMMENT 'Kafka topic',
    partition UInt32 COMMENT 'Partition of the topic',
    worker String COMMENT 'Name of the process that owns the partition',
    newest DateTime64(3, 'UTC') COMMENT 'Latest event time stored, never ahead of the broker''s timestamp or the worker''s clock, UTC; 1970: none',
    offset UInt64 COMMENT 'Offset of the next record to read',
    lag UInt64 COMMENT 'Records not read yet',
    heartbeat_at DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'Time of the heartbeat by the server''s clock, UTC'
)
ENGINE = ReplacingMergeTree(heartbeat_at)
ORDER BY (lane, topic, partition)
COMMENT 'Position and heartbeat of each lane in each partition. Watermarks follow from it.';

CREATE TABLE IF NOT EXISTS watermarks
(
    lane LowCardinality(String) COMMENT 'Lane of the worker',
    topic LowCardinality(String) COMMENT 'Kafka topic',
    watermark SimpleAggregateFunction(max, DateTime64(3, 'UTC')) COMMENT 'Event time up to which everything is stored, UTC'
)
ENGINE = AggregatingMergeTree
ORDER BY (lane, topic)
COMMENT 'Event time up to which a lane has stored a topic.';

CREATE TABLE IF NOT EXISTS leaders
(
    epoch UInt64 COMMENT 'Number of the term; the largest leads',
    holder String COMMENT 'Unique name of the process that stood for the term',
    elected_at DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'Time of the insert by the server''s clock, UTC'
)
ENGINE = ReplacingMergeTree(elected_at)
ORDER BY (epoch, holder)
COMMENT 'Elections among jobs processes: one leader per epoch.';

CREATE TABLE IF NOT EXISTS runs
(
    run_id String COMMENT 'Name of the replay, or live:HASH of a backfill',
    source String COMMENT 'Topic or file, and its range',
    evaluators Array(String) COMMENT 'Identifiers of the evaluators that ran',
    fingerprints Map(String, String) COMMENT 'Fingerprint of each evaluator, by identifier',
    settings_hash String COMMENT 'Hash of source, evaluators and settings; a run continues only with the same',
    state LowCardinality(String) COMMENT 'started or completed',
    position String COMMENT 'JSON: where the run continues; {}: nothing read yet',
    traces UInt64 COMMENT 'Traces stored so far',
    dead_letters UInt64 COMMENT 'Records that became dead letters so far',
    version UInt64 COMMENT 'Number of the update; the largest wins',
    started_at DateTime64(3, 'UTC') COMMENT 'When the run started, UTC',
    updated_at DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'Time of the insert by the server''s clock, UTC'
)
ENGINE = ReplacingMergeTree(version)
ORDER BY run_id
COMMENT 'One row per replay: what it read, with which settings, and where it continues.';

CREATE TABLE IF NOT EXISTS dead_letters
(
    run_id LowCardinality(String) COMMENT 'live, probe (traces asked by probes) or the name of a replay',
    topic LowCardinality(String) COMMENT 'Kafka topic of the record, or file:NAME',
    partition UInt32 COMMENT 'Partition of the record; 0 for a file',
    offset UInt64 COMMENT 'Offset of the record, or the line of the file',
    time DateTime64(3, 'UTC') COMMENT 'Timestamp of the record by the broker, UTC; 1970: none',
    reason LowCardinality(String) COMMENT 'Slug of the reason, such as not_json',
    detail String COMMENT 'Explanation of the reason, never a quote',
    stage LowCardinality(String) COMMENT 'decode: the record could not be read; label: a label could not; sink: ClickHouse refused its rows',
    size UInt64 COMMENT 'Size of the value, in bytes',
    sha256 String COMMENT 'SHA-256 of the value, in hex',
    ingested_at DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'Time of the insert by the server''s clock, UTC'
)
ENGINE = ReplacingMergeTree(ingested_at)
ORDER BY (run_id, topic, partition, offset, time)
COMMENT 'Records that could not be used: coordinates, reason and hash. Their bytes are in the dead-letter topic.';

CREATE TABLE IF NOT EXISTS verdicts
(
    rule_id LowCardinality(String) COMMENT 'Kind of the rule and hash of its parameters',
    run_id LowCardinality(String) COMMENT 'live, probe (traces asked by probes) or the name of a replay',
    app LowCardinality(String) COMMENT 'Application that answered',
    environment LowCardinality(String) COMMENT 'Deployment environment; empty: the trace named none',
    metric LowCardinality(String) COMMENT 'Metric, as evaluator.metric',
    model LowCardinality(String) COMMENT 'Model of the series; empty: all models',
    segment LowCardinality(String) COMMENT 'Name of the segment; empty: all traces',
    segment_value String COMMENT 'Value of the segment; empty: all traces',
    fingerprint LowCardinality(String) COMMENT 'Hash of the evaluator''s id, version, parameters and model revision; series of two fingerprints never mix',
    start DateTime('UTC') COMMENT 'Start of the first pooled window, UTC',
    end DateTime('UTC') COMMENT 'End of the last pooled window, UTC',
    revision UInt32 COMMENT 'Sum of the revisions of the pooled windows',
    breached UInt8 COMMENT '1: beyond the threshold; 0: good',
    value Float64 COMMENT 'Mean, share, count or window value, as the rule compares it',
    threshold Float64 COMMENT 'Limit that the value was compared with',
    samples UInt64 COMMENT 'Records that the verdict rests on; 0: nothing left to evaluate',
    wrong UInt64 COMMENT 'Records beyond the threshold; of judged samples, as many as equal weights would give',
    incomplete UInt8 COMMENT '1: a pooled window is incomplete; 0: all complete',
    version UInt64 COMMENT 'Leader epoch * 2^32 + number within the term; the largest wins',
    low Nullable(Float64) COMMENT 'Lower end of the 95 % interval of an estimated value; NULL: not estimated from a sample, or unknown',
    high Nullable(Float64) COMMENT 'Upper end of the 95 % interval of an estimated value; NULL: not estimated from a sample, or unknown',
    freedom Nullable(Float64) COMMENT 'Degrees of freedom of an estimated value; 0: too few records; NULL: not estimated from a sample',
    judged_at DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'Time of the insert by the server''s clock, UTC'
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (rule_id, run_id, app, environment, metric, model, segment, segment_value, fingerprint, start)
COMMENT 'Result of each rule for each evaluated interval of a series.';

CREATE TABLE IF NOT EXISTS cursors
(
    name LowCardinality(String) COMMENT 'Name of the job''s cursor',
    position SimpleAggregateFunction(max, UInt64) COMMENT 'Version of the last row that the job processed'
)
ENGINE = AggregatingMergeTree
ORDER BY name
COMMENT 'Position of each job that reads rows in the order of their version.';

CREATE TABLE IF NOT EXISTS budget_leases
(
    day Date COMMENT 'Day on which the money may be spent, UTC',
    app LowCardinality(String) COMMENT 'Application whose traces are judged',
    process String COMMENT 'Unique name of the process that took the lease',
    usd Float64 COMMENT 'US dollars that the process may spend; once it ended in order, what it spent',
    version UInt64 COMMENT 'Number of the update; the largest wins',
    updated_at DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'Time of the insert by the server''s clock, UTC'
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (day, app, process)
COMMENT 'Leases of the money that judges may cost in a day, one row per process and application.';

-- A table of its own: in `scores`, every reader of windows, samples, dashboards and replays had to leave canaries out.
CREATE TABLE IF NOT EXISTS canary_scores
(
    evaluator LowCardinality(String) COMMENT 'Identifier of the evaluator',
    fingerprint LowCardinality(String) COMMENT 'Hash of the evaluator''s id, version, parameters and model revision, as in table scores',
    run_at DateTime64(3, 'UTC') COMMENT 'Start of the run; of a scheduled one a multiple of its interval, UTC',
    scheduled Bool COMMENT 'Whether the job ran it, not the command',
    canaries UInt16 COMMENT 'Canaries that the judge is to score in the run as they are; with as many rows it is complete',
    canary String COMMENT 'Trace id of the canary',
    form LowCardinality(String) COMMENT 'markdown, padded or reordered: the canary in another form; empty: as it is',
    content LowCardinality(String) COMMENT 'Hash of what judges read; a canary with another hash is another canary',
    direction Int8 COMMENT '-1: the form takes Markdown away; 1: otherwise',
    endpoint LowCardinality(String) COMMENT 'Name of the endpoint that was asked',
    status LowCardinality(String) COMMENT 'scored, failed or not_applicable',
    reason LowCardinality(String) COMMENT 'Slug of why there is no score; empty: status is scored',
    metrics Map(LowCardinality(String), Float64) COMMENT 'Value by metric key, in the unit of the metric; empty: status is not scored',
    scored_at DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'Time of the insert by the server''s clock, UTC',
    CONSTRAINT finite_metrics CHECK arrayAll(value -> isFinite(value), mapValues(metrics))
)
ENGINE = ReplacingMergeTree(scored_at)
ORDER BY (evaluator, fingerprint, run_at, canary, form, content)
COMMENT 'Scores that judges gave to canaries, traces that never change, one row per run, evaluator, canary and form.';

CREATE TABLE IF NOT EXISTS problem_events
(
    problem_id String COMMENT 'Hash of app, environment, model, aspect, metric and segment',
    event_id String COMMENT 'Hash of what happened; a second run writes the same id',
    event LowCardinality(String) COMMENT 'pending, withdrawn, opened, reopened, kind_opened, updated, accepted, kind_cleared, resolved, explained, acked, unacked, muted or unmuted',
    episode UInt32 COMMENT 'Number of the episode, from 1',
    at DateTime64(3, 'UTC') COMMENT 'When it happened, UTC',
    app LowCardinality(String) COMMENT 'Application; empty: the system itself',
    environment LowCardinality(String) COMMENT 'Deployment environment; empty: none named',
    model LowCardinality(String) COMMENT 'Model; empty: all models',
    aspect LowCardinality(String) COMMENT 'level, coverage, flip, inconsistency, missing, error, inputs, finding, storage, jobs, judge or fleet',
    metric LowCardinality(String) COMMENT 'Metric, or what else the problem is about; empty: no metric',
    segment LowCardinality(String) COMMENT 'Name of the segment; empty: all traces',
    segment_value String COMMENT 'Value of the segment; empty: all traces',
    kind LowCardinality(String) COMMENT 'Rule or check that reported it, such as threshold or drift; empty: an operator''s event',
    type LowCardinality(String) COMMENT 'Type of problem, such as accuracy or privacy; empty: an operator''s event',
    severity LowCardinality(String) COMMENT 'info, warning or critical; empty: an operator''s event',
    code LowCardinality(String) COMMENT 'Code of the AVID taxonomy; empty: an operator''s event',
    standards Array(LowCardinality(String)) COMMENT 'Compliance principles that the problem concerns; empty: an operator''s event',
    title String COMMENT 'Application, metric, values before and after, in 80 characters; empty: an operator''s event',
    description String COMMENT 'Message in one sentence, never a quote; empty: an operator''s event',
    attributes String COMMENT 'JSON of figures: value, baseline, threshold, sample size, interval; {}: none',
    examples Array(String) COMMENT 'Trace ids, worst first; empty: none',
    actions Array(String) COMMENT 'Suggested remediation steps; empty: none',
    rule_id LowCardinality(String) COMMENT 'Rule or check that reported it; empty: an operator''s event',
    actor String COMMENT 'Operator who acted; empty: a job''s event',
    epoch UInt64 COMMENT 'Epoch of the leader that wrote the row; 0: an operator''s event',
    recorded_at DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'Time of the insert by the server''s clock, UTC',
    since Nullable(DateTime64(3, 'UTC')) MATERIALIZED parseDateTime64BestEffortOrNull(JSONExtractString(attributes, 'since'), 3, 'UTC') COMMENT 'Begin of what was judged in event time, UTC; NULL: not known',
    until Nullable(DateTime64(3, 'UTC')) MATERIALIZED parseDateTime64BestEffortOrNull(JSONExtractString(attributes, 'until'), 3, 'UTC') COMMENT 'End of what was judged in event time, or of a mute, UTC; NULL: not known, or a mute without end',
    figures Tuple(rule String, min Nullable(Float64), max Nullable(Float64), threshold Nullable(Float64), limit Nullable(Float64), baseline Nullable(Float64)) MATERIALIZED JSONExtract(attributes, 'Tuple(rule String, min Nullable(Float64), max Nullable(Float64), threshold Nullable(Float64), limit Nullable(Float64), baseline Nullable(Float64))') COMMENT 'Rule, bounds and baseline that a chart of the problem draws; empty: none',
    opening UInt32 MATERIALIZED JSONExtractUInt(attributes, 'opening') COMMENT 'Number of the opening that event explained is about; 0: another event'
)
ENGINE = ReplacingMergeTree(epoch)
ORDER BY (problem_id, event_id)
COMMENT 'Event log of problems. View problems folds it to one row per episode.';

CREATE TABLE IF NOT EXISTS problem_groups
(
    problem_id String COMMENT 'Problem that another one explains, or explained: a symptom',
    episode UInt32 COMMENT 'Its episode',
    parent_id String COMMENT 'Problem that explains it; empty: it stands alone again',
    parent_episode UInt32 COMMENT 'Episode of the parent; 0: no parent',
    version UInt64 COMMENT 'Leader epoch * 2^32 + number within the term; the largest wins',
    recorded_at DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'Time of the insert by the server''s clock, UTC'
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (problem_id, episode)
COMMENT 'Parents of symptoms, updated by ragtide jobs within a minute. View problems shows them.';

-- `ragtide.drift.problems.fold` computes the same from the same events; a test compares the two.
CREATE OR REPLACE VIEW problems
(
    problem_id String COMMENT 'Hash of app, environment, model, aspect, metric and segment',
    episode UInt32 COMMENT 'Number of the episode, from 1',
    state String COMMENT 'pending, open or resolved',
    app String COMMENT 'Application; empty: the system itself',
    environment String COMMENT 'Deployment environment; empty: none named',
    model String COMMENT 'Model; empty: all models',
    aspect String COMMENT 'level, coverage, flip, inconsistency, missing, error, inputs, finding, storage, jobs, judge or fleet',
    metric String COMMENT 'Metric, or what else the problem is about; empty: no metric',
    segment String COMMENT 'Name of the segment; empty: all traces',
    segment_value String COMMENT 'Value of the segment; empty: all traces',
    kinds Array(String) COMMENT 'Kinds that reported the problem, in order of appearance',
    active_kinds Array(String) COMMENT 'Kinds that still report it; empty: none',
    type String COMMENT 'Type of problem, such as accuracy or privacy',
    severity String COMMENT 'info, warning or critical: the highest of the active kinds',
    code String COMMENT 'Code of the AVID taxonomy',
    standards Array(String) COMMENT 'Compliance principles that the problem concerns; empty: none',
    title String COMMENT 'Application, metric, values before and after, in 80 characters, by the most severe active kind',
    description String COMMENT 'Latest message of the most severe active kind',
    attributes String COMMENT 'JSON of figures behind the message; {}: none',
    since Nullable(DateTime64(3, 'UTC')) COMMENT 'Begin of what was judged in event time, UTC; NULL: not known',
    figures Tuple(rule String, min Nullable(Float64), max Nullable(Float64), threshold Nullable(Float64), limit Nullable(Float64), baseline Nullable(Float64)) COMMENT 'Rule, bounds and baseline that a chart of the problem draws; empty: none',
    examples Array(String) COMMENT 'Trace ids, worst first; empty: none',
    actions Array(String) COMMENT 'Suggested remediation steps; empty: none',
    rule_id String COMMENT 'Rule or check behind the message',
    first_seen_at DateTime64(3, 'UTC') COMMENT 'First event of the episode, UTC',
    last_seen_at DateTime64(3, 'UTC') COMMENT 'Latest report of the episode, UTC',
    opened_at Nullable(DateTime64(3, 'UTC')) COMMENT 'When the problem first opened, UTC; NULL: still pending',
    resolved_at Nullable(DateTime64(3, 'UTC')) COMMENT 'When it resolved, UTC; NULL: not resolved',
    openings UInt64 COMMENT 'How often it opened in this episode; 0: still pending',
    acked_by String COMMENT 'Operator who acknowledged it; empty: nobody',
    accepted_by String COMMENT 'Operator who accepted it as the new normal; empty: nobody',
    muted_by String COMMENT 'Operator who muted it; empty: not muted',
    muted_until Nullable(DateTime64(3, 'UTC')) COMMENT 'End of the mute, UTC; NULL: not muted, or muted without end',
    explanation String COMMENT 'Likely cause in one sentence; empty: none found yet',
    cause String COMMENT 'JSON of the likely cause; empty: none found yet',
    parent_id String COMMENT 'Problem that explains it: this one is a symptom; empty: none',
    parent_episode UInt32 COMMENT 'Episode of the parent; 0: no parent'
)
AS
SELECT folded.*, parents.parent_id AS parent_id, parents.parent_episode AS parent_episode
FROM
(
SELECT problem_id, episode,
       multiIf(countIf(turns) = 0, 'pending', argMaxIf(event, place, turns) IN ('opened', 'reopened'), 'open',
               argMaxIf(event, place, turns)) AS state,
       anyIf(app, of_job) AS app, anyIf(environment, of_job) AS environment, anyIf(model, of_job) AS model,
       anyIf(aspect, of_job) AS aspect, anyIf(metric, of_job) AS metric, anyIf(segment, of_job) AS segment,
       anyIf(segment_value, of_job) AS segment_value,
       arrayDistinct(arrayMap(pair -> pair.2, arraySort(groupArrayIf((place, kind), of_job)))) AS kinds,
       arrayFilter(one -> has(groupUniqArrayIf(kind, holds), one), kinds) AS active_kinds,
       argMaxIf(type, weight, of_job) AS type,
       argMaxIf(severity, weight, of_job) AS severity,
       argMaxIf(code, weight, of_job) AS code,
       argMaxIf(standards, weight, of_job) AS standards,
       argMaxIf(title, weight, of_job) AS title,
       argMaxIf(description, weight, of_job) AS description,
       argMaxIf(attributes, weight, of_job) AS attributes,
       argMaxIf((since,), weight, of_job).1 AS since,
       argMaxIf(figures, weight, of_job) AS figures,
       argMaxIf(examples, weight, of_job AND notEmpty(examples)) AS examples,
       argMaxIf(actions, weight, of_job) AS actions,
       argMaxIf(rule_id, weight, of_job) AS rule_id,
       minIf(at, of_job) AS first_seen_at,
       ifNull(maxOrNullIf(at, of_job AND event NOT IN ('kind_cleared', 'resolved')), first_seen_at) AS last_seen_at,
       minOrNullIf(at, opens) AS opened_at,
       if(argMaxIf(event, place, opens OR event = 'resolved') = 'resolved', maxOrNullIf(at, event = 'resolved'), NULL)
           AS resolved_at,
       countIf(opens) AS openings,
       argMaxIf(if(event = 'unacked', '', person), place, known AND event IN ('acked', 'unacked')) AS acked_by,
       argMaxIf(person, place, known AND event = 'accepted') AS accepted_by,
       any(mute.1) AS muted_by,
       any(mute.2) AS muted_until,
       argMaxIf(why.1, place, explains) AS explanation,
       argMaxIf(why.2, place, explains) AS cause
FROM
(
    -- Of the active kinds the one with the highest severity decides, then the latest; of its messages the latest.
    SELECT *, known AND event = 'explained' AND opening = openings_in_all AS explains,
           (description, attributes) AS why,
           of_job AND kind_opened > kind_cleared AND kind_opened > over AS holds,
           (holds, if(holds, severity_then, 0), spoke, place) AS weight
    FROM
    (
        SELECT *,
               countIf(of_job) OVER (PARTITION BY problem_id, episode ORDER BY place ROWS UNBOUNDED PRECEDING) > 0
                   AS known,
               countIf(opens) OVER (PARTITION BY problem_id, episode) AS openings_in_all,
               maxIf(place, event = 'resolved') OVER (PARTITION BY problem_id, episode) AS over,
               maxIf(place, opens OR event = 'kind_opened') OVER by_kind AS kind_opened,
               maxIf(place, event = 'kind_cleared') OVER by_kind AS kind_cleared,
               maxIf(place, of_job) OVER by_kind AS spoke,
               argMaxIf(indexOf(['info', 'warning', 'critical'], toString(severity)), place, of_job) OVER by_kind
                   AS severity_then
        FROM
        (
            SELECT *, countIf(event = 'withdrawn' AND unopened) OVER (PARTITION BY problem_id, episode
                       ORDER BY place DESC) AS withdrawals_ahead
            FROM
            (
                SELECT *,
                       countIf(opens) OVER (PARTITION BY problem_id, episode ORDER BY place ROWS UNBOUNDED PRECEDING) = 0
                           AS unopened,
                       argMaxIf((if(event = 'unmuted', '', person), if(event = 'unmuted', NULL, until)), place,
                                event IN ('muted', 'unmuted')) OVER (PARTITION BY problem_id) AS mute
                FROM
                (
                    SELECT *, since, until, figures, opening, event IN ('opened', 'reopened') AS opens,
                           if(actor = '', 'unknown', actor) AS person,
                           event IN ('pending', 'opened', 'reopened', 'resolved') AS turns,
                           turns OR event IN ('kind_opened', 'updated', 'kind_cleared') AS of_job,
                           (at, indexOf(['pending', 'withdrawn', 'opened', 'reopened', 'kind_opened', 'updated',
                                         'accepted', 'kind_cleared', 'resolved', 'explained', 'acked', 'unacked', 'muted', 'unmuted'],
                                        toString(event)), event_id) AS place
                    FROM problem_events FINAL
                )
            )
        )
        WHERE withdrawals_ahead = 0
        WINDOW by_kind AS (PARTITION BY problem_id, episode, kind)
    )
)
GROUP BY problem_id, episode
HAVING countIf(of_job) > 0
) AS folded
LEFT JOIN (SELECT problem_id, episode, parent_id, parent_episode FROM problem_groups FINAL) AS parents
    USING (problem_id, episode)
SETTINGS join_use_nulls = 0
COMMENT 'One row per episode of a problem, folded from problem_events. Dashboards read it.';

CREATE TABLE IF NOT EXISTS insights
(
    insight_id String COMMENT 'Hash of type, app, environment, period and subject',
    type LowCardinality(String) COMMENT 'Type of insight',
    app LowCardinality(String) COMMENT 'Application that answered',
    environment LowCardinality(String) COMMENT 'Deployment environment; empty: the trace named none',
    description String COMMENT 'Message in one sentence, never a quote',
    attributes String COMMENT 'JSON of the figures behind it',
    examples Array(String) COMMENT 'Trace ids; empty: none',
    actions Array(String) COMMENT 'Suggested next steps; empty: none',
    period_start DateTime('UTC') COMMENT 'Start of the period, UTC',
    period_end DateTime('UTC') COMMENT 'End of the period, UTC, exclusive',
    epoch UInt64 COMMENT 'Epoch of the leader that wrote the row',
    withdrawn UInt8 COMMENT '1: found earlier in its period, and no longer; 0: current',
    recorded_at DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'Time of the insert by the server''s clock, UTC'
)
ENGINE = ReplacingMergeTree(epoch)
ORDER BY insight_id
COMMENT 'Observations about each period that never page. A later run withdraws those that it no longer finds.';

CREATE TABLE IF NOT EXISTS outbox
(
    message_id String COMMENT 'Identifier of the notification, derived from its event',
    target LowCardinality(String) COMMENT 'Receiver: grafana, webhook:NAME or topic:NAME',
    action LowCardinality(String) COMMENT 'open, update or close; of an insight open or close',
    subject String COMMENT 'Problem id and episode, or insight id and insight',
    at DateTime64(3, 'UTC') COMMENT 'When the problem or insight changed, UTC; messages about one are sent in this order',
    payload String COMMENT 'JSON of the message',
    state LowCardinality(String) COMMENT 'pending, sent, refused or gave_up',
    why String COMMENT 'Error of the latest failed attempt; empty: none failed',
    external_id String COMMENT 'Identifier at the receiver; empty: not sent yet',
    attempts UInt32 COMMENT 'Delivery attempts so far',
    version UInt64 COMMENT 'Leader epoch * 2^32 + number within the term; the largest wins',
    written_at DateTime64(3, 'UTC') DEFAULT updated_at COMMENT 'When the message was first written, UTC',
    updated_at DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'Time of the insert by the server''s clock, UTC'
)
ENGINE = ReplacingMergeTree(version)
ORDER BY message_id
COMMENT 'Notifications to deliver and their state; delivery continues after an outage.';

CREATE TABLE IF NOT EXISTS alerts_posted
(
    url LowCardinality(String) COMMENT 'Base URL of the Alertmanager',
    fingerprint String COMMENT 'Hash of the labels: another severity or owner is another alert',
    problem_id String COMMENT 'Problem that the alert is about',
    labels Map(LowCardinality(String), String) COMMENT 'Labels by name',
    annotations String COMMENT 'JSON of the annotations when this row was written',
    state LowCardinality(String) COMMENT 'firing (stored before it is first posted), ended (its end was accepted) or refused',
    why String COMMENT 'Reason of a refusal; empty: not refused',
    started_at DateTime64(3, 'UTC') COMMENT 'Start of the alert, UTC',
    ended_at Nullable(DateTime64(3, 'UTC')) COMMENT 'End of the alert, UTC; NULL: not ended',
    accepted_at Nullable(DateTime64(3, 'UTC')) COMMENT 'When the end was accepted, by the clock of Alertmanager, UTC; NULL: not ended',
    version UInt64 COMMENT 'Leader epoch * 2^32 + number within the term; the largest wins',
    updated_at DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'Time of the insert by the server''s clock, UTC'
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (url, fingerprint)
COMMENT 'Alerts that each Alertmanager may hold, so that every one is ended under the labels that it was posted with.';

CREATE TABLE IF NOT EXISTS alert_silences
(
    url LowCardinality(String) COMMENT 'Base URL of the Alertmanager',
    problem_id String COMMENT 'Problem whose alert the silence matches',
    silence_id String COMMENT 'Identifier of the silence in Alertmanager',
    created_by String COMMENT 'Author of the silence, as Alertmanager has it',
    comment String COMMENT 'Comment of the silence',
    starts_at DateTime64(3, 'UTC') COMMENT 'Start of the silence, UTC',
    ends_at DateTime64(3, 'UTC') COMMENT 'End of the silence, UTC',
    is_deleted UInt8 COMMENT '1: the silence was ended early or matches no more, FINAL leaves the row out; 0: current',
    version UInt64 COMMENT 'Leader epoch * 2^32 + number within the term; the largest wins',
    updated_at DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'Time of the insert by the server''s clock, UTC'
)
ENGINE = ReplacingMergeTree(version, is_deleted)
ORDER BY (url, problem_id, silence_id)
COMMENT 'Silences of Alertmanager that match alerts of problems. One whose ends_at is past has ended.';

CREATE TABLE IF NOT EXISTS job_runs
(
    job LowCardinality(String) COMMENT 'Name of the job',
    epoch UInt64 COMMENT 'Epoch of the leader that ran it',
    finished_at DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'When it last succeeded by the server''s clock, UTC'
)
ENGINE = ReplacingMergeTree(finished_at)
ORDER BY job
COMMENT 'Last success of each job. A Grafana alert fires if the row of job watch is old.';

CREATE TABLE IF NOT EXISTS segment_values
(
    segment LowCardinality(String) COMMENT 'Name of the segment',
    holds_from DateTime('UTC') COMMENT 'Start of the first base window that uses them, UTC',
    values Array(String) COMMENT 'Values with series of their own, every other counts as __other__; empty: none',
    epoch UInt64 COMMENT 'Epoch of the leader that chose them',
    chosen_at DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'Time of the insert by the server''s clock, UTC'
)
ENGINE = ReplacingMergeTree(epoch)
ORDER BY (segment, holds_from)
COMMENT 'Values of each segment that have series of their own, chosen once a day from the traffic.';

-- Cost of a vector of MiniLM's 384 numbers on disk, and in CPU of the client to insert it
-- (`python -m benchmarks.question_vectors`):
--
--     Float32                           1,542 bytes    17 us
--     Float32, ZSTD(1)                  1,422          18       ZSTD(9), Gorilla and FPC: no less
--     ... rounded to 8 bits               735          17       cosines move by 0.0006 at most, by 0.0001 on average
--     BFloat16, ZSTD(1)                   599         140       the same: 8 bits, cut instead of rounded
--
-- The stream rounds to 8 bits: half the disk, and plain Float32 for readers, on any server. Rounded to 11 bits, a vector
-- takes 994 bytes and cosines move by 0.0001: more than drift needs. QBit and the codec ALP are in beta.
--
-- The vector of the answer takes half the bytes of the question's: cosines move by 0.005 at most, enough to tell near from
-- far. `answer_claims` are hashes of claims that rules find in the answer.
CREATE TABLE IF NOT EXISTS embeddings
(
    run_id LowCardinality(String) COMMENT 'live, probe (traces asked by probes) or the name of a replay',
    app LowCardinality(String) COMMENT 'Application that answered',
    environment LowCardinality(String) COMMENT 'Deployment environment; empty: the trace named none',
    time DateTime64(3, 'UTC') COMMENT 'Event time: when the answer was given, UTC',
    trace_id String COMMENT 'Identifier of the trace, as the application sent it',
    version UInt128 COMMENT 'Order among messages of one trace: timestamp, source, offset, revision, evaluator version; the largest wins',
    model LowCardinality(String) COMMENT 'Encoder and the revision of its weights; vectors of two models never compare',
    vector Array(Float32) CODEC(ZSTD(1)) COMMENT 'Unit vector of the whole question, rounded to 8 bits',
    topic LowCardinality(String) COMMENT 'Topic of the question, other: in no topic; empty: there was no topic model',
    topic_version UInt64 COMMENT 'Version of the topic model that assigned the topic; 0: there was none',
    answer Array(Int8) CODEC(ZSTD(1)) COMMENT 'Mean direction of the vectors of the answer''s sentences, scaled so that the largest number is 127; empty: no answer, or none that was encoded',
    answer_claims Array(String) COMMENT 'Claims in the answer that the question does not make, as kind:hash, keyed where there is a hash_key; empty: none',
    is_deleted UInt8 COMMENT '1: the newest message of the trace has no question that could be encoded; 0: current',
    ingested_at DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'Time of the insert by the server''s clock, UTC',
    INDEX by_trace trace_id TYPE bloom_filter GRANULARITY 4,
    CONSTRAINT finite_vector CHECK arrayAll(number -> isFinite(number), vector)
)
ENGINE = ReplacingMergeTree(version, is_deleted)
PARTITION BY toYYYYMMDD(time)
ORDER BY (run_id, app, environment, toStartOfMinute(time), trace_id)
COMMENT 'Vector of each question and features of its answer. Input drift and topics are computed from them.';

-- Apart from dead_letters: a record that is read again writes its letter again, and must not undo a replay or drop.
CREATE TABLE IF NOT EXISTS dead_letter_marks
(
    run_id LowCardinality(String) COMMENT 'Run that the letter was replayed into, or dropped from',
    topic LowCardinality(String) COMMENT 'Kafka topic of the record',
    partition UInt32 COMMENT 'Partition of the record',
    offset UInt64 COMMENT 'Offset of the record',
    time DateTime64(3, 'UTC') COMMENT 'Timestamp of the record by the broker, UTC; 1970: none',
    state LowCardinality(String) COMMENT 'replayed or dropped',
    actor String COMMENT 'Operator who did it',
    at DateTime64(3, 'UTC') COMMENT 'When it was done, UTC'
)
ENGINE = ReplacingMergeTree(at)
ORDER BY (run_id, topic, partition, offset, time)
COMMENT 'What operators did about dead letters. Kept apart, so that a record that is read again opens nothing.';

-- Every message has a row: the number of labels of a trace is the revision of its enriched trace.
CREATE TABLE IF NOT EXISTS labels
(
    trace_id String COMMENT 'Trace that the label is about',
    time DateTime64(3, 'UTC') COMMENT 'Timestamp of the message by the broker, UTC',
    topic LowCardinality(String) COMMENT 'Kafka topic of the message',
    partition UInt32 COMMENT 'Partition of the message',
    offset UInt64 COMMENT 'Offset of the message',
    version UInt128 COMMENT 'Order among labels of one trace: timestamp, source, offset; the largest wins',
    author String COMMENT 'Author as sent, or as a keyed hash; empty: not sent',
    expected String COMMENT 'JSON list of reference answers; empty: not sent',
    relevance String COMMENT 'JSON of the grade by chunk id; empty: not sent',
    classes String COMMENT 'JSON of the right class, or several; empty: not sent',
    thumbs LowCardinality(String) COMMENT 'up or down; empty: not sent',
    score Nullable(Float64) COMMENT 'Score that a person gave, on a scale of their own; NULL: not sent',
    comment String COMMENT 'Comment of a person; empty: not sent, or not stored',
    sample_rate Float64 COMMENT 'Probability with which the trace was drawn for labelling; 0: it was not drawn, so that the verdict stands for no other trace',
    sample_evaluator LowCardinality(String) COMMENT 'Evaluator among whose scored traces it was drawn; empty: it was not drawn',
    ingested_at DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'Time of the insert by the server''s clock, UTC',
    INDEX by_ingested_at ingested_at TYPE minmax GRANULARITY 1,
    CONSTRAINT finite_score CHECK score IS NULL OR isFinite(score)
)
ENGINE = ReplacingMergeTree(ingested_at)
ORDER BY (trace_id, time, topic, partition, offset)
COMMENT 'Facts about traces that arrive later: one row per message of the labels topic.';

-- One row per model, so that no reader sees half of one. A topic keeps its id and name.
CREATE TABLE IF NOT EXISTS topic_models
(
    app LowCardinality(String) COMMENT 'Application that answered',
    encoder LowCardinality(String) COMMENT 'Encoder and its revision; each encoder has topics of its own',
    version UInt64 COMMENT 'Leader epoch * 2^32 + number within the term; the largest wins',
    epoch UInt64 COMMENT 'Epoch of the leader that fitted it',
    fitted_at DateTime64(3, 'UTC') COMMENT 'When it was fitted, UTC',
    questions UInt64 COMMENT 'Questions that it was fitted on',
    ids Array(UInt32) COMMENT 'Identifiers of the topics, retired ones included',
    names Array(String) COMMENT 'Name of each topic: its distinctive words, also the value of segment topic',
    centroids Array(Array(Float32)) COMMENT 'Unit centroid of each topic',
    least_cosines Array(Float64) COMMENT 'Smallest cosine to the centroid at which a question belongs to the topic, per topic',
    sizes Array(UInt64) COMMENT 'Questions of each topic among those fitted on; 0: retired'
)
ENGINE = ReplacingMergeTree(epoch)
ORDER BY (app, encoder, version)
COMMENT 'Topics of questions: one row per version of an application''s model.';

CREATE TABLE IF NOT EXISTS job_history
(
    job LowCardinality(String) COMMENT 'Name of the job',
    epoch UInt64 COMMENT 'Epoch of the leader that ran it',
    started_at DateTime64(3, 'UTC') COMMENT 'When it started by the server''s clock, UTC',
    took_s Float64 COMMENT 'Duration, in seconds',
    failed String COMMENT 'Error of the run; empty: it succeeded',
    read Nullable(UInt64) COMMENT 'Windows, series or records that it read; NULL: it failed',
    raised Nullable(UInt64) COMMENT 'Events, insights or messages that it wrote; NULL: it failed'
)
ENGINE = ReplacingMergeTree
ORDER BY (job, started_at, epoch)
COMMENT 'Every run of every job.';

-- Rows carry the leader's version, so that late writes of an earlier leader never win.
CREATE TABLE IF NOT EXISTS detector_states
(
    kind LowCardinality(String) COMMENT 'score, rate, positive or category',
    lane LowCardinality(String) COMMENT 'Lane of the evaluators',
    number UInt32 COMMENT 'Number of the batch of series',
    slot UInt8 COMMENT '0: newest state; others: checkpoints to return to when late rows revise windows',
    until DateTime('UTC') COMMENT 'End of the last processed interval, UTC',
    position UInt64 COMMENT 'Version of the newest processed window',
    names String CODEC(ZSTD(1)) COMMENT 'JSON of the series, their labels and alarms',
    state String CODEC(ZSTD(1)) COMMENT 'Arrays in base64',
    version UInt64 COMMENT 'Leader epoch * 2^32 + number within the term; the largest wins'
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (kind, lane, number, slot)
COMMENT 'State of detectors between runs of job drift, one row per batch of series and slot.';

CREATE TABLE IF NOT EXISTS detector_baselines
(
    kind LowCardinality(String) COMMENT 'score, rate, positive or category',
    lane LowCardinality(String) COMMENT 'Lane of the evaluators',
    number UInt32 COMMENT 'Number of the batch of series',
    slot UInt8 COMMENT 'Slot of the baseline; a new one replaces the oldest',
    effective_from DateTime('UTC') COMMENT 'First interval that it applies to, UTC',
    baseline String CODEC(ZSTD(1)) COMMENT 'Arrays in base64',
    version UInt64 COMMENT 'Leader epoch * 2^32 + number within the term; the largest wins'
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (kind, lane, number, slot)
COMMENT 'Baselines of detectors, one row per batch of series and slot.';

-- What `detector_baselines` holds as arrays of whole batches, as rows that queries can read.
CREATE TABLE IF NOT EXISTS expected_levels
(
    app LowCardinality(String) COMMENT 'Application that answered',
    environment LowCardinality(String) COMMENT 'Deployment environment; empty: the trace named none',
    metric LowCardinality(String) COMMENT 'Metric, as evaluator.metric',
    model LowCardinality(String) COMMENT 'Model of the series; empty: not recorded',
    segment LowCardinality(String) COMMENT 'Name of the segment; empty: all traces',
    segment_value String COMMENT 'Value of the segment; empty: all traces',
    effective_from DateTime('UTC') COMMENT 'First interval that it applies to, UTC',
    quantity LowCardinality(String) COMMENT 'What the levels are of: the mean, or a share of records',
    of_records UInt8 COMMENT '1: share of records in bins outside of min_bin to max_bin; 0: mean, in the unit of the metric',
    min_bin Int32 COMMENT 'Records in a lower bin of windows.bins count',
    max_bin Int32 COMMENT 'Records in a higher bin of windows.bins count',
    levels Array(Float32) CODEC(ZSTD(1)) COMMENT 'Expected level of each hour of the week, from Monday 00:00 UTC',
    variance_per_record Float64 COMMENT 'Variance of the level over n records in k ticks is this / n + variance_floor / k; of shares times p (1 - p)',
    variance_floor Float64 COMMENT 'Part of the variance that more records do not lower, see variance_per_record',
    tick_s UInt32 COMMENT 'Length of a tick of the detector, in seconds',
    version UInt64 COMMENT 'Leader epoch * 2^32 + number within the term; the largest wins'
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (app, environment, metric, model, segment, segment_value, effective_from)
COMMENT 'Levels that the change detectors expect of each series by hour of the week, one row per baseline.';

CREATE TABLE IF NOT EXISTS baseline_pins
(
    app LowCardinality(String) COMMENT 'Application of the pin',
    metric LowCardinality(String) COMMENT 'Metric, as evaluator.metric; empty: all metrics without a pin of their own',
    run_id LowCardinality(String) COMMENT 'Run whose windows are the reference: live or a replay',
    since DateTime('UTC') COMMENT 'Start of the reference, UTC',
    until DateTime('UTC') COMMENT 'End of the reference, UTC',
    why String COMMENT 'Reason that the operator gave',
    actor String COMMENT 'Operator who pinned or unpinned',
    removed UInt8 COMMENT '1: the pin was removed; 0: it was set',
    at DateTime64(3, 'UTC') COMMENT 'When it was done, UTC',
    at_key DateTime64(3, 'UTC') COMMENT 'Same as at, in the sorting key, so that no row replaces another'
)
ENGINE = ReplacingMergeTree(at)
PRIMARY KEY (app, metric)
ORDER BY (app, metric, at_key)
COMMENT 'Every pin of a baseline and every removal: who pinned what, and why.';

-- A later run replaces the row.
CREATE TABLE IF NOT EXISTS flips
(
    metric LowCardinality(String) COMMENT 'Metric, as evaluator.metric',
    trace_id String COMMENT 'Identifier of the perturbed trace',
    app LowCardinality(String) COMMENT 'Application that answered',
    environment LowCardinality(String) COMMENT 'Deployment environment; empty: the trace named none',
    model LowCardinality(String) COMMENT 'Model that answered, else the one requested; empty: not recorded',
    time DateTime64(3, 'UTC') COMMENT 'Event time of the perturbed trace, UTC',
    original_id String COMMENT 'Identifier of the original trace',
    techniques String COMMENT 'Perturbations in the order applied, with intensity, such as typo 0.1 > paraphrase; empty: not recorded',
    topic LowCardinality(String) COMMENT 'Topic of the original question; empty: not known',
    outcome LowCardinality(String) COMMENT 'same, worse (pass became fail), better (fail became pass) or unknown (a score is missing or not comparable)',
    value Nullable(Float64) COMMENT 'Value of the perturbed trace, in the unit of the metric; NULL: no score',
    original_value Nullable(Float64) COMMENT 'Value of the original, in the unit of the metric; NULL: no score',
    is_deleted UInt8 COMMENT '1: deleted, FINAL leaves the row out; 0: current',
    version UInt64 COMMENT 'Leader epoch * 2^32 + number within the term; the largest wins'
)
ENGINE = ReplacingMergeTree(version, is_deleted)
ORDER BY (metric, trace_id)
COMMENT 'Perturbed traces against their originals: one row per perturbed trace and metric.';

-- One row per application, so that no reader sees half of a reference.
CREATE TABLE IF NOT EXISTS question_references
(
    app LowCardinality(String) COMMENT 'Application that answered',
    environment LowCardinality(String) COMMENT 'Deployment environment; empty: the trace named none',
    encoder LowCardinality(String) COMMENT 'Encoder and its revision; another encoder starts a new reference',
    learned_at DateTime('UTC') COMMENT 'First instant that the reference applies to, UTC',
    until DateTime('UTC') COMMENT 'End of the last processed interval, UTC',
    days Array(DateTime('UTC')) COMMENT 'Days whose questions it was learned from, UTC',
    groups UInt16 COMMENT 'Groups that questions are assigned to',
    state String CODEC(ZSTD(1)) COMMENT 'Centroids, shares and detector state in base64',
    version UInt64 COMMENT 'Leader epoch * 2^32 + number within the term; the largest wins'
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (app, environment)
COMMENT 'Reference of input drift per application: groups of questions, their usual shares and the detector''s state.';

CREATE TABLE IF NOT EXISTS repeated_questions
(
    app LowCardinality(String) COMMENT 'Application that answered',
    environment LowCardinality(String) COMMENT 'Deployment environment; empty: the trace named none',
    model LowCardinality(String) COMMENT 'Model that answered, else the one requested; empty: not recorded',
    metric LowCardinality(String) COMMENT 'Metric, as evaluator.metric, or answers.agreement: what the answers state',
    time DateTime64(3, 'UTC') COMMENT 'When the check ran, UTC, whole minutes; it covers rules.repeats_within_s before',
    questions UInt64 COMMENT 'Repeated questions with enough answers',
    inconsistent UInt64 COMMENT 'Of those, the ones good on average and bad at least once, or with conflicting answers',
    answers UInt64 COMMENT 'Answers to the repeated questions',
    allowed Float64 COMMENT 'Limit: a problem opens if the whole 95 % interval of inconsistent / questions is above it',
    pairs Array(Tuple(by LowCardinality(String), odd String, other String)) COMMENT 'Up to five examples, clearest first: what differs (score: the metric), trace id of the outlier or worst, trace id of another or the best; empty: none',
    version UInt64 COMMENT 'Leader epoch * 2^32 + number within the term; the largest wins'
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (app, environment, model, metric, time)
COMMENT 'Result of each run of the check on repeated questions, whether or not it raised a problem.';
