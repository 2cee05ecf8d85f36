-- Step 6: as SQLite's (schema/008.sql).

CREATE TABLE reservations (
    number     BIGINT PRIMARY KEY,
    machines   TEXT NOT NULL,
    holder     TEXT NOT NULL,
    why        TEXT NOT NULL,
    by_lab     BIGINT NOT NULL,
    since_unix BIGINT NOT NULL,
    until_unix BIGINT NOT NULL,
    ended_unix BIGINT
);
