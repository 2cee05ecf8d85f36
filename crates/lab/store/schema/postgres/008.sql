-- Step 8: the latest jobs that are over, as SQLite's (schema/010.sql).

CREATE INDEX queue_by_end ON queue (ended_unix DESC, number DESC);
