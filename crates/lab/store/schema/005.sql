-- Step 5: what the metric of a result was declared to be when it was measured: direction, margin in percent, unit.

ALTER TABLE results ADD COLUMN declared TEXT;  -- `lower 1 instructions/op`; NULL where it was not said
