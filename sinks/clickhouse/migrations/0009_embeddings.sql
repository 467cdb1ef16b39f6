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
    is_deleted UInt8 COMMENT '1: the newest message of this trace has no question, or none that could be encoded',
    ingested_at DateTime64(3, 'UTC') DEFAULT now64(3),
    INDEX by_trace trace_id TYPE bloom_filter GRANULARITY 4
)
ENGINE = ReplacingMergeTree(version, is_deleted)
PARTITION BY toYYYYMMDD(time)
ORDER BY (run_id, app, environment, toStartOfMinute(time), trace_id);

ALTER TABLE embeddings ADD CONSTRAINT IF NOT EXISTS finite_vector CHECK arrayAll(number -> isFinite(number), vector);
