-- How long a message has been waiting, and why one was set aside.

ALTER TABLE outbox ADD COLUMN IF NOT EXISTS why String COMMENT 'of the latest attempt that failed' AFTER state;

ALTER TABLE outbox ADD COLUMN IF NOT EXISTS written_at DateTime64(3, 'UTC') DEFAULT updated_at COMMENT 'for the first time' AFTER version;
