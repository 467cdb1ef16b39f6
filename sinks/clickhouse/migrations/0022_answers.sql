-- What the answer to the question says, to tell whether answers to one question agree: the direction of its meaning, and
-- hashes of what rules read in it. Half the bytes of the question's vector: cosines move by 0.005 at most, which decides
-- between near and far as well.

ALTER TABLE embeddings ADD COLUMN IF NOT EXISTS answer Array(Int8) CODEC(ZSTD(1)) COMMENT 'direction of the mean of the vectors of the answer''s sentences, by the same model; the greatest number is 127; empty: no answer, or none that was encoded' AFTER topic_version;

ALTER TABLE embeddings ADD COLUMN IF NOT EXISTS answer_claims Array(String) COMMENT 'what the answer states and the question does not: kind:hash, keyed where there is a hash_key, such as days, amounts of money, yes or no' AFTER answer;
