#!/usr/bin/env python3
"""Programs written from public reports: fourth.py NAME SECONDS DIR [fixed]"""
import collections
import concurrent.futures
import logging
import os
import queue
import random
import re
import select
import socket
import sqlite3
import subprocess
import sys
import threading
import time

NAME = sys.argv[1]
SECONDS = float(sys.argv[2])
DIR = sys.argv[3]
FIXED = len(sys.argv) > 4 and sys.argv[4] == "fixed"
END = time.monotonic() + SECONDS


def running():
    return time.monotonic() < END


def report(label, count):
    print("%s: %d %s in %.1f s" % (NAME, count, label, SECONDS), flush=True)


# ---------------------------------------------------------------- W1
class DateExtractor:
    """Looks for the publishing date and the author in the meta tags of a page."""

    def __init__(self):
        self.keys = ["%s%s%d" % (a, b, n)
                     for a in ("article", "og", "dc", "sailthru", "bt", "parsely", "twitter", "item")
                     for b in (":published_", ".date.", "-author-", ":modified_", ".issued.")
                     for n in range(18)]
        self.known = {}

    def meta_pattern(self, key):
        return r'<meta[^>]+(?:name|property|itemprop)="%s"[^>]*content="([^"]{4,40})"' % re.escape(key)

    def find_meta(self, key, html):
        if FIXED:
            rex = self.known.get(key)
            if rex is None:
                rex = self.known[key] = re.compile(self.meta_pattern(key), re.I)
        else:
            rex = re.compile(self.meta_pattern(key), re.I)
        return rex.search(html)

    def extract(self, html):
        found = {}
        for key in self.keys:
            m = self.find_meta(key, html)
            if m:
                found[key] = m.group(1)
        return found


def news_extractor():
    head = "".join('<meta name="og:published_%d" content="2019-03-%02d">\n' % (i, i + 1) for i in range(6))
    html = head + "<body>" + "<p>A short text of a page.</p>" * 4 + "</body>"
    extractor = DateExtractor()
    done = 0
    while running():
        extractor.extract(html)
        done += 1
    report("pages", done)


# ---------------------------------------------------------------- W2
def score(n):
    return n * n % 97


def task_map():
    done = 0
    with concurrent.futures.ProcessPoolExecutor(max_workers=2) as executor:
        while running():
            for _ in executor.map(score, range(2000), chunksize=500 if FIXED else 1):
                done += 1
    report("tasks", done)


# ---------------------------------------------------------------- W3
class TftpContext:
    def __init__(self, number):
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind(("127.0.0.1", 0))
        self.number = number
        self.block = 0

    def cycle(self):
        data, peer = self.sock.recvfrom(516)
        self.block += 1
        self.sock.sendto(b"\x00\x03" + self.block.to_bytes(4, "big") + data[:8], peer)


class TftpServer:
    def __init__(self, count):
        self.sessions = {i: TftpContext(i) for i in range(count)}
        self.served = 0

    def listen(self):
        while running():
            inputlist = []
            for key in self.sessions:
                inputlist.append(self.sessions[key].sock)
            readyinput, _, _ = select.select(inputlist, [], [], 0.25)
            for readysock in readyinput:
                for key in self.sessions:
                    if readysock == self.sessions[key].sock:
                        self.sessions[key].cycle()
                        self.served += 1
                        break

    def listen_poll(self):
        poll = select.epoll()
        by_fd = {s.sock.fileno(): s for s in self.sessions.values()}
        for fd in by_fd:
            poll.register(fd, select.EPOLLIN)
        while running():
            for fd, _ in poll.poll(0.25):
                by_fd[fd].cycle()
                self.served += 1


def tftp_server():
    server = TftpServer(800)
    ports = [s.sock.getsockname()[1] for s in server.sessions.values()]
    child = os.fork()
    if child == 0:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.settimeout(0.5)
        rng = random.Random(4)
        while running():
            try:
                sock.sendto(b"\x00\x04acknowledge", ("127.0.0.1", rng.choice(ports)))
                sock.recvfrom(516)
            except OSError:
                pass
        os._exit(0)
    if FIXED:
        server.listen_poll()
    else:
        server.listen()
    os.waitpid(child, 0)
    report("packets", server.served)


# ---------------------------------------------------------------- W4
CacheMeta = collections.namedtuple(
    "CacheMeta", "id path mtime size hash dependencies data_mtime suppressed dep_prios dep_lines options")

tracer = logging.getLogger("build.trace")


class BuildManager:
    def __init__(self):
        self.fresh = 0

    def trace(self, *message):
        if tracer.isEnabledFor(logging.DEBUG):
            print("TRACE:", *message, file=sys.stderr)

    def tracing(self):
        return tracer.isEnabledFor(logging.DEBUG)


def validate_meta(meta, manager):
    if not FIXED or manager.tracing():
        manager.trace("validating %r against %r" % (meta, sorted(meta.dependencies)))
    if meta.mtime > 1700000000 or meta.size < 0:
        return None
    if meta.hash != "%040x" % (hash(meta.path) & 0xffff):
        return None
    manager.fresh += 1
    return meta


def type_checker():
    metas = []
    for i in range(400):
        path = "lib/package_%d/module.py" % i
        deps = ["package_%d.sub_%d.module" % (i, j) for j in range(60)]
        metas.append(CacheMeta("package_%d" % i, path, 1600000000 + i, 4000 + i,
                               "%040x" % (hash(path) & 0xffff), deps, 1600000000, deps[:20],
                               list(range(60)), list(range(60)), {"strict": True, "level": i}))
    manager = BuildManager()
    while running():
        for meta in metas:
            validate_meta(meta, manager)
    report("modules", manager.fresh)


# ---------------------------------------------------------------- W5
def wait_pid(pid, timeout=None):
    """Waits for the process with this id to end, at most timeout seconds."""
    stop_at = time.time() + timeout
    delay = 0.0001
    while True:
        retpid, status = os.waitpid(pid, os.WNOHANG)
        if retpid == pid:
            return os.waitstatus_to_exitcode(status)
        if time.time() >= stop_at:
            raise subprocess.TimeoutExpired("job", timeout)
        time.sleep(delay)
        if FIXED:
            delay = min(delay * 2, 0.04)


def job_runner():
    jobs = 0
    while running():
        left = max(0.2, min(1.5, END - time.monotonic()))
        pid = os.spawnvp(os.P_NOWAIT, "sleep", ["sleep", "%.2f" % left])
        wait_pid(pid, timeout=60)
        jobs += 1
    used = time.process_time()
    print("cpu %.2f s" % used)
    report("jobs", jobs)


# ---------------------------------------------------------------- W6
class ChunkWriter:
    """Takes batches of predictions and stores each as a chunk on the disk."""

    def __init__(self, path, threads):
        self.path = path
        self.queue = queue.Queue(maxsize=4)
        self.stored = 0
        self.threads = [threading.Thread(target=self.writer, args=(k,)) for k in range(threads)]
        for t in self.threads:
            t.start()

    def writer(self, k):
        while True:
            item = self.queue.get()
            if item is None:
                return
            number, block = item
            self.write_chunk(number, block)

    def write_chunk(self, number, block):
        fd = os.open(os.path.join(self.path, "c%d" % (number % 64)), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            os.write(fd, block)
            os.fsync(fd)
        finally:
            os.close(fd)
        self.stored += 1

    def close(self):
        for _ in self.threads:
            self.queue.put(None)
        for t in self.threads:
            t.join()


def predict_to_disk():
    path = os.path.join(DIR, "zarr")
    os.makedirs(path, exist_ok=True)
    out = ChunkWriter(path, 8 if FIXED else 1)
    block = os.urandom(131072)
    number = 0
    while running():
        batch = block[number % 1000:] + block[:number % 1000]
        out.queue.put((number, batch))
        number += 1
    out.close()
    report("chunks", out.stored)


# ---------------------------------------------------------------- W7
class FrameFilter:
    def __init__(self, size):
        self.size = size
        self.kept = bytearray(size) if FIXED else None

    def subtract(self, frame):
        if FIXED:
            out = self.kept
        else:
            out = bytearray(self.size)
        view = memoryview(out)
        part = len(frame)
        for at in range(0, self.size, part):
            view[at:at + part] = frame
        view.release()
        return out


def frame_filter():
    size = 48 << 20
    frame = os.urandom(64 << 10)
    work = FrameFilter(size)
    done = 0
    seen = 0
    while running():
        out = work.subtract(frame)
        seen += out[size // 2]
        done += 1
        del out
    report("frames", done)


# ---------------------------------------------------------------- W8
class FileWriter:
    def __init__(self, path):
        self.path = path
        self.kept = open(path, "w") if FIXED else None

    def write(self, s):
        if FIXED:
            self.kept.write(s)
            return
        with open(self.path, "a", encoding="utf-8") as output_file:
            output_file.write(s)


class Tracer:
    def __init__(self, path):
        self.writer = FileWriter(path)
        self.lines = 0

    def trace(self, frame, event, arg):
        if frame.f_code is not foo.__code__:
            return None
        self.lines += 1
        self.writer.write("%s %-9s %4d  i = %r\n" % ("12:00:01.123456", event, frame.f_lineno, frame.f_locals.get("i")))
        return self.trace


def foo():
    total = 0
    for i in range(1000):
        total += i
    return total


def snoop_trace():
    path = os.path.join(DIR, "snoop.log")
    rounds = 0
    lines = 0
    while running():
        open(path, "w").close()
        tracer_ = Tracer(path)
        sys.settrace(tracer_.trace)
        foo()
        sys.settrace(None)
        lines += tracer_.lines
        rounds += 1
    report("lines", lines)


# ---------------------------------------------------------------- W9 (healthy)
class XMLStream:
    def __init__(self):
        self.event_queue = queue.Queue()
        self.send_queue = queue.Queue()
        self.sock, self.other = socket.socketpair()
        self.handled = 0

    def _event_runner(self):
        while True:
            event = self.event_queue.get()
            if event is None:
                return
            self.handled += 1
            self.send_queue.put(b"<message>" + event + b"</message>")

    def _send_thread(self):
        while True:
            data = self.send_queue.get()
            if data is None:
                return
            self.sock.sendall(data)

    def _process(self):
        while True:
            data = self.sock.recv(4096)
            if not data:
                return
            self.event_queue.put(data)


def echo_client():
    stream = XMLStream()
    threads = [threading.Thread(target=f) for f in (stream._event_runner, stream._send_thread, stream._process)]
    for t in threads:
        t.start()
    time.sleep(max(0.0, END - time.monotonic()))
    stream.event_queue.put(None)
    stream.send_queue.put(None)
    stream.other.shutdown(socket.SHUT_WR)
    for t in threads:
        t.join()
    report("messages", stream.handled)


# ---------------------------------------------------------------- W10
def log_index():
    path = os.path.join(DIR, "logsuck.db")
    if os.path.exists(path):
        os.remove(path)
    db = sqlite3.connect(path)
    db.execute("PRAGMA synchronous=OFF")
    db.execute("CREATE TABLE Events (id INTEGER PRIMARY KEY, host TEXT, source TEXT, timestamp INTEGER, raw TEXT)")
    db.executemany("INSERT INTO Events (host, source, timestamp, raw) VALUES (?, ?, ?, ?)",
                   (("host%d" % (i % 7), "/var/log/syslog", 1600000000 + i,
                     "level=info service=%d took=%d request accepted and answered" % (i % 50, i % 977))
                    for i in range(400000)))
    db.execute("CREATE INDEX Event_Timestamp ON Events (timestamp)")
    db.commit()
    db.close()
    print("ready", flush=True)
    time.sleep(max(SECONDS, 30))


def filter_stream(db, offset, last):
    if FIXED:
        return db.execute("SELECT id, host, source, timestamp, raw FROM Events WHERE timestamp < ? "
                          "ORDER BY timestamp DESC LIMIT 100", (last,)).fetchall()
    return db.execute("SELECT id, host, source, timestamp, raw FROM Events "
                      "ORDER BY timestamp DESC LIMIT 100 OFFSET ?", (offset,)).fetchall()


def log_search():
    path = os.path.join(DIR, "logsuck.db")
    if not os.path.exists(path):
        sys.exit("no database: run log-index first")
    db = sqlite3.connect(path)
    pages = 0
    offset = 200000
    last = 1600000000 + 200000
    while running():
        rows = filter_stream(db, offset, last)
        if len(rows) < 100 or offset > 390000:
            offset = 200000
            last = 1600000000 + 200000
            continue
        offset += 100
        last = rows[-1][3]
        pages += 1
    report("pages", pages)


# ---------------------------------------------------------------- W11
class PersistenceBase:
    def __init__(self, path):
        self.path = path
        self.kept = None

    def _connect(self):
        if FIXED and self.kept is not None:
            return self.kept
        conn = sqlite3.connect(self.path)
        if FIXED:
            self.kept = conn
        return conn

    def _done(self, conn):
        if not FIXED:
            conn.close()

    def session(self, token):
        conn = self._connect()
        try:
            return conn.execute("SELECT user, expires FROM sessions WHERE token = ?", (token,)).fetchone()
        finally:
            self._done(conn)


def library_api():
    path = os.path.join(DIR, "library.db")
    if os.path.exists(path):
        os.remove(path)
    db = sqlite3.connect(path)
    db.execute("PRAGMA synchronous=OFF")
    with db:
        db.execute("BEGIN")
        for i in range(230):
            db.execute("CREATE TABLE track_%d (id INTEGER PRIMARY KEY, artist TEXT NOT NULL, album TEXT NOT NULL, title TEXT, "
                       "genre TEXT DEFAULT 'unknown', year INTEGER CHECK (year > 1800), length REAL, added TEXT, "
                       "UNIQUE (artist, album, title))" % i)
            db.execute("CREATE INDEX track_%d_artist ON track_%d (artist, album)" % (i, i))
            db.execute("CREATE INDEX track_%d_added ON track_%d (added, genre, year)" % (i, i))
            db.execute("CREATE TRIGGER track_%d_new AFTER INSERT ON track_%d BEGIN "
                       "UPDATE track_%d SET added = datetime('now') WHERE id = new.id; END" % (i, i, i))
        db.execute("CREATE TABLE sessions (token TEXT PRIMARY KEY, user TEXT, expires INTEGER)")
        db.executemany("INSERT INTO sessions VALUES (?, ?, ?)", (("t%d" % i, "u%d" % i, i) for i in range(500)))
    db.close()
    store = PersistenceBase(path)
    done = 0
    while running():
        store.session("t%d" % (done % 500))
        done += 1
    report("requests", done)


PROGRAMS = {
    "news-extractor": news_extractor,
    "task-map": task_map,
    "tftp-server": tftp_server,
    "type-checker": type_checker,
    "job-runner": job_runner,
    "predict-to-disk": predict_to_disk,
    "frame-filter": frame_filter,
    "snoop-trace": snoop_trace,
    "echo-client": echo_client,
    "log-index": log_index,
    "log-search": log_search,
    "library-api": library_api,
}

if __name__ == "__main__":
    PROGRAMS[NAME]()
