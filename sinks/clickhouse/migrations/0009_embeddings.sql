-- What was asked, as the encoder sees it: drift in questions is watched from these. Measured on 6,000 sentences by
-- MiniLM (384 numbers), bytes of one vector and CPU of the client to insert it:
--
--     Float32, LZ4                      1,542 bytes    21 us
--     Float32, ZSTD(1)                  1,421          22        (ZSTD(9), Gorilla and FPC: no less)
--     ... rounded to 11 bits              994          20        cosines at most 0.00008 off
--     ... rounded to 8 bits               734          22        cosines at most 0.0006 off, 0.0001 on average
--     BFloat16, ZSTD(1)                   598         146        8 bits cut instead of rounded: 0.0007
--
-- The stream rounds to 8 bits, so a vector takes half the disk, and what reads it is plain Float32 on any server. 8 bits are
-- what BFloat16 keeps, whose column costs the client seven times the CPU. QBit and the codec ALP are still in beta.

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
