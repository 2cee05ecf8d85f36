# Eighth set of CPython programs for the observer: one function per case.
# Use: eighth.py CASE SECONDS FOLDER
import asyncio
import logging
import multiprocessing
import os
import pathlib
import queue
import random
import re
import shutil
import signal
import socket
import sqlite3
import sys
import threading
import time


def fresh(folder, name):
    path = os.path.join(folder, name)
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    return path


def done(name, count, what):
    os.write(1, f"{name}: {count} {what}\n".encode())


# --- log-worker -------------------------------------------------------------

def drain_console(fd, stop):
    while not stop.is_set():
        os.read(fd, 65536)
        time.sleep(0.05)


def access_log(stop):
    log = logging.getLogger("access")
    n = 0
    while not stop.is_set():
        log.info("GET /function/%d 200 %s", n, "u" * 900)
        n += 1


def call_function(number):
    print("function", number, "handled")


def log_worker(seconds, folder):
    fresh(folder, "log-worker")
    deadline = time.monotonic() + seconds
    read_end, write_end = os.pipe()
    sys.stdout = os.fdopen(write_end, "w")
    logging.basicConfig(stream=sys.stdout, level=logging.INFO)
    stop = threading.Event()
    for target, args in ((drain_console, (read_end, stop)), (access_log, (stop,))):
        threading.Thread(target=target, args=args, daemon=True).start()
    time.sleep(0.3)
    context = multiprocessing.get_context("fork")
    handled = 0
    while time.monotonic() < deadline:
        worker = context.Process(target=call_function, args=(handled,))
        worker.start()
        worker.join(max(0.0, deadline - time.monotonic()))
        if worker.is_alive():
            worker.kill()
            worker.join()
        else:
            handled += 1
    done("log-worker", handled, "calls")
    os._exit(0)


# --- date-parser ------------------------------------------------------------

class Locale:
    def __init__(self, shortname, months):
        self.shortname = shortname
        self.months = {m: i + 1 for i, m in enumerate(months)}
        self.splitter = re.compile(r"([\s,./-]+)")

    def is_applicable(self, date_string):
        tokens = [t for t in self.splitter.split(date_string.lower()) if t.strip()]
        known = 0
        for token in tokens:
            if token.isdigit() or token in self.months:
                known += 1
        return known == len(tokens)

    def translate(self, date_string):
        return self.splitter.split(date_string.lower())


class DateDataParser:
    def __init__(self, locales):
        self.available = locales
        self.previous_locales = []

    def _applicable_locales(self, date_string):
        for locale in self.previous_locales:
            if locale.is_applicable(date_string):
                yield locale
        for locale in self.available:
            if locale.is_applicable(date_string):
                yield locale

    def get_date_data(self, date_string):
        for locale in self._applicable_locales(date_string):
            parts = locale.translate(date_string)
            if len(parts) >= 3:
                self.previous_locales.insert(0, locale)
                return parts
        return None


def date_parser(seconds, folder):
    fresh(folder, "date-parser")
    deadline = time.monotonic() + seconds
    locales = [Locale(f"l{k}", [f"m{k}n{j}" for j in range(12)]) for k in range(63)]
    parser = DateDataParser(locales)
    for number in range(2200):
        locale = random.choice(locales)
        parser.previous_locales.insert(0, locale)
    seen = 0
    while time.monotonic() < deadline:
        parser.get_date_data("posted yesterday by someone")
        parser.get_date_data(f"12 m{seen % 63}n3 2018")
        seen += 2
    done("date-parser", seen, "dates")


# --- tree-list --------------------------------------------------------------

def cacheddir(directory, files_only):
    os.stat(directory)
    names = os.listdir(directory)
    kinds = []
    for name in names:
        path = directory + "/" + name
        mode = os.stat(path).st_mode & 0o170000
        kinds.append(0 if mode == 0o100000 else 1)
    return [n for n, k in zip(names, kinds) if not files_only or k == 0]


def tree_list(seconds, folder):
    root = fresh(folder, "tree-list")
    for category in range(30):
        base = f"{root}/category-{category}"
        os.mkdir(base)
        for package in range(300):
            os.close(os.open(f"{base}/package-{package}.ebuild", os.O_CREAT | os.O_WRONLY))
    deadline = time.monotonic() + seconds
    listed = 0
    while time.monotonic() < deadline:
        for category in os.listdir(root):
            listed += len(cacheddir(f"{root}/{category}", True))
    done("tree-list", listed, "files")


# --- lock-tasks -------------------------------------------------------------

class Lock:
    def __init__(self):
        self._owner = None
        self._waiters = []

    async def acquire(self):
        task = asyncio.current_task()
        if self._owner is None and not self._waiters:
            self._owner = task
            return
        item = (task, asyncio.get_running_loop().create_future())
        self._waiters.append(item)
        try:
            await item[1]
        except asyncio.CancelledError:
            if item in self._waiters:
                self._waiters.remove(item)
            raise

    def release(self):
        self._owner = None
        for item in self._waiters:
            if not item[1].cancelled():
                self._owner = item[0]
                item[1].set_result(True)
                self._waiters.remove(item)
                return


async def use_connection(lock, tally):
    await lock.acquire()
    try:
        await asyncio.sleep(0.002)
        tally.append(1)
    finally:
        lock.release()


async def serve_connections(deadline):
    lock = Lock()
    tally = []
    jobs = [asyncio.create_task(use_connection(lock, tally)) for _ in range(40)]
    await asyncio.wait(jobs)
    await lock.acquire()
    late = asyncio.create_task(use_connection(lock, tally))
    await asyncio.sleep(0.01)
    asyncio.get_running_loop().call_soon(cancel_and_release, late, lock)
    others = [asyncio.create_task(use_connection(lock, tally)) for _ in range(20)]
    left = max(0.01, deadline - time.monotonic())
    await asyncio.wait(others, timeout=left)
    for task in others:
        task.cancel()
    return len(tally)


def cancel_and_release(task, lock):
    task.cancel()
    lock.release()


def lock_tasks(seconds, folder):
    fresh(folder, "lock-tasks")
    count = asyncio.run(serve_connections(time.monotonic() + seconds))
    done("lock-tasks", count, "uses")


# --- stage-workers ----------------------------------------------------------

TIMEOUT = 0.0001


def stage_worker(input_queue, output_queue, stop):
    while not stop.is_set():
        try:
            element = input_queue.get(timeout=TIMEOUT)
        except queue.Empty:
            continue
        time.sleep(0.8)
        output_queue.put(element)


def stage_workers(seconds, folder):
    fresh(folder, "stage-workers")
    deadline = time.monotonic() + seconds
    source, sink, stop = queue.Queue(), queue.Queue(), threading.Event()
    workers = [threading.Thread(target=stage_worker, args=(source, sink, stop), daemon=True)
               for _ in range(10)]
    for worker in workers:
        worker.start()
    while time.monotonic() < deadline:
        source.put("element")
        time.sleep(min(0.7, max(0.0, deadline - time.monotonic())))
    stop.set()
    done("stage-workers", sink.qsize(), "elements")


# --- whois-server -----------------------------------------------------------

def whois_worker(connections, answered):
    while True:
        conn = connections.get()
        request = b""
        while not request.endswith(b"\n"):
            data = conn.recv(1024)
            if not data:
                break
            request += data
        if request:
            conn.sendall(b"route: 192.0.2.0/24\n")
            answered.append(1)
        conn.close()


def whois_server(seconds, folder):
    root = fresh(folder, "whois-server")
    deadline = time.monotonic() + seconds
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    with open(root + "/port.new", "w") as out:
        out.write(str(listener.getsockname()[1]))
    os.rename(root + "/port.new", root + "/port")
    connections, answered = queue.Queue(), []
    for _ in range(3):
        threading.Thread(target=whois_worker, args=(connections, answered), daemon=True).start()
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            break
        listener.settimeout(left)
        try:
            conn, _ = listener.accept()
        except TimeoutError:
            break
        conn.settimeout(None)
        connections.put(conn)
    done("whois-server", len(answered), "answers")
    os._exit(0)


def whois_clients(seconds, folder):
    deadline = time.monotonic() + seconds
    shutil.rmtree(os.path.join(folder, "whois-server"), ignore_errors=True)
    print("ready", flush=True)
    path = os.path.join(folder, "whois-server", "port")
    while time.monotonic() < deadline and not os.path.exists(path):
        time.sleep(0.05)
    if not os.path.exists(path):
        return
    port = int(open(path).read())
    held = []
    for number in range(9):
        try:
            conn = socket.create_connection(("127.0.0.1", port))
            if number < 1 or number > 4:
                conn.sendall(b"192.0.2.1\n")
            held.append(conn)
        except OSError:
            break
        time.sleep(0.02)
    time.sleep(max(0.0, deadline - time.monotonic()))


# --- app-finder -------------------------------------------------------------

def find_app(root, relative, target):
    app = pathlib.Path(root) / relative
    build = app.parent / f"build_{target}"
    name = app.name
    log = build / "build_log.txt"
    sdkconfig = app.with_name("sdkconfig").with_suffix(".defaults")
    return name, log.as_posix(), str(sdkconfig.relative_to(pathlib.Path(root)))


def app_finder(seconds, folder):
    root = fresh(folder, "app-finder")
    deadline = time.monotonic() + seconds
    relatives = [f"examples/group{k % 17}/section{k % 5}/app_{k}/main" for k in range(500)]
    found = 0
    while time.monotonic() < deadline:
        for relative in relatives:
            find_app(root, relative, "esp32")
        found += len(relatives)
    done("app-finder", found, "apps")


# --- memory-device ----------------------------------------------------------

class CharDriverAccessor:
    def __init__(self, path, size):
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT)
        os.ftruncate(self._fd, size)

    def write(self, address, data):
        os.lseek(self._fd, address, os.SEEK_SET)
        os.write(self._fd, data)

    def read(self, address, size):
        os.lseek(self._fd, address, os.SEEK_SET)
        return os.read(self._fd, size)


def memory_device(seconds, folder):
    root = fresh(folder, "memory-device")
    size = 16 << 20
    device = CharDriverAccessor(root + "/mem.bin", size)
    deadline = time.monotonic() + seconds
    line = b"\x5a" * 64
    accesses = 0
    while time.monotonic() < deadline:
        for block in range(2000):
            address = (accesses * 64) % size
            device.write(address, line)
            device.read(address, 64)
            accesses += 1
    done("memory-device", accesses, "accesses")


# --- activity-pick (SQLite) -------------------------------------------------

def random_activity(db):
    query = ("SELECT id, code, name FROM activitydataset WHERE database = ?"
             " ORDER BY RANDOM() LIMIT 1")
    return db.execute(query, ("ecoinvent",)).fetchone()


def activity_pick(seconds, folder):
    root = fresh(folder, "activity-pick")
    db = sqlite3.connect(root + "/databases.db")
    db.execute("CREATE TABLE activitydataset(id INTEGER PRIMARY KEY, database TEXT,"
               " code TEXT, name TEXT)")
    db.executemany("INSERT INTO activitydataset(database, code, name) VALUES (?, ?, ?)",
                   (("ecoinvent", f"c{k:08x}", f"market for material {k}")
                    for k in range(200000)))
    db.execute("CREATE INDEX activity_database ON activitydataset(database)")
    db.commit()
    deadline = time.monotonic() + seconds
    picked = 0
    while time.monotonic() < deadline:
        random_activity(db)
        picked += 1
    done("activity-pick", picked, "activities")


# --- mail-queue (SQLite) ----------------------------------------------------

def mark_received(db):
    db.execute("UPDATE goqite SET received = received + 1")
    db.commit()


def mail_queue(seconds, folder):
    root = fresh(folder, "mail-queue")
    db = sqlite3.connect(root + "/queue.db")
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = OFF")
    db.execute("CREATE TABLE goqite(id INTEGER PRIMARY KEY, queue TEXT NOT NULL,"
               " body BLOB NOT NULL, received INTEGER NOT NULL DEFAULT 0)")
    body = os.urandom(1 << 20)
    for _ in range(24):
        db.execute("INSERT INTO goqite(queue, body) VALUES ('mail', ?)", (body,))
    db.commit()
    deadline = time.monotonic() + seconds
    rounds = 0
    while time.monotonic() < deadline:
        mark_received(db)
        rounds += 1
    done("mail-queue", rounds, "rounds")


# --- package-db (SQLite) ----------------------------------------------------

def register_package(db, number):
    db.execute("BEGIN IMMEDIATE")
    db.execute("INSERT INTO packages(name, version) VALUES (?, '1.0')", (f"port-{number}",))
    db.execute("COMMIT")


def package_db(seconds, folder):
    deadline = time.monotonic() + seconds
    fresh(folder, "package-db")
    path = os.path.join(folder, "package-scripts", "local.sqlite")
    registered = 0
    while time.monotonic() < deadline:
        left = max(0.05, deadline - time.monotonic())
        db = sqlite3.connect(path, timeout=left, isolation_level=None)
        try:
            register_package(db, registered)
            registered += 1
        except sqlite3.OperationalError:
            pass
        db.close()
    done("package-db", registered, "packages")


def package_scripts(seconds, folder):
    root = fresh(folder, "package-scripts")
    db = sqlite3.connect(root + "/local.sqlite", isolation_level=None)
    db.execute("CREATE TABLE packages(id INTEGER PRIMARY KEY, name TEXT, version TEXT)")
    db.execute("BEGIN")
    db.executemany("INSERT INTO packages(name, version) VALUES (?, '1.0')",
                   ((f"base-{k}",) for k in range(2000)))
    db.execute("COMMIT")
    rows = db.execute("SELECT name FROM packages")
    rows.fetchone()
    print("ready", flush=True)
    time.sleep(seconds)
    rows.close()


CASES = {
    "log-worker": log_worker, "date-parser": date_parser, "tree-list": tree_list,
    "lock-tasks": lock_tasks, "stage-workers": stage_workers,
    "whois-server": whois_server, "whois-clients": whois_clients,
    "app-finder": app_finder, "memory-device": memory_device,
    "activity-pick": activity_pick, "mail-queue": mail_queue,
    "package-db": package_db, "package-scripts": package_scripts,
}

if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    CASES[sys.argv[1]](float(sys.argv[2]), sys.argv[3])
