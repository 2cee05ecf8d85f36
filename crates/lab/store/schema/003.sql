-- Step 3: what people decided about alerts. Each decision is a row of its own, the newest counts.

CREATE TABLE decisions (
    number       INTEGER NOT NULL PRIMARY KEY,  -- order of deciding
    track        TEXT    NOT NULL,              -- whose kernels follow each other, such as a flavour
    after        TEXT    NOT NULL,              -- version of the last kernel without the change
    at           TEXT    NOT NULL,              -- version of the first kernel that surely has it
    triage       TEXT    NOT NULL,              -- code
    note         TEXT    NOT NULL,
    worse        INTEGER NOT NULL,              -- series that were worse then
    decided_unix INTEGER NOT NULL
) STRICT;

CREATE TRIGGER decisions_are_never_changed BEFORE UPDATE ON decisions
    BEGIN SELECT RAISE(ABORT, 'a decision is never changed'); END;
