"""Tenth half of the zoo: programs in Python. Arguments: CASE SECONDS FOLDER."""
import asyncio
import io
import math
import multiprocessing
import os
import random
import select
import shutil
import socket
import sqlite3
import sys
import tarfile
import threading
import time
from typing import Protocol, runtime_checkable
from xml.dom import minidom


def make_folder(folder, name):
    path = os.path.join(folder, name)
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    return path


def run_user_code(results, rows):
    table = [{"row": i, "text": "cell %d " % i * 4} for i in range(rows)]
    results.put(("ok", table))


def code_runner(end, path):
    done = 0
    context = multiprocessing.get_context("fork")
    while time.monotonic() < end:
        results = context.Queue()
        rows = 50 if done < 3 else 5000
        worker = context.Process(target=run_user_code, args=(results, rows))
        worker.start()
        worker.join(max(0.1, end - time.monotonic()))
        if worker.is_alive():
            worker.kill()
            worker.join()
            break
        results.get()
        done += 1
    return done, "tasks"


@runtime_checkable
class SupportsNumber(Protocol):
    def __add__(self, other): ...
    def __radd__(self, other): ...
    def __sub__(self, other): ...
    def __rsub__(self, other): ...
    def __mul__(self, other): ...
    def __rmul__(self, other): ...
    def __truediv__(self, other): ...
    def __floordiv__(self, other): ...
    def __mod__(self, other): ...
    def __pow__(self, other): ...
    def __neg__(self): ...
    def __pos__(self): ...
    def __abs__(self): ...
    def __lt__(self, other): ...
    def __le__(self, other): ...
    def __round__(self, digits=None): ...


def beartype_sum(values):
    total = 0
    for value in values:
        if not isinstance(value, SupportsNumber):
            raise TypeError(value)
        total = total + value
    return total


def number_kinds(end, path):
    values = [1, 2.5, 3, 4.25] * 50
    checked = 0
    while time.monotonic() < end:
        beartype_sum(values)
        checked += len(values)
    return checked, "values"


class PythonRational:
    __slots__ = ("p", "q")

    def __init__(self, p, q):
        g = math.gcd(p, q)
        self.p = p // g
        self.q = q // g

    def __add__(self, other):
        return PythonRational(self.p * other.q + self.q * other.p, self.q * other.q)

    def __mul__(self, other):
        return PythonRational(self.p * other.p, self.q * other.q)


def dup_eval(coefficients, point):
    value = PythonRational(0, 1)
    for c in coefficients:
        value = value * point + c
    return value


def root_count(end, path):
    random.seed(12602)
    signs = 0
    while time.monotonic() < end:
        point = PythonRational(random.getrandbits(400), random.getrandbits(400) | 1)
        row = [PythonRational(random.getrandbits(60), random.getrandbits(60) | 1)
               for _ in range(24)]
        if dup_eval(row, point).p > 0:
            signs += 1
    return signs, "points"


def build_archive(path):
    name = os.path.join(path, "crates.tar.gz")
    rng = random.Random(62944)
    words = [bytes(rng.choices(b"abcdefghijklmnop", k=9)) for _ in range(4000)]
    with tarfile.open(name, "w:gz", compresslevel=1) as tar:
        for i in range(160):
            body = b" ".join(rng.choices(words, k=6000))
            info = tarfile.TarInfo("crate-%03d/src.txt" % i)
            info.size = len(body)
            tar.addfile(info, io.BytesIO(body))
    return name


def archive_pick(end, path):
    name = build_archive(path)
    picked = 0
    with tarfile.open(name, "r:gz") as tar:
        members = tar.getmembers()
        while time.monotonic() < end:
            for member in reversed(members):
                tar.extractfile(member).read(4000)
                picked += 1
                if time.monotonic() >= end:
                    break
    return picked, "members"


def wait_epoll(fileno, mask, interval):
    poll = select.epoll()
    try:
        poll.register(fileno, mask | select.EPOLLONESHOT)
        while not poll.poll(interval):
            pass
    finally:
        poll.close()


def answer_queries(conn):
    while True:
        data = conn.recv(256)
        if not data:
            return
        conn.send(data)


def pg_driver(end, path):
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    fileno = ours.fileno()
    queries = 0
    while time.monotonic() < end:
        for _ in range(200):
            wait_epoll(fileno, select.EPOLLOUT, 0.1)
            ours.send(b"Q")
            theirs.send(theirs.recv(16))
            wait_epoll(fileno, select.EPOLLIN, 0.1)
            ours.recv(16)
            queries += 1
    return queries, "queries"


def find_include(base, directories, name):
    for directory in directories:
        candidate = os.path.realpath(os.path.join(directory, name))
        if candidate in base:
            return candidate
    return None


def code_survey(end, path):
    root = os.path.join(path, *["level%d" % i for i in range(9)])
    os.makedirs(root)
    directories = []
    for i in range(12):
        directory = os.path.join(root, "include%d" % i)
        os.mkdir(directory)
        directories.append(directory)
    base = set()
    for i in range(40):
        name = os.path.join(directories[-1], "part%d.h" % i)
        open(name, "w").close()
        base.add(os.path.realpath(name))
    found = 0
    while time.monotonic() < end:
        for i in range(40):
            if find_include(base, directories, "part%d.h" % i):
                found += 1
    return found, "includes"


def parse_model(text):
    document = minidom.parseString(text)
    points = document.documentElement.getElementsByTagName("point")
    total = sum(int(p.getAttribute("x")) for p in points)
    document.unlink()
    return total


def xml_models(end, path):
    rows = "".join('<point x="%d" y="%d"><name>p%d</name></point>\n' % (i, i * 2, i)
                   for i in range(300))
    text = '<?xml version="1.0"?><set xmlns:a="urn:a">\n%s</set>' % rows
    parsed = 0
    while time.monotonic() < end:
        parse_model(text)
        parsed += 1
    return parsed, "files"


class ModbusClient:
    def __init__(self):
        self.tx_queue = asyncio.Queue(maxsize=20)
        self.sent = 0

    async def task_network_producer(self):
        while True:
            frame, done = await self.tx_queue.get()
            self.sent += 1
            if self.sent > 300:
                raise ConnectionResetError(frame)
            await asyncio.sleep(0.0005)
            if not done.done():
                done.set_result(len(frame))

    async def send_request_and_await_response(self, frame):
        done = asyncio.get_running_loop().create_future()
        await self.tx_queue.put((frame, done))
        return await done

    async def refresh_plant(self):
        while True:
            await self.send_request_and_await_response(b"\x59\x59\x00\x01")


async def modbus_main(end):
    client = ModbusClient()
    producer = asyncio.create_task(client.task_network_producer())
    pollers = [asyncio.create_task(client.refresh_plant()) for _ in range(40)]
    await asyncio.wait(pollers, timeout=max(0.1, end - time.monotonic()))
    for task in pollers + [producer]:
        task.cancel()
    await asyncio.gather(*pollers, producer, return_exceptions=True)
    return client.sent


def modbus_client(end, path):
    return asyncio.run(modbus_main(end)), "frames"


class Pysensu:
    def __init__(self, address):
        self.address = address

    def api_call(self, url, end):
        with socket.socket(socket.AF_UNIX) as conn:
            conn.connect(self.address)
            conn.sendall(b"GET %s HTTP/1.0\r\n\r\n" % url)
            timer = threading.Timer(max(0.1, end - time.monotonic()),
                                    conn.shutdown, [socket.SHUT_RDWR])
            timer.daemon = True
            timer.start()
            reply = conn.recv(65536)
            timer.cancel()
            return reply


def event_fetch(end, path):
    os.chdir(os.path.dirname(path))
    client = Pysensu(os.path.join("sensu-api", "api.sock"))
    replies = 0
    while time.monotonic() < end:
        if client.api_call(b"/events/host%d" % replies, end):
            replies += 1
    return replies, "replies"


def sensu_api(end, path):
    server = socket.socket(socket.AF_UNIX)
    os.chdir(path)
    server.bind("api.sock")
    server.listen(64)
    server.settimeout(0.2)
    print("ready", flush=True)
    held = []
    answered = 0
    while time.monotonic() < end:
        try:
            conn = server.accept()[0]
        except TimeoutError:
            continue
        if answered < 200:
            conn.recv(4096)
            conn.sendall(b"HTTP/1.0 200 OK\r\n\r\n[]")
            conn.close()
            answered += 1
        else:
            held.append(conn)
    return answered, "answers"


def device_list(end, path):
    db = sqlite3.connect(os.path.join(path, "pimatic.db"))
    db.executescript("""
        PRAGMA cache_size=-64000;
        CREATE TABLE device(id INTEGER PRIMARY KEY, name TEXT, room TEXT);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)
        INSERT INTO device SELECT i, hex(randomblob(8)), 'room' || (i % 9) FROM n;
        CREATE INDEX device_name ON device(name);
    """)
    pages = 0
    while time.monotonic() < end:
        rows = db.execute("SELECT id, name, room FROM device "
                          "ORDER BY name COLLATE NOCASE ASC LIMIT 20").fetchall()
        assert len(rows) == 20
        pages += 1
    return pages, "pages"


def hash_file(end, path):
    db = sqlite3.connect(os.path.join(path, "hashes.db"), isolation_level=None)
    db.executescript("""
        PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-2000;
        CREATE TABLE hashes(digest BLOB, ino INTEGER, loff INTEGER);
        CREATE INDEX idx_digest ON hashes(digest);
        CREATE INDEX idx_ino ON hashes(ino);
        BEGIN;
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)
        INSERT INTO hashes SELECT randomblob(32), random(), i FROM n;
    """)
    stored = 0
    while time.monotonic() < end:
        db.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
                   "WHERE i < 400) INSERT INTO hashes SELECT randomblob(32), random(), "
                   "i FROM n")
        stored += 400
    db.execute("COMMIT")
    return stored, "hashes"


CASES = {
    "code-runner": code_runner,
    "number-kinds": number_kinds,
    "root-count": root_count,
    "archive-pick": archive_pick,
    "pg-driver": pg_driver,
    "code-survey": code_survey,
    "xml-models": xml_models,
    "modbus-client": modbus_client,
    "event-fetch": event_fetch,
    "sensu-api": sensu_api,
    "device-list": device_list,
    "hash-file": hash_file,
}


def main():
    case, seconds, folder = sys.argv[1], float(sys.argv[2]), sys.argv[3]
    end = time.monotonic() + seconds
    path = make_folder(folder, case)
    count, things = CASES[case](end, path)
    print("%s: %d %s" % (case, count, things), flush=True)


if __name__ == "__main__":
    main()
