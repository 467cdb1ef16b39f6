-- Topics of questions, one row per version of an application's model: who reads it never sees half of one. A topic's id
-- and name are its own for good. And the topic that each question was placed in, by which version.

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

ALTER TABLE embeddings ADD COLUMN IF NOT EXISTS topic LowCardinality(String) COMMENT 'that the question is of; other: of none; empty: there was no topic model' AFTER vector;

ALTER TABLE embeddings ADD COLUMN IF NOT EXISTS topic_version UInt64 COMMENT 'of the topic model by which it was placed' AFTER topic;
