-- What each look at questions that were asked again found, whether or not it is a problem: dashboards show it.

CREATE TABLE IF NOT EXISTS asked_again
(
    app LowCardinality(String),
    environment LowCardinality(String),
    model LowCardinality(String),
    metric LowCardinality(String) COMMENT 'evaluator.metric, or answers.agreement: what the answers say',
    time DateTime64(3, 'UTC') COMMENT 'of the look, in whole minutes; it speaks of rules.asked_within_s before',
    questions UInt64 COMMENT 'of which enough answers are known',
    inconsistent UInt64 COMMENT 'of these: good on the mean and bad at least once, or with answers that disagree',
    answers UInt64,
    allowed Float64 COMMENT 'the share of inconsistent questions above which it is a problem, with the whole interval',
    pairs Array(Tuple(by LowCardinality(String), odd String, other String)) COMMENT 'of up to five of them, plainest first, by what two answers differ (score: the metric), and the trace ids of the one at odds, or the worst, and of another, or the best',
    version UInt64 COMMENT 'leader epoch << 32 | number'
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (app, environment, model, metric, time);
