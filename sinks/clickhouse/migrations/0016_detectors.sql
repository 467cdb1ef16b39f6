-- What detectors of change keep between runs, and what people said a baseline is to rest on. Rows carry the leader's
-- version, so that what a leader of before writes late never wins.

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
    at DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(at)
ORDER BY (app, metric);
