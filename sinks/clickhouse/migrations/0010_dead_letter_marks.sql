-- What people did about dead letters, apart from them: a record that is read once more writes its letter anew, and what
-- was replayed or dropped must stay so.

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
