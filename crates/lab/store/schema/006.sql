-- Step 6: a checksum of what a result says, so that a number that changed in the file is refused and not shown.

ALTER TABLE results ADD COLUMN checksum INTEGER;  -- CRC-32, see src/checksum.rs; NULL where an earlier Marvin saved it
