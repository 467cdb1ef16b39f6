-- Every run of every job. `job_runs` stays what it was, the last success of each: the alert on silent jobs reads it.

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
