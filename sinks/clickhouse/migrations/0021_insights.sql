-- Each look at a period states its insights anew: what an earlier look said and the newest does not is taken back.

ALTER TABLE insights ADD COLUMN IF NOT EXISTS withdrawn UInt8 COMMENT '1: said earlier in its period, and no longer so' AFTER epoch;
