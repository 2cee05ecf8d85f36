# Test programs in Python, each chosen by the first argument: CASE SECONDS FOLDER.
import asyncio
import gc
import itertools
import logging
import os
import shutil
import socket
import sqlite3
import statistics
import sys
import threading
import time
from abc import ABC
from concurrent.futures import ProcessPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer

START = time.monotonic()
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 4.0
END = START + SECONDS


def running():
    return time.monotonic() < END


def own_folder(name):
    path = os.path.join(sys.argv[3], name)
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    return path


def normalize_terms(*values):
    try:
        from tools.memory_indexing import normalize_terms as shared
    except ModuleNotFoundError:
        from string import capwords as shared
    return [shared(value) for value in values]


def quality_terms():
    base = own_folder("quality-terms")
    for i in range(12):
        path = os.path.join(base, "plugin%d" % i)
        os.makedirs(path)
        sys.path.insert(0, path)
    done = 0
    while running():
        done += len(normalize_terms("recall", "ranking"))
    return done


class BuildQueue:
    def __init__(self, jobs):
        self.running = set()
        self.finished = 0
        self.jobs = jobs

    async def build(self, number):
        await asyncio.sleep(0.02 + number * 0.00035)

    def dispatch_ready(self):
        for number in range(self.jobs):
            self.running.add(asyncio.ensure_future(self.build(number)))

    async def wait_for_progress(self):
        left = max(0.0, END - time.monotonic())
        done, _ = await asyncio.wait(
            self.running, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        self.running -= done
        self.finished += len(done)


async def run_builds():
    queue = BuildQueue(12000)
    queue.dispatch_ready()
    while running() and queue.running:
        await queue.wait_for_progress()
    for task in queue.running:
        task.cancel()
    return queue.finished


def build_queue():
    return asyncio.run(run_builds())


def compile_hour(states):
    return statistics.mean(states)


def sensor_hours():
    own_folder("sensor-hours")
    states = [[20.0 + (i * 7919 + h * 31) % 977 / 97.0 for i in range(720)]
              for h in range(24)]
    rows = 0
    total = 0.0
    while running():
        for hour in states:
            total += compile_hour(hour)
            rows += 1
            if not running():
                break
    return rows


class Expression(ABC):
    pass


def declare_operators(levels, width):
    made = [Expression]
    layer = [Expression]
    for level in range(levels):
        following = []
        for parent in layer:
            for i in range(width):
                following.append(type("Op%d_%d" % (level, i), (parent,), {}))
        made.extend(following)
        layer = following
    return made


def to_expression(value):
    if isinstance(value, Expression):
        return value
    return (value,)


def expression_tree():
    own_folder("expression-tree")
    operators = declare_operators(3, 9)
    done = 0
    while running():
        record = type("Record%d" % done, (), {})
        to_expression(record())
        done += 1
    return done if operators else 0


class VoiceModel(bytes):
    pass


def load_plugins():
    return [VoiceModel(3000) for i in range(25000)]


def job_process():
    requests = [[i] for i in range(200)]
    gc.collect()
    return len(requests)


def voice_workers():
    own_folder("voice-workers")
    gc.disable()
    plugins = load_plugins()
    jobs = 0
    while running():
        pid = os.fork()
        if pid == 0:
            gc.enable()
            job_process()
            os._exit(0)
        os.waitpid(pid, 0)
        jobs += 1
    return jobs if plugins else 0


class NotesHandler(BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"<h1>notes</h1>"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def fetch_page(port):
    with socket.create_connection(("127.0.0.1", port)) as conn:
        conn.settimeout(max(0.05, END - time.monotonic()))
        conn.sendall(b"GET / HTTP/1.0\r\n\r\n")
        return len(conn.recv(4096))


def open_browser(port, pages):
    try:
        pages.append(fetch_page(port))
        spare = socket.create_connection(("127.0.0.1", port))
        time.sleep(0.05)
        while running():
            pages.append(fetch_page(port))
        spare.close()
    except OSError:
        pass


def notes_serve():
    own_folder("notes-serve")
    server = HTTPServer(("127.0.0.1", 0), NotesHandler)
    pages = []
    port = server.server_address[1]
    tab = threading.Thread(target=open_browser, args=(port, pages), daemon=True)
    tab.start()

    def close_later():
        time.sleep(max(0.0, END - time.monotonic()))
        print("notes-serve: %d pages" % len(pages), flush=True)
        os._exit(0)

    threading.Thread(target=close_later, daemon=True).start()
    server.serve_forever()
    return 0


class BlockDevice:
    def __init__(self, name):
        self.name = name
        self.lock = threading.Lock()
        self.size = 0

    def __str__(self):
        with self.lock:
            time.sleep(0.001)
            return "%s %d" % (self.name, self.size)

    def grow(self, log):
        with self.lock:
            self.size += 1
            time.sleep(0.001)
            log.info("grew to %d", self.size)


def storage_setup():
    base = own_folder("storage-setup")
    log = logging.getLogger("storage")
    log.setLevel(logging.INFO)
    log.propagate = False
    handler = logging.FileHandler(os.path.join(base, "storage.log"))
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    log.addHandler(handler)
    device = BlockDevice("sda1")
    steps = [0]

    def partition():
        while running():
            device.grow(log)
            steps[0] += 1

    def report():
        while running():
            log.info("state of %s", device)
            steps[0] += 1

    for work in (partition, report):
        threading.Thread(target=work, daemon=True).start()
    time.sleep(max(0.0, END - time.monotonic()))
    print("storage-setup: %d steps" % steps[0], flush=True)
    os._exit(0)


class Session:
    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        asyncio.set_event_loop(self.loop)
        self.loop.call_later(SECONDS + 30, self.keepalive)
        self.loop.run_forever()

    def keepalive(self):
        return None

    def close(self):
        self.loop.stop()
        self.thread.join(max(0.0, END - time.monotonic()))


def session_close():
    own_folder("session-close")
    closed = 0
    while running():
        session = Session()
        session.thread.start()
        time.sleep(0.2)
        session.close()
        closed += not session.thread.is_alive()
    print("session-close: %d sessions" % closed, flush=True)
    os._exit(0)


def carve_modules(body):
    return sum(body.count(c) for c in "{}[]")


def secret_scan():
    own_folder("secret-scan")
    bodies = 0
    with ProcessPoolExecutor(2, max_tasks_per_child=3) as pool:
        while running():
            answers = [pool.submit(carve_modules, "{}" * 40) for _ in range(6)]
            for answer in answers:
                answer.result()
                bodies += 1
    return bodies


def weigh(price, volume, spread):
    return frozenset((price, volume, spread))


def quote_sets():
    own_folder("quote-sets")
    ticks = [i / 256 for i in range(256)]
    rounds = 0
    while running():
        seen = set()
        for price, volume, spread in itertools.combinations(ticks, 3):
            seen.add(weigh(price, volume, spread))
            rounds += 1
            if rounds % 256 == 0 and not running():
                break
    return rounds


def run_history():
    base = own_folder("run-history")
    db = sqlite3.connect(os.path.join(base, "runs.db"))
    db.execute("pragma synchronous=off")
    db.execute("create table builds(name text, number int, output blob, "
               "started int, result int)")
    db.executemany("insert into builds values(?,?,?,?,?)",
                   (("job%d" % (i % 9), i, os.urandom(1 << 18), i * 60, i % 3)
                    for i in range(120)))
    db.commit()
    asked = 0
    while running():
        db.execute("select count(*), avg(started) from builds "
                   "where result = 1").fetchall()
        asked += 1
    db.close()
    return asked


NODE_SQL = """
select n.id, n.title, a.name, p.path, v.count, t.label
from nodes n join apps a on a.id = n.app join packages p on p.id = a.package
left join visits v on v.node = n.id and v.day = ?
left join tags t on t.id = n.tag
where n.id = ? and (a.name is not null or p.path like '/data/%')
order by v.count desc, t.label limit 1
"""


def node_visits():
    base = own_folder("node-visits")
    db = sqlite3.connect(os.path.join(base, "nodes.db"), cached_statements=0)
    db.executescript("""
create table nodes(id integer primary key, title, app int, tag int);
create table apps(id integer primary key, name, package int);
create table packages(id integer primary key, path);
create table visits(node int, day int, count int, primary key(node, day));
create table tags(id integer primary key, label);
create index nodes_app on nodes(app); create index nodes_tag on nodes(tag);
create index apps_package on apps(package); create index visits_day on visits(day);
""")
    for i in range(400):
        db.execute("insert into nodes values(?,?,?,?)", (i, "n%d" % i, i % 20, i % 7))
        db.execute("insert into visits values(?,?,?)", (i, 1, i))
    for i in range(20):
        db.execute("insert into apps values(?,?,?)", (i, "app%d" % i, i))
        db.execute("insert into packages values(?,?)", (i, "/data/%d" % i))
        db.execute("insert into tags values(?,?)", (i, "tag%d" % i))
    db.commit()
    rows = 0
    while running():
        rows += len(db.execute(NODE_SQL, (1, rows % 400)).fetchall())
    db.close()
    return rows


CASES = {
    "quality-terms": (quality_terms, "terms"),
    "build-queue": (build_queue, "builds"),
    "sensor-hours": (sensor_hours, "hours"),
    "expression-tree": (expression_tree, "values"),
    "voice-workers": (voice_workers, "jobs"),
    "notes-serve": (notes_serve, "pages"),
    "storage-setup": (storage_setup, "steps"),
    "session-close": (session_close, "sessions"),
    "secret-scan": (secret_scan, "bodies"),
    "quote-sets": (quote_sets, "quotes"),
    "run-history": (run_history, "questions"),
    "node-visits": (node_visits, "rows"),
}


def main():
    work, things = CASES[sys.argv[1]]
    print("%s: %d %s" % (sys.argv[1], work(), things), flush=True)


if __name__ == "__main__":
    main()
