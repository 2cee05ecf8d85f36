-- Step 4: the queue, and what people are to be told. A queued job is changed in place: it is no result.

CREATE TABLE queue (
    number       INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- never used twice
    kernel       TEXT    NOT NULL,             -- its name: git:v6.12
    tree         TEXT    NOT NULL,             -- a tree of marvin.toml, or empty
    config       TEXT    NOT NULL,
    suite        TEXT    NOT NULL,
    workloads    TEXT    NOT NULL,             -- names, commas between
    seeds        INTEGER NOT NULL,
    plan         TEXT    NOT NULL,             -- a plan of marvin.toml, or empty
    priority     INTEGER NOT NULL,
    rank         INTEGER NOT NULL,
    attempts_max INTEGER NOT NULL,
    deadline_s   INTEGER NOT NULL,
    state        TEXT    NOT NULL,             -- code
    worker       TEXT,                         -- of a job that runs
    until_unix   INTEGER,                      -- end of its lease; of one that waits, when it may be tried
    fence        INTEGER NOT NULL,
    attempts     INTEGER NOT NULL,
    reason       TEXT    NOT NULL,
    queued_unix  INTEGER NOT NULL,
    started_unix INTEGER,
    ended_unix   INTEGER,
    UNIQUE (kernel, tree, config, suite, workloads, seeds)
) STRICT;

CREATE INDEX queue_by_state ON queue (state, priority DESC, rank, number);

CREATE TABLE notices (
    number       INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    subject      TEXT    NOT NULL,             -- what it is about: tree:stable, boot:git:v6.12
    headline     TEXT    NOT NULL,
    body         TEXT    NOT NULL,
    raised_unix  INTEGER NOT NULL,
    settled_unix INTEGER                       -- when it was no longer so
) STRICT;

-- Of what is still so, people are told once.
CREATE UNIQUE INDEX notices_that_stand ON notices (subject) WHERE settled_unix IS NULL;

CREATE TABLE deliveries (
    notice         INTEGER NOT NULL REFERENCES notices (number),
    channel        TEXT    NOT NULL,           -- a channel of marvin.toml
    tries          INTEGER NOT NULL,
    next_unix      INTEGER NOT NULL,           -- when to try again
    delivered_unix INTEGER,
    said           TEXT    NOT NULL,           -- why the last try failed
    PRIMARY KEY (notice, channel)
) STRICT, WITHOUT ROWID;
