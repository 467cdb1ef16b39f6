-- A mean over NaN or infinity says nothing: such a row is refused, and set aside by whoever wrote it.

ALTER TABLE scores ADD CONSTRAINT IF NOT EXISTS finite_metrics CHECK arrayAll(value -> isFinite(value), mapValues(metrics));

ALTER TABLE scores ADD CONSTRAINT IF NOT EXISTS finite_parts CHECK arrayAll(value -> isFinite(value), mapValues(parts));
