-- Step 5: as SQLite's (schema/006.sql).

ALTER TABLE results ADD COLUMN checksum BIGINT;
