-- Step 2: as SQLite's (schema/002.sql).

ALTER TABLE results ADD COLUMN counted BYTEA NOT NULL DEFAULT '';
