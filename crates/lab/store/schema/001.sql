-- Step 1: builds, machines, runs with their results and artefacts, and which name stood for which build.
-- Ids are lower-case hexadecimal without their word. Codes are listed in src/codes.rs.
-- Numbers of 64 bits without sign (seed, operations) are kept as the signed number with the same bits.

CREATE TABLE builds (
    id             TEXT NOT NULL PRIMARY KEY,
    name           ANY  NOT NULL,               -- text; a blob where a path in it is not UTF-8 (as for all paths)
    version        TEXT NOT NULL,
    origin         TEXT NOT NULL,
    image_path     ANY  NOT NULL,
    image_sha256   TEXT NOT NULL,
    vmlinux_path   ANY,
    vmlinux_sha256 TEXT,
    config_path    ANY,
    config_sha256  TEXT,
    symbols_path   ANY,
    symbols_sha256 TEXT,
    modules_path   ANY
) STRICT, WITHOUT ROWID;

CREATE TABLE machines (
    id      TEXT NOT NULL PRIMARY KEY,
    kind    TEXT NOT NULL,
    summary TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE fingerprints (
    machine  TEXT    NOT NULL REFERENCES machines (id),
    position INTEGER NOT NULL,
    name     TEXT    NOT NULL,
    value    TEXT    NOT NULL,
    PRIMARY KEY (machine, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE runs (
    number       INTEGER NOT NULL PRIMARY KEY,  -- order of saving; short key of what hangs on a run
    id           TEXT    NOT NULL UNIQUE,
    build        TEXT    NOT NULL REFERENCES builds (id),
    machine      TEXT    NOT NULL REFERENCES machines (id),
    suite        TEXT    NOT NULL,
    seed         INTEGER NOT NULL,
    started_unix INTEGER NOT NULL
) STRICT;

CREATE INDEX runs_by_subject ON runs (build, machine, suite, started_unix);
CREATE INDEX runs_by_time ON runs (started_unix);

CREATE TABLE environments (
    run      INTEGER NOT NULL REFERENCES runs (number),
    position INTEGER NOT NULL,
    name     TEXT    NOT NULL,
    value    TEXT    NOT NULL,
    PRIMARY KEY (run, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE results (
    run          INTEGER NOT NULL REFERENCES runs (number),
    position     INTEGER NOT NULL,              -- in the suite's order
    workload     TEXT    NOT NULL,
    operations   INTEGER NOT NULL,
    outcome      TEXT    NOT NULL,              -- code
    stage        TEXT,                          -- code, when failed
    reason       TEXT,                          -- code, when failed
    detail       TEXT,                          -- what was unsupported, or the text that goes with the reason
    console_tail TEXT,                          -- when failed
    samples      BLOB    NOT NULL,              -- float64, little-endian, one after the other
    PRIMARY KEY (run, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE artefacts (
    run  INTEGER NOT NULL REFERENCES runs (number),
    name TEXT    NOT NULL,
    size INTEGER NOT NULL,                      -- bytes before compression
    PRIMARY KEY (run, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE kernels (
    name      TEXT    NOT NULL,
    build     TEXT    NOT NULL REFERENCES builds (id),
    seen_unix INTEGER NOT NULL,                 -- when the name last stood for the build
    PRIMARY KEY (name, build)
) STRICT, WITHOUT ROWID;

-- A run is written once and never changed.
CREATE TRIGGER runs_are_never_changed BEFORE UPDATE ON runs
    BEGIN SELECT RAISE(ABORT, 'a run is never changed'); END;
CREATE TRIGGER results_are_never_changed BEFORE UPDATE ON results
    BEGIN SELECT RAISE(ABORT, 'a run is never changed'); END;
