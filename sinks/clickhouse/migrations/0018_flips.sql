-- Perturbed traces against their originals, one row per perturbed trace and metric: who looks again changes it in place.
-- A hash of each question tells where the same one was asked again. And what was scored lately is found without reading
-- how old every row of the retention is.

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

ALTER TABLE scores ADD INDEX IF NOT EXISTS by_ingested_at ingested_at TYPE minmax GRANULARITY 1;

ALTER TABLE traces ADD COLUMN IF NOT EXISTS question_hash String COMMENT 'of the question without case and spacing, keyed where there is a hash_key; empty: no question, or texts are not stored in full and there is no key' AFTER offset;
