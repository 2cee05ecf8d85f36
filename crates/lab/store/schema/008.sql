-- Step 8: who has reserved which machines until when.

CREATE TABLE reservations (
    number     INTEGER PRIMARY KEY,  -- rises: the fence of the machines
    machines   TEXT NOT NULL,        -- names, sorted, separated by spaces
    holder     TEXT NOT NULL,
    why        TEXT NOT NULL,
    by_lab     INTEGER NOT NULL,     -- 1 if a measurement made it, which extends it step by step
    since_unix INTEGER NOT NULL,
    until_unix INTEGER NOT NULL,
    ended_unix INTEGER               -- NULL unless it was released
) STRICT;
