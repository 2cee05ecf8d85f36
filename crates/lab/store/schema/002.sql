-- Step 2: counted instructions of each iteration, by who executed them: user code, kernel, interrupts, other tasks.

ALTER TABLE results ADD COLUMN counted BLOB NOT NULL DEFAULT x'';  -- as samples, four for each iteration
