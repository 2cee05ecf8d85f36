-- Step 7: how many workers of a queued job were killed in a row, so that such a job lets others pass.

ALTER TABLE queue ADD COLUMN kills INTEGER NOT NULL DEFAULT 0;
