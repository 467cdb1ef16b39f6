-- The tables of ragtide. Statements end with a semicolon at the end of a line; every one may run twice and from two
-- processes at once. TTLs are set by `ragtide migrate` from the settings, not here.

-- One row per trace: what it was and what served it. `trace_texts` holds its texts.
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
    question_hash String COMMENT 'of the question without case and spacing, keyed where there is a hash_key; empty: no question, or texts are not stored in full and there is no key',
    is_deleted UInt8,
    ingested_at DateTime64(3, 'UTC') DEFAULT now64(3),
    INDEX by_trace trace_id TYPE bloom_filter GRANULARITY 4,
    INDEX by_ingested_at ingested_at TYPE minmax GRANULARITY 1
)
ENGINE = ReplacingMergeTree(version, is_deleted)
PARTITION BY toYYYYMMDD(time)
ORDER BY (run_id, app, environment, toStartOfMinute(time), trace_id);

-- What was asked, answered and retrieved, and all of a trace that no other column holds (`rest`), so that it can go
-- through the lanes again.
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
    rest String CODEC(ZSTD(1)) COMMENT 'JSON: what the trace held beyond these columns; empty: texts are masked, so that the trace cannot be made whole',
    is_deleted UInt8,
    ingested_at DateTime64(3, 'UTC') DEFAULT now64(3),
    INDEX by_trace trace_id TYPE bloom_filter GRANULARITY 4
)
ENGINE = ReplacingMergeTree(version, is_deleted)
PARTITION BY toYYYYMMDD(time)
ORDER BY (run_id, app, environment, toStartOfMinute(time), trace_id);

-- One row per trace and evaluator. A mean over NaN or infinity says nothing: such a row is refused, and set aside by
-- the lane that wrote it.
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
    INDEX by_trace trace_id TYPE bloom_filter GRANULARITY 4,
    INDEX by_ingested_at ingested_at TYPE minmax GRANULARITY 1,
    CONSTRAINT finite_metrics CHECK arrayAll(value -> isFinite(value), mapValues(metrics)),
    CONSTRAINT finite_parts CHECK arrayAll(value -> isFinite(value), mapValues(parts))
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

-- The roll-up of scores by time and dimensions. Window metrics have a `value`; others have a mean, `sum / scored`.
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
    value Nullable(Float64) COMMENT 'of method window: the metric of the whole window, made of its parts; NULL: not to be told',
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

-- What dashboards read of problems: each episode as its events leave it. `ragtide.drift.problems.fold` says the same of
-- the same events, and a test compares the two.
CREATE OR REPLACE VIEW problems AS
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
       argMaxIf(description, weight, of_job) AS description,
       argMaxIf(attributes, weight, of_job) AS attributes,
       argMaxIf(examples, weight, of_job AND notEmpty(examples)) AS examples,
       argMaxIf(actions, weight, of_job) AS actions,
       argMaxIf(rule_id, weight, of_job) AS rule_id,
       minIf(at, of_job) AS first_seen_at,
       ifNull(maxOrNullIf(at, of_job AND event NOT IN ('eased', 'resolved')), first_seen_at) AS last_seen_at,
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
    -- Of the kinds that hold the highest severity speaks, then the one that spoke last; of its own words the last.
    SELECT *, known AND event = 'explained' AND JSONExtractUInt(attributes, 'opening') = openings_in_all AS explains,
           (description, attributes) AS why, of_job AND begun > eased AND begun > over AS holds,
           (holds, if(holds, severity_then, 0), spoke, place) AS weight
    FROM
    (
        SELECT *,
               countIf(of_job) OVER (PARTITION BY problem_id, episode ORDER BY place ROWS UNBOUNDED PRECEDING) > 0
                   AS known,
               countIf(opens) OVER (PARTITION BY problem_id, episode) AS openings_in_all,
               maxIf(place, event = 'resolved') OVER (PARTITION BY problem_id, episode) AS over,
               maxIf(place, opens OR event = 'joined') OVER by_kind AS begun,
               maxIf(place, event = 'eased') OVER by_kind AS eased,
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
                    SELECT *, event IN ('opened', 'reopened') AS opens, if(actor = '', 'unknown', actor) AS person,
                           parseDateTime64BestEffortOrNull(JSONExtractString(attributes, 'until'), 3, 'UTC') AS until,
                           event IN ('pending', 'opened', 'reopened', 'resolved') AS turns,
                           turns OR event IN ('joined', 'updated', 'eased') AS of_job,
                           (at, indexOf(['pending', 'withdrawn', 'opened', 'reopened', 'joined', 'updated', 'accepted',
                                         'eased', 'resolved', 'explained', 'acked', 'unacked', 'muted', 'unmuted'],
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
HAVING countIf(of_job) > 0;

-- Each run over a period states its insights anew: what an earlier run stated and the newest does not is withdrawn.
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
    withdrawn UInt8 COMMENT '1: said earlier in its period, and no longer so',
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
    why String COMMENT 'of the latest attempt that failed',
    external_id String,
    attempts UInt32,
    version UInt64,
    written_at DateTime64(3, 'UTC') DEFAULT updated_at COMMENT 'for the first time',
    updated_at DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree(version)
ORDER BY message_id;

-- The jobs' sign of life: Grafana alerts where the newest row of job `watch` is old.
CREATE TABLE IF NOT EXISTS job_runs
(
    job LowCardinality(String),
    epoch UInt64 COMMENT 'of the leader that did it',
    finished_at DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'when it last succeeded, by the clock of the server'
)
ENGINE = ReplacingMergeTree(finished_at)
ORDER BY job;

-- Which values of a segment have series of their own, chosen once a day from the traffic.
CREATE TABLE IF NOT EXISTS segment_values
(
    segment LowCardinality(String),
    holds_from DateTime('UTC') COMMENT 'start of the first base window that is cut by them',
    values Array(String) COMMENT 'every other value counts as __other__',
    epoch UInt64 COMMENT 'of the leader that chose',
    chosen_at DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree(epoch)
ORDER BY (segment, holds_from);

-- What was asked, as the encoder sees it: drift in questions is watched from these. What a vector of MiniLM's 384 numbers
-- costs on disk, and in CPU of the client to insert it (`python -m benchmarks.question_vectors`):
--
--     Float32                           1,542 bytes    17 us
--     Float32, ZSTD(1)                  1,422          18       ZSTD(9), Gorilla and FPC: no less
--     ... rounded to 8 bits               735          17       cosines move by 0.0006 at most, by 0.0001 on average
--     BFloat16, ZSTD(1)                   599         140       the same: 8 bits, cut instead of rounded
--
-- The stream rounds to 8 bits: half the disk, and plain Float32 for who reads, on any server. Rounded to 11 bits, a vector
-- takes 994 bytes and cosines move by 0.0001: more than drift needs. QBit and the codec ALP are in beta.
--
-- The answer's meaning (`answer`) takes half the bytes of the question's vector: cosines move by 0.005 at most, which is
-- enough to tell near from far. `answer_claims` are hashes of what rules read in it.
CREATE TABLE IF NOT EXISTS embeddings
(
    run_id LowCardinality(String),
    app LowCardinality(String),
    environment LowCardinality(String),
    time DateTime64(3, 'UTC'),
    trace_id String,
    version UInt128,
    model LowCardinality(String) COMMENT 'the encoder and the revision of its weights; vectors of two models never compare',
    vector Array(Float32) CODEC(ZSTD(1)) COMMENT 'of the whole question; of length 1 but for the rounding to 8 bits',
    topic LowCardinality(String) COMMENT 'that the question is of; other: of none; empty: there was no topic model',
    topic_version UInt64 COMMENT 'of the topic model by which it was placed',
    answer Array(Int8) CODEC(ZSTD(1)) COMMENT 'direction of the mean of the vectors of the answer''s sentences, by the same model; the greatest number is 127; empty: no answer, or none that was encoded',
    answer_claims Array(String) COMMENT 'what the answer states and the question does not: kind:hash, keyed where there is a hash_key, such as days, amounts of money, yes or no',
    is_deleted UInt8 COMMENT '1: the newest message of this trace has no question, or none that could be encoded',
    ingested_at DateTime64(3, 'UTC') DEFAULT now64(3),
    INDEX by_trace trace_id TYPE bloom_filter GRANULARITY 4,
    CONSTRAINT finite_vector CHECK arrayAll(number -> isFinite(number), vector)
)
ENGINE = ReplacingMergeTree(version, is_deleted)
PARTITION BY toYYYYMMDD(time)
ORDER BY (run_id, app, environment, toStartOfMinute(time), trace_id);

-- What operators did about dead letters, apart from them: a record that is read once more writes its letter anew, and
-- what was replayed or dropped must stay so.
CREATE TABLE IF NOT EXISTS dead_letter_marks
(
    run_id LowCardinality(String) COMMENT 'the run that the letter was replayed into, or dropped from',
    topic LowCardinality(String),
    partition UInt32,
    offset UInt64,
    time DateTime64(3, 'UTC') COMMENT 'of the broker',
    state LowCardinality(String) COMMENT 'replayed or dropped',
    actor String COMMENT 'who did it',
    at DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(at)
ORDER BY (run_id, topic, partition, offset, time);

-- Late facts about traces: every message of `rag.labels` by itself, since how many there are of a trace is the revision
-- of its enriched trace.
CREATE TABLE IF NOT EXISTS labels
(
    trace_id String,
    time DateTime64(3, 'UTC') COMMENT 'of the broker',
    topic LowCardinality(String),
    partition UInt32,
    offset UInt64,
    version UInt128 COMMENT 'of two labels the later one is the greater',
    author String COMMENT 'who says so, as sent or hashed',
    expected String COMMENT 'JSON: reference answers; empty: not told',
    relevance String COMMENT 'JSON: grade by chunk id; empty: not told',
    classes String COMMENT 'JSON: the right class, or several; empty: not told',
    thumbs LowCardinality(String) COMMENT 'up or down; empty: not told',
    score Nullable(Float64),
    comment String,
    ingested_at DateTime64(3, 'UTC') DEFAULT now64(3),
    INDEX by_ingested_at ingested_at TYPE minmax GRANULARITY 1,
    CONSTRAINT finite_score CHECK score IS NULL OR isFinite(score)
)
ENGINE = ReplacingMergeTree(ingested_at)
ORDER BY (trace_id, time, topic, partition, offset);

-- Topics of questions, one row per version of an application's model, so that no reader sees half of one. A topic keeps
-- its id and name.
CREATE TABLE IF NOT EXISTS topic_models
(
    app LowCardinality(String),
    encoder LowCardinality(String) COMMENT 'name and revision; one of another encoder has topics of its own',
    version UInt64 COMMENT 'leader epoch << 32 | number; the greatest holds',
    epoch UInt64 COMMENT 'of the leader that fitted it',
    fitted_at DateTime64(3, 'UTC'),
    questions UInt64 COMMENT 'that it was fitted on',
    ids Array(UInt32) COMMENT 'of topics, retired ones too; this and what follows: one item per topic',
    names Array(String) COMMENT 'the words that tell it from the others; also the value of the segment topic',
    centroids Array(Array(Float32)),
    least_cosines Array(Float64) COMMENT 'to the centroid: a question further off is not of the topic',
    sizes Array(UInt64) COMMENT 'of those questions; 0: retired'
)
ENGINE = ReplacingMergeTree(epoch)
ORDER BY (app, encoder, version);

-- Every run of every job. `job_runs` has the last success of each: the alert on silent jobs reads it.
CREATE TABLE IF NOT EXISTS job_history
(
    job LowCardinality(String),
    epoch UInt64 COMMENT 'of the leader that ran it',
    started_at DateTime64(3, 'UTC'),
    took_s Float64,
    failed String COMMENT 'why it did; empty: it was done',
    read Nullable(UInt64) COMMENT 'how many windows, series or records it looked at, where it counts them',
    raised Nullable(UInt64) COMMENT 'how many events, insights or messages followed, where it counts them'
)
ENGINE = ReplacingMergeTree
ORDER BY (job, started_at, epoch);

-- What detectors keep between runs. Rows carry the leader's version, so that late writes of an earlier leader never win.
CREATE TABLE IF NOT EXISTS detector_states
(
    kind LowCardinality(String) COMMENT 'score, rate, positive or category',
    lane LowCardinality(String),
    number UInt32 COMMENT 'of the batch of series',
    slot UInt8 COMMENT '0: the newest; others: to go back to when late records revise windows',
    until DateTime('UTC') COMMENT 'up to where its windows were looked at',
    position UInt64 COMMENT 'the version of windows that it knows of',
    names String CODEC(ZSTD(1)) COMMENT 'JSON: series, labels, when they were in alarm',
    state String CODEC(ZSTD(1)) COMMENT 'arrays, base64',
    version UInt64
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (kind, lane, number, slot);

CREATE TABLE IF NOT EXISTS detector_baselines
(
    kind LowCardinality(String),
    lane LowCardinality(String),
    number UInt32,
    slot UInt8 COMMENT 'the last few are kept',
    holds_from DateTime('UTC') COMMENT 'the first tick that is judged by it',
    baseline String CODEC(ZSTD(1)) COMMENT 'arrays, base64',
    version UInt64
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (kind, lane, number, slot);

-- Every pin and its removal stays: who pinned what, and why. `said_at` repeats `at` in the sorting key, so that no row
-- replaces another.
CREATE TABLE IF NOT EXISTS baseline_pins
(
    app LowCardinality(String),
    metric LowCardinality(String) COMMENT 'evaluator.metric; empty: all that have no pin of their own',
    run_id LowCardinality(String) COMMENT 'whose windows are the reference: live, or a replay',
    since DateTime('UTC') COMMENT 'of the reference; of a replay its whole range',
    until DateTime('UTC'),
    why String,
    actor String,
    removed UInt8,
    at DateTime64(3, 'UTC'),
    said_at DateTime64(3, 'UTC') COMMENT 'the same as at, in the key, so that no word replaces another'
)
ENGINE = ReplacingMergeTree(at)
PRIMARY KEY (app, metric)
ORDER BY (app, metric, said_at);

-- Perturbed traces against their originals, one row per perturbed trace and metric. A later run changes it in place.
CREATE TABLE IF NOT EXISTS flips
(
    metric LowCardinality(String) COMMENT 'evaluator.metric',
    trace_id String COMMENT 'of the perturbed trace, as are app, environment, model and time',
    app LowCardinality(String),
    environment LowCardinality(String),
    model LowCardinality(String),
    time DateTime64(3, 'UTC'),
    original_id String COMMENT 'trace id of the original',
    techniques String COMMENT 'in the order applied, each with its intensity: typo 0.1 > paraphrase',
    topic LowCardinality(String) COMMENT 'of the original question; empty: not known',
    outcome LowCardinality(String) COMMENT 'same, worse (a pass became a fail), better (a fail became a pass) or unknown: one of the two has no score, or one by another model or version of the evaluator',
    value Nullable(Float64),
    original_value Nullable(Float64),
    is_deleted UInt8,
    version UInt64 COMMENT 'leader epoch << 32 | number'
)
ENGINE = ReplacingMergeTree(version, is_deleted)
ORDER BY (metric, trace_id);

-- What drift in questions is measured from: groups of questions of a reference with their usual shares, and up to where
-- it was looked. One row per application, so that nobody reads half of it.
CREATE TABLE IF NOT EXISTS question_references
(
    app LowCardinality(String),
    environment LowCardinality(String),
    encoder LowCardinality(String) COMMENT 'name and revision; with another one all begins anew',
    learned DateTime('UTC') COMMENT 'the first time that is judged by it',
    until DateTime('UTC') COMMENT 'up to where questions were looked at',
    days Array(DateTime('UTC')) COMMENT 'whose questions it was learned from',
    groups UInt16 COMMENT 'that questions are in',
    memory String CODEC(ZSTD(1)) COMMENT 'middles of groups, their shares, state of the detector: arrays, base64',
    version UInt64 COMMENT 'leader epoch << 32 | number'
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (app, environment);

-- What each look at repeated questions found, whether or not it is a problem: dashboards show it.
CREATE TABLE IF NOT EXISTS asked_again
(
    app LowCardinality(String),
    environment LowCardinality(String),
    model LowCardinality(String),
    metric LowCardinality(String) COMMENT 'evaluator.metric, or answers.agreement: what the answers say',
    time DateTime64(3, 'UTC') COMMENT 'of the look, in whole minutes; it speaks of rules.asked_within_s before',
    questions UInt64 COMMENT 'of which enough answers are known',
    inconsistent UInt64 COMMENT 'of these: good on the mean and bad at least once, or with answers that disagree',
    answers UInt64,
    allowed Float64 COMMENT 'the share of inconsistent questions above which it is a problem, with the whole interval',
    pairs Array(Tuple(by LowCardinality(String), odd String, other String)) COMMENT 'of up to five of them, plainest first, by what two answers differ (score: the metric), and the trace ids of the one at odds, or the worst, and of another, or the best',
    version UInt64 COMMENT 'leader epoch << 32 | number'
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (app, environment, model, metric, time);
