-- Step 4: as SQLite's (schema/005.sql).

ALTER TABLE results ADD COLUMN declared TEXT;
