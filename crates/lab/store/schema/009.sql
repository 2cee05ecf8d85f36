-- Step 9: the machine of a queued job is a part of its work; machines have a health.

CREATE TABLE queue_of_machines (
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
    kills        INTEGER NOT NULL,             -- killed workers in a row
    machine      TEXT    NOT NULL,             -- exact, or a [[machine]] of marvin.toml
    UNIQUE (kernel, tree, config, suite, workloads, seeds, machine)
) STRICT;

INSERT INTO queue_of_machines SELECT number, kernel, tree, config, suite, workloads, seeds, plan, priority, rank,
    attempts_max, deadline_s, state, worker, until_unix, fence, attempts, reason, queued_unix, started_unix, ended_unix,
    kills, 'exact' FROM queue;
DROP TABLE queue;
ALTER TABLE queue_of_machines RENAME TO queue;
CREATE INDEX queue_by_state ON queue (state, machine, priority DESC, rank, number);

CREATE TABLE health (
    machine          TEXT    NOT NULL PRIMARY KEY, -- a [[machine]] of marvin.toml
    failures         INTEGER NOT NULL,             -- of the lab, in a row
    reason           TEXT    NOT NULL,             -- of the last one
    quarantined_unix INTEGER,
    next_unix        INTEGER NOT NULL              -- when a quarantined machine tries a job again
) STRICT;
