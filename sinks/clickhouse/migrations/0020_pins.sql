-- Every word of people on pins is kept: the next one replaced who pinned what, and why. Only a new column may enter the key
-- of a table that is there, so `at` stands twice; of rows from before only the last word of each is known.

ALTER TABLE baseline_pins ADD COLUMN IF NOT EXISTS said_at DateTime64(3, 'UTC') COMMENT 'the same as at, in the key, so that no word replaces another' AFTER at, MODIFY ORDER BY (app, metric, said_at);
