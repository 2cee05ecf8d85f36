"""Programs of CPython from public reports: `foreign.py NAME SECONDS FOLDER`; `cases.txt` has the reports."""
import hashlib
import os
import re
import socket
import sqlite3
import sys
import threading
import time

name, seconds, folder = sys.argv[1], float(sys.argv[2]), sys.argv[3]
until = time.monotonic() + seconds


def going():
    return time.monotonic() < until


def gil_convoy():
    """R20: a thread that computes takes the GIL at each call of a socket."""
    one, other = socket.socketpair()

    def echo():
        while data := other.recv(100):
            other.send(data)

    def compute():
        n = 0
        while going():
            n += 1

    threading.Thread(target=echo, daemon=True).start()
    threading.Thread(target=compute, daemon=True).start()
    while going():
        one.send(b"x")
        one.recv(100)


def threads_compute():
    """Threads that compute run one at a time."""

    def compute():
        n = 0
        while going():
            n += 1

    threads = [threading.Thread(target=compute) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]


def md5_all():
    """R50: a checksum of all data though nothing changed."""
    data = bytes(1 << 24)
    while going():
        hashlib.md5(data).digest()


def quadratic_append():
    """R38: a second reference makes each append a copy."""
    while going():
        text = ""
        for _ in range(1500):
            other = text
            text += "x" * 50
        del other


def backtracking():
    """R21, in CPython: a pattern with nested repetition."""
    while going():
        re.match(r"([a-z]+)+$", "a" * 24 + "_")


def wal_writers():
    """R48: writers of one database sleep and try again."""
    file = os.path.join(folder, "wal.db")
    base = sqlite3.connect(file)
    base.execute("pragma journal_mode=wal")
    base.execute("create table if not exists t(n)")
    base.commit()
    base.close()
    for _ in range(6):
        if not os.fork():
            connection = sqlite3.connect(file, timeout=30, isolation_level=None)
            connection.execute("pragma synchronous=full")
            while going():
                connection.execute("begin immediate")
                connection.executemany("insert into t values (?)", [(n,) for n in range(500)])
                time.sleep(0.02)
                connection.execute("commit")
            os._exit(0)
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break


def sqlite_holder():
    file = os.path.join(folder, "held.db")
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("create table if not exists t(n)")
    connection.execute("begin exclusive")
    connection.execute("insert into t values (1)")
    print("ready", flush=True)
    time.sleep(30)


def sqlite_waiter():
    file = os.path.join(folder, "held.db")
    connection = sqlite3.connect(file, timeout=seconds + 1, isolation_level=None)
    try:
        connection.execute("insert into t values (1)")
    except sqlite3.OperationalError:
        pass


def missing_index():
    """R98: each row of the outer query scans the whole table."""
    connection = sqlite3.connect(os.path.join(folder, "rows.db"))
    connection.execute("create table if not exists frames(id integer primary key, ref int, t int)")
    connection.executemany("insert into frames(ref, t) values (?, ?)", [(n * 7 % 5000, n) for n in range(20000)])
    connection.commit()
    while going():
        connection.execute(
            "select count(*) from frames f where f.id < 20 and exists"
            " (select 1 from frames r where r.ref = f.id + 100000 and r.t not between f.t - 1 and f.t + 1)"
        ).fetchall()


def stat_storm():
    """R66: look-ups of thousands of files that are not there."""
    while going():
        for n in range(1000):
            try:
                os.stat(f"/usr/lib/nonesuch/{n}/package.py")
            except OSError:
                pass


def garbage():
    """A large heap of objects is collected again and again."""
    import gc

    heap = [[n] for n in range(2_000_000)]
    while going():
        gc.collect()
    return heap


globals()[name.replace("-", "_")]()
