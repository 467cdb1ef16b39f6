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
