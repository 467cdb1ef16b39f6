-- Late facts about traces: what `rag.labels` brought, every message by itself, since how many there are of a trace is the
-- revision of its enriched trace. And all of a trace that its other columns do not hold, so that it can go through the
-- lanes again: without it what came with the trace (a condition, classes, artifacts) would be lost with its scores.

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
    INDEX by_ingested_at ingested_at TYPE minmax GRANULARITY 1
)
ENGINE = ReplacingMergeTree(ingested_at)
ORDER BY (trace_id, time, topic, partition, offset);

ALTER TABLE labels ADD CONSTRAINT IF NOT EXISTS finite_score CHECK score IS NULL OR isFinite(score);

ALTER TABLE trace_texts ADD COLUMN IF NOT EXISTS rest String CODEC(ZSTD(1)) COMMENT 'JSON: what the trace held beyond these columns; empty: texts are masked, so that the trace cannot be made whole' AFTER attributes;
