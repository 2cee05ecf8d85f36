-- Step 10: the latest jobs that are over, without a look at all that ever were.

CREATE INDEX queue_by_end ON queue (ended_unix DESC, number DESC);
