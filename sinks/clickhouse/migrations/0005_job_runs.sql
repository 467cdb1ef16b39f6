-- The jobs' sign of life: Grafana alerts where the newest row of job `watch` is old.

CREATE TABLE IF NOT EXISTS job_runs
(
    job LowCardinality(String),
    epoch UInt64 COMMENT 'of the leader that did it',
    finished_at DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'when it last succeeded, by the clock of the server'
)
ENGINE = ReplacingMergeTree(finished_at)
ORDER BY job;
