-- What was ingested lately is found without reading how old every row of the retention is.

ALTER TABLE traces ADD INDEX IF NOT EXISTS by_ingested_at ingested_at TYPE minmax GRANULARITY 1;
