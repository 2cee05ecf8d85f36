"""Programs after public reports, one function a case: sixth.py NAME SECONDS FOLDER [fixed]."""
import concurrent.futures
import configparser
import contextvars
import gc
import hashlib
import http.client
import json
import logging
import mmap
import multiprocessing
import os
import queue
import random
import socket
import sqlite3
import struct
import subprocess
import sys
import threading
import time
from datetime import datetime

NAME = sys.argv[1]
SECONDS = float(sys.argv[2])
FOLDER = sys.argv[3]
FIXED = len(sys.argv) > 4 and sys.argv[4] == "fixed"
START = time.monotonic()


def going():
    return time.monotonic() - START < SECONDS


def done(count, unit):
    print("%s: %d %s in %.1f s" % (NAME, count, unit, time.monotonic() - START), flush=True)


# addon-search: the answers of a search engine become the objects of an API
class ESAddonSerializer:
    datetime_fields = ("created", "last_updated", "reviewed")

    def handle_date(self, value):
        if not value:
            return None
        value = value.split(".", 1)[0]
        if FIXED:
            return datetime.fromisoformat(value)
        return datetime.strptime(value, "%Y-%m-%dT%H:%M:%S")

    def fake_object(self, data):
        addon = {"id": data["id"], "slug": data["slug"], "name": data["name"]}
        for field in self.datetime_fields:
            addon[field] = self.handle_date(data[field])
        return addon

    def to_representation(self, addon):
        out = dict(addon)
        for field in self.datetime_fields:
            out[field] = addon[field].isoformat() + "Z"
        return out


def addon_search():
    hits = []
    for number in range(25):
        hits.append({
            "id": number, "slug": "addon-%d" % number, "name": "Addon %d" % number,
            "created": "2019-%02d-11T08:15:%02d.123456" % (number % 12 + 1, number),
            "last_updated": "2022-11-%02dT16:15:00" % (number + 1),
            "reviewed": "2022-10-%02dT09:00:%02d" % (number + 1, number),
        })
    body = json.dumps({"hits": hits})
    serializer = ESAddonSerializer()
    answers = 0
    while going():
        page = json.loads(body)["hits"]
        objects = [serializer.fake_object(data) for data in page]
        json.dumps({"results": [serializer.to_representation(one) for one in objects]})
        answers += 1
    done(answers, "answers")


# grant-grid: the interference at the points of a grid, by several processes
def compute_interference(point, grant):
    distance = 1.0 + abs(point - grant * 3.7)
    return 20.0 - 35.0 * (distance ** 0.5) / 10.0


def point_interference(args):
    interference_dict, point, grants = args
    values = {}
    for grant in range(grants):
        value = compute_interference(point, grant)
        if interference_dict is None:
            values[grant] = value
        else:
            interference_dict[(point, grant)] = value
    return point, values


def grant_grid():
    if FIXED:
        shared = None
    else:
        manager = multiprocessing.Manager()
        shared = manager.dict()
    points = 0
    with multiprocessing.Pool(2) as pool:
        while going():
            jobs = [(shared, point, 40) for point in range(20)]
            result = {}
            for point, values in pool.map(point_interference, jobs):
                for grant, value in values.items():
                    result[(point, grant)] = value
            if shared is not None:
                result = shared.copy()
            assert len(result) == 800
            points += 20
    done(points, "points")


# model-cache: models are moved between two places of memory
class ModelCache:
    def __init__(self):
        self.models = {}
        self.loaded = []
        for number in range(6):
            layers = [{"name": "layer.%d" % i, "shape": [i % 64, 3], "next": [i]}
                      for i in range(12000)]
            self.models["model-%d" % number] = layers

    def offload_unlocked_models(self, keep):
        freed = 0
        while len(self.loaded) > keep:
            self.loaded.pop(0)
            freed += 1
        if not FIXED or freed > 100:
            gc.collect()

    def make_cache_room(self):
        if not FIXED:
            gc.collect()

    def get_model(self, key):
        self.make_cache_room()
        self.offload_unlocked_models(1)
        self.loaded.append(key)
        return self.models[key]


def run_step(layers, step):
    total = 0
    for layer in layers[step:step + 400]:
        total += layer["shape"][0]
    return total


def model_cache():
    cache = ModelCache()
    steps = 0
    while going():
        layers = cache.get_model("model-%d" % (steps % 6))
        run_step(layers, steps % 5000)
        steps += 1
    done(steps, "steps")


# rag-search: the reads of a vector store through a pool of connections
class QueuePool:
    def __init__(self, path, size):
        self._pool = queue.Queue(size)
        self._timeout = 30
        for _ in range(size):
            self._pool.put(sqlite3.connect(path, check_same_thread=False))

    def _do_get(self):
        return self._pool.get(True, self._timeout)

    def _do_return_conn(self, connection):
        self._pool.put(connection)


class Session:
    def __init__(self, pool):
        self.pool = pool
        self.connection = None

    def execute(self, sql, values):
        if self.connection is None:
            self.connection = self.pool._do_get()
        return self.connection.execute(sql, values).fetchall()

    def rollback(self):
        if self.connection is not None:
            self.connection.rollback()
            self.pool._do_return_conn(self.connection)
            self.connection = None


SESSION = contextvars.ContextVar("session")


class PgvectorClient:
    def __init__(self, pool):
        self.pool = pool
        self.kept = []

    def session(self):
        session = SESSION.get(None)
        if session is None:
            session = Session(self.pool)
            self.kept.append(session)
            SESSION.set(session)
        return session

    def query(self, collection):
        session = self.session()
        rows = session.execute("select id, text from chunks where collection = ?", (collection,))
        if not rows:
            if FIXED:
                session.rollback()
            return []
        found = [{"id": row[0], "text": row[1]} for row in rows]
        session.rollback()
        return found


def rag_search():
    path = os.path.join(FOLDER, "vectors.db")
    with sqlite3.connect(path) as base:
        base.execute("create table if not exists chunks (id integer, collection text, text text)")
        base.executemany("insert into chunks values (?, ?, ?)",
                         [(i, "file-%d" % (i % 40), "chunk %d" % i) for i in range(400)])
    pool = QueuePool(path, 4)
    client = PgvectorClient(pool)
    answered = [0]

    def query_collection(requests):
        while going():
            number = next(requests)
            collection = "file-%d" % (number % 43)
            contextvars.copy_context().run(client.query, collection)
            answered[0] += 1
            time.sleep(0.002)

    workers = []
    for _ in range(8):
        requests = iter(range(random.randrange(40), 10 ** 9))
        worker = threading.Thread(target=query_collection, args=(requests,), daemon=True)
        worker.start()
        workers.append(worker)
    while going():
        time.sleep(0.1)
    done(answered[0], "queries")
    os._exit(0)


# zuul-merger: asks git about repositories
class Repo:
    def __init__(self, path):
        self.path = path
        self._common_dir = None

    def git(self, *args):
        proc = subprocess.Popen(("git",) + args, cwd=self.path, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)
        out, _ = proc.communicate()
        return out.decode().strip()

    @property
    def common_dir(self):
        if FIXED and self._common_dir is not None:
            return self._common_dir
        self._common_dir = os.path.join(self.path, self.git("rev-parse", "--git-common-dir"))
        return self._common_dir

    def _get_config_path(self, level):
        assert level == "repository"
        return os.path.join(self.common_dir, "config")

    def config_reader(self):
        config = configparser.ConfigParser(strict=False)
        config.read(self._get_config_path("repository"))
        return config


def zuul_merger():
    repos = []
    for number in range(3):
        path = os.path.join(FOLDER, "project-%d" % number)
        subprocess.run(["git", "init", "-q", path], check=True)
        repos.append(Repo(path))
    changes = 0
    while going():
        repo = repos[changes % 3]
        for option in ("bare", "filemode"):
            repo.config_reader().get("core", option)
        changes += 1
    done(changes, "changes")


# wheel-resolve: which files of an index fit this interpreter
class Tag:
    __slots__ = ("_interpreter", "_abi", "_platform", "_hash")

    def __init__(self, interpreter, abi, platform):
        self._interpreter = interpreter.lower()
        self._abi = abi.lower()
        self._platform = platform.lower()
        self._hash = hash((self._interpreter, self._abi, self._platform))

    @property
    def interpreter(self):
        return self._interpreter

    @property
    def abi(self):
        return self._abi

    @property
    def platform(self):
        return self._platform

    def __eq__(self, other):
        return (self.platform == other.platform and self.abi == other.abi
                and self.interpreter == other.interpreter)

    if FIXED:
        def __hash__(self):
            return self._hash
    else:
        def __hash__(self):
            return hash((self._interpreter, self._abi, self._platform))


class Wheel:
    def __init__(self, filename):
        name, self.version, pyversions, abis, plats = filename[:-4].split("-")
        self.file_tags = {Tag(x, y, z) for x in pyversions.split(".")
                          for y in abis.split(".") for z in plats.split(".")}

    def supported(self, tags):
        return not self.file_tags.isdisjoint(tags)


def wheel_resolve():
    tags = [Tag("cp3%d" % minor, abi, "manylinux_2_%d_x86_64" % glibc)
            for minor in range(11, 2, -1) for abi in ("abi3", "none", "cp311")
            for glibc in range(17, 0, -1)]
    names = ["pkg-1.%d-cp%d-cp%dm-win_amd64.whl" % (i, 27 + i % 9, 27 + i % 9) for i in range(60)]
    links = 0
    while going():
        for name in names:
            if Wheel(name).supported(tags):
                raise SystemExit("found")
            links += 1
    done(links, "links")


# core-monitor: takes eight bytes at an offset of a kernel file, many times
class CoreReader:
    def __init__(self, path):
        self.path = path
        self.buffering = 0 if FIXED else 131072

    def read_register(self, offset):
        with open(self.path, "rb", buffering=self.buffering) as f:
            f.seek(offset)
            return struct.unpack("<Q", f.read(8))[0]


def core_monitor():
    size = 160 << 20
    area = mmap.mmap(-1, size)
    for at in range(0, size, mmap.PAGESIZE):
        area[at] = 1
    import ctypes
    address = ctypes.addressof(ctypes.c_char.from_buffer(area))
    reader = CoreReader("/proc/self/pagemap")
    first = address // mmap.PAGESIZE
    updates = 0
    while going():
        for core in range(8):
            reader.read_register((first + core * 2048 + updates % 2000) * 8)
        updates += 1
    done(updates, "updates")


# export-progress: exports rows under a progress bar
class ProgressBar:
    def __init__(self, length, file):
        self.length = length
        self.file = file
        self.pos = 0
        self.width = 36
        self._last_line = None

    def format_bar(self):
        filled = int(self.width * self.pos / self.length)
        return "#" * filled + "-" * (self.width - filled)

    def format_progress_line(self):
        return "\r  [%s]  %3d%%" % (self.format_bar(), 100 * self.pos // self.length)

    def render_progress(self):
        line = self.format_progress_line()
        if FIXED and line == self._last_line:
            return
        self._last_line = line
        self.file.write(line)
        self.file.flush()

    def update(self, steps):
        self.pos += steps
        self.render_progress()


def export_progress():
    rows = 0
    path = os.path.join(FOLDER, "job.out")
    with open(path, "w", encoding="utf-8") as out:
        while going():
            bar = ProgressBar(200000, out)
            for number in range(200000):
                json.dumps([number, "row", number * 2])
                bar.update(1)
                if number % 500 == 0 and not going():
                    break
            rows += number + 1
            out.seek(0)
            out.truncate()
    done(rows, "rows")


# riak-node: the peer of riak-put
def riak_node():
    server = socket.create_server(("127.0.0.1", 0))
    with open(os.path.join(FOLDER, "riak.port"), "w", encoding="ascii") as f:
        f.write(str(server.getsockname()[1]))
    print("ready", flush=True)

    def serve(connection):
        stream = connection.makefile("rb")
        while True:
            length = 0
            line = stream.readline()
            if not line:
                return
            while line not in (b"\r\n", b""):
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
                line = stream.readline()
            stream.read(length)
            connection.sendall(b"HTTP/1.1 204 No Content\r\nServer: node\r\n\r\n")

    server.settimeout(1)
    while going():
        try:
            connection, _ = server.accept()
        except TimeoutError:
            continue
        threading.Thread(target=serve, args=(connection,), daemon=True).start()
    os._exit(0)


# dnsbl-node: the peer of dnsbl-check
def dnsbl_node():
    server = socket.create_server(("127.0.0.1", 0), backlog=64)
    with open(os.path.join(FOLDER, "dnsbl.port"), "w", encoding="ascii") as f:
        f.write(str(server.getsockname()[1]))
    print("ready", flush=True)

    def serve(connection):
        with connection:
            connection.recv(4096)
            time.sleep(0.06)
            connection.sendall(b"HTTP/1.0 404 Not Found\r\nContent-Length: 0\r\n\r\n")

    server.settimeout(1)
    while going():
        try:
            connection, _ = server.accept()
        except TimeoutError:
            continue
        threading.Thread(target=serve, args=(connection,), daemon=True).start()
    os._exit(0)


# riak-put: stores values in a store that speaks HTTP
class RiakHttpConnection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.create_connection((self.host, self.port))
        if FIXED:
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def riak_put():
    with open(os.path.join(FOLDER, "riak.port"), encoding="ascii") as f:
        port = int(f.read())
    connection = RiakHttpConnection("127.0.0.1", port)
    value = json.dumps({"user": "x" * 700}).encode()
    puts = 0
    while going():
        connection.putrequest("PUT", "/buckets/users/keys/%d" % puts)
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", str(len(value)))
        connection.endheaders()
        connection.send(value)
        response = connection.getresponse()
        response.read()
        puts += 1
    done(puts, "puts")


# mq-broker: the peer of job-agent
def mq_broker():
    server = socket.create_server(("127.0.0.1", 0), backlog=64)
    with open(os.path.join(FOLDER, "mq.port"), "w", encoding="ascii") as f:
        f.write(str(server.getsockname()[1]))
    print("ready", flush=True)

    def serve(connection):
        stream = connection.makefile("rb")
        for _ in stream:
            time.sleep(0.003)
            connection.sendall(b"RECEIPT\n")

    server.settimeout(1)
    while going():
        try:
            connection, _ = server.accept()
        except TimeoutError:
            continue
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=serve, args=(connection,), daemon=True).start()
    os._exit(0)


# job-agent: threads that look after jobs and tell a message queue of it
class MessageQueueHandler(logging.Handler):
    def __init__(self, port):
        self.port = port
        self.local = threading.local()
        super().__init__()

    if FIXED:
        def createLock(self):
            self.lock = None

    def producer(self):
        if not hasattr(self.local, "stream"):
            sock = socket.create_connection(("127.0.0.1", self.port))
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.local.sock = sock
            self.local.stream = sock.makefile("rb")
        return self.local

    def emit(self, record):
        message = json.dumps({"level": record.levelname, "message": self.format(record)})
        producer = self.producer()
        producer.sock.sendall(message.encode() + b"\n")
        producer.stream.readline()


def job_agent():
    with open(os.path.join(FOLDER, "mq.port"), encoding="ascii") as f:
        port = int(f.read())
    logger = logging.getLogger("JobAgent")
    logger.setLevel(logging.INFO)
    logger.addHandler(MessageQueueHandler(port))
    jobs = [0] * 10

    def check_job(agent):
        while going():
            hashlib.sha256(b"job" * 400).hexdigest()
            logger.info("job %d of agent %d is running", jobs[agent], agent)
            jobs[agent] += 1

    threads = [threading.Thread(target=check_job, args=(i,)) for i in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done(sum(jobs), "jobs")


# dump-crack: tries the words of a list against the hashes of a dump
def sha256_generic_passwd(password, salt):
    return hashlib.sha256(password + salt).hexdigest()


def dictionary_attack():
    hashes = {sha256_generic_passwd(b"secret-%d" % i, b"salt%d" % i): i for i in range(40)}
    salts = [b"salt%d" % i for i in range(40)]
    tried = 0
    found = 0
    while going():
        for number in range(2000):
            word = b"word%d" % (tried + number)
            for salt in salts[:4]:
                if sha256_generic_passwd(word, salt) in hashes:
                    found += 1
        tried += 2000
    done(tried, "words")


# history-store: the store of sessions that history-prune works on
def history_store():
    base = sqlite3.connect(os.path.join(FOLDER, "state.db"), isolation_level=None)
    base.execute("pragma journal_mode = wal")
    base.executescript("""
        create table messages (id integer primary key, role text, body text);
        create table sessions (id integer primary key, title text,
            first_msg_id integer references messages(id),
            last_msg_id integer references messages(id));
        create table branches (id integer primary key, name text,
            system_msg_id integer references messages(id));
    """)
    base.execute("begin")
    base.executemany("insert into messages values (?, 'user', ?)",
                     ((i, "message %d" % i) for i in range(300000)))
    base.executemany("insert into sessions values (?, ?, ?, ?)",
                     ((i, "session %d" % i, i, i + 1) for i in range(25000)))
    base.executemany("insert into branches values (?, ?, ?)",
                     ((i, "branch %d" % i, i) for i in range(25000)))
    base.commit()
    base.close()
    print("ready", flush=True)
    while going():
        time.sleep(0.2)


# history-prune: deletes old messages from a store of sessions
def prune_messages(base, wanted):
    base.execute("begin immediate")
    for message in wanted:
        base.execute("delete from messages where id = ?", (message,))
    base.commit()


def history_prune():
    base = sqlite3.connect(os.path.join(FOLDER, "state.db"), isolation_level=None)
    base.execute("pragma synchronous = normal")
    base.execute("pragma foreign_keys = on")
    if FIXED:
        base.execute("create index s1 on sessions(first_msg_id)")
        base.execute("create index s2 on sessions(last_msg_id)")
        base.execute("create index b1 on branches(system_msg_id)")
    message = 30000
    while going() and message < 299000:
        prune_messages(base, range(message, message + 20))
        message += 20
    done(message - 30000, "messages")


CASES = {
    "addon-search": addon_search, "grant-grid": grant_grid, "model-cache": model_cache,
    "rag-search": rag_search, "zuul-merger": zuul_merger, "wheel-resolve": wheel_resolve,
    "core-monitor": core_monitor, "export-progress": export_progress,
    "riak-node": riak_node, "riak-put": riak_put, "mq-broker": mq_broker,
    "dnsbl-node": dnsbl_node, "job-agent": job_agent, "dump-crack": dictionary_attack,
    "history-store": history_store, "history-prune": history_prune,
}

if __name__ == "__main__":
    CASES[NAME]()
