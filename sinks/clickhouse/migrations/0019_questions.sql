-- What drift in questions is told from: groups of questions of a reference with their usual shares, and how far and with
-- what it was looked since. One row per application, so that nobody ever reads half of it.

CREATE TABLE IF NOT EXISTS question_references
(
    app LowCardinality(String),
    environment LowCardinality(String),
    encoder LowCardinality(String) COMMENT 'name and revision; with another one all begins anew',
    learned DateTime('UTC') COMMENT 'the first time that is judged by it',
    until DateTime('UTC') COMMENT 'up to where questions were looked at',
    days Array(DateTime('UTC')) COMMENT 'whose questions it was learned from',
    groups UInt16 COMMENT 'that questions are in',
    memory String CODEC(ZSTD(1)) COMMENT 'middles of groups, their shares, state of the detector: arrays, base64',
    version UInt64 COMMENT 'leader epoch << 32 | number'
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (app, environment);
