-- A window metric's own number. Windows of other metrics have a mean instead, and windows of before have none.

ALTER TABLE windows ADD COLUMN IF NOT EXISTS value Nullable(Float64) COMMENT 'of method window: the metric of the whole window, made of its parts; NULL: not to be told' AFTER parts;
