#!/usr/bin/env python3
"""Programs written anew from public reports: NAME SECONDS SCRATCH [fixed]."""
import asyncio
import collections
import functools
import grp
import hashlib
import importlib.metadata
import lzma
import multiprocessing
import os
import pwd
import random
import shutil
import socket
import sqlite3
import stat
import struct
import sys
import threading
import time
import zipfile


def folder(scratch, name):
    path = os.path.join(scratch, name)
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    return path


def report(what, count, seconds):
    print("%s: %d in %.1f s" % (what, count, seconds), flush=True)


# --- AD1: keyboard settings behind a dotted dictionary -------------------------------------------
class Dotty:
    def __init__(self, dictionary, separator="."):
        self._data = dictionary
        self.separator = separator

    def __str__(self):
        return str(self._data)

    def __hash__(self):
        return hash(str(self))

    def __eq__(self, other):
        return self._data == other._data

    def _find_data(self, item):
        node = self._data
        for part in item.split(self.separator):
            node = node[part]
        return node

    @functools.lru_cache(maxsize=32)
    def __getitem__(self, item):
        return self._find_data(item)


class PlainDotty(Dotty):
    __hash__ = Dotty.__hash__

    def __getitem__(self, item):
        return self._find_data(item)


def keyboard_info(number):
    layout = [{"matrix": [row, column], "x": column, "y": row, "label": "K%d%d" % (row, column)}
              for row in range(5) for column in range(15)]
    return {"keyboard_name": "board %d" % number, "split": {"enabled": number % 3 == 0},
            "matrix_pins": {"rows": ["B%d" % i for i in range(5)]},
            "features": {"rgb": True, "nkro": number % 2 == 0},
            "layouts": {"LAYOUT": {"layout": layout}}}


def filter_keymaps(boards):
    found = 0
    for board in boards:
        if board["split.enabled"] and board["features.nkro"]:
            found += len(board["matrix_pins.rows"])
    return found


def keymap_find(seconds, scratch, fixed):
    kind = PlainDotty if fixed else Dotty
    boards = [kind(keyboard_info(number)) for number in range(60)]
    end, rounds = time.time() + seconds, 0
    while time.time() < end:
        filter_keymaps(boards)
        rounds += 1
    report("searches", rounds, seconds)


# --- AD2: arrays in a zip file -------------------------------------------------------------------
class ZipStore:
    def __init__(self, path, keep):
        self.path = path
        self.kept = zipfile.ZipFile(path) if keep else None

    def __getitem__(self, key):
        if self.kept:
            return self.kept.read(key)
        with zipfile.ZipFile(self.path) as archive:
            return archive.read(key)


class Array:
    def __init__(self, store, chunks):
        self.store, self.chunks = store, chunks

    def _chunk_getitem(self, index):
        return sum(self.store["data/%d" % index])

    def total(self, first, count):
        return sum(self._chunk_getitem(i % self.chunks) for i in range(first, first + count))


def array_store(seconds, scratch, fixed):
    path = os.path.join(folder(scratch, "array-store"), "array.zip")
    chunks = 6000
    with zipfile.ZipFile(path, "w") as archive:
        for index in range(chunks):
            archive.writestr("data/%d" % index, b"%08d" % index * 4)
    array = Array(ZipStore(path, fixed), chunks)
    end, read = time.time() + seconds, 0
    while time.time() < end:
        array.total(read, 20)
        read += 20
    report("chunks", read, seconds)


# --- AD3: lines of a file with asyncio -----------------------------------------------------------
class AsyncFile:
    def __init__(self, loop, plain):
        self._loop, self._file = loop, plain

    async def readline(self):
        return await self._loop.run_in_executor(None, self._file.readline)

    def __aiter__(self):
        return self

    async def __anext__(self):
        line = await self.readline()
        if not line:
            raise StopAsyncIteration
        return line


async def import_lines(path, end, fixed):
    loop, lines, total = asyncio.get_running_loop(), 0, 0
    while time.time() < end:
        with open(path) as plain:
            if fixed:
                for line in await loop.run_in_executor(None, plain.readlines):
                    total += int(line)
                    lines += 1
                continue
            async for line in AsyncFile(loop, plain):
                total += int(line)
                lines += 1
                if lines % 500 == 0 and time.time() > end:
                    break
    return lines


def line_import(seconds, scratch, fixed):
    path = os.path.join(folder(scratch, "line-import"), "numbers.txt")
    with open(path, "w") as out:
        out.writelines("%d\n" % (i * 7919 % 100003) for i in range(100000))
    report("lines", asyncio.run(import_lines(path, time.time() + seconds, fixed)), seconds)


# --- AD4: papers fetched by several threads ------------------------------------------------------
def serve_paper(connection):
    with connection:
        while connection.recv(4096):
            time.sleep(0.2)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nmeta")


def paper_archive(seconds, scratch, fixed):
    where = os.path.join(folder(scratch, "paper-fetch"), "archive.sock")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(where)
    listener.listen(64)
    print("paper archive is ready", flush=True)
    listener.settimeout(1)
    end = time.time() + seconds
    while time.time() < end:
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            continue
        connection.settimeout(None)
        threading.Thread(target=serve_paper, args=(connection,), daemon=True).start()


class _SerializedRateLimiter:
    def __init__(self, interval, apart):
        self._lock = threading.Lock()
        self._next, self._interval, self._apart = 0.0, interval, apart

    def _wait_turn(self):
        now = time.monotonic()
        if now < self._next:
            time.sleep(self._next - now)
        self._next = time.monotonic() + self._interval

    def run(self, func, *args):
        if self._apart:
            with self._lock:
                self._wait_turn()
            return func(*args)
        with self._lock:
            self._wait_turn()
            return func(*args)


def fetch_metadata(where, paper):
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(where)
        sock.sendall(b"GET /abs/%d HTTP/1.1\r\nHost: archive\r\n\r\n" % paper)
        return sock.recv(4096)


def add_paper(limiter, where, number, end, done):
    while time.time() < end:
        limiter.run(fetch_metadata, where, number)
        done.append(number)


def paper_fetch(seconds, scratch, fixed):
    where = os.path.join(scratch, "paper-fetch", "archive.sock")
    limiter, done = _SerializedRateLimiter(0.005, fixed), []
    threads = [threading.Thread(target=add_paper,
                                args=(limiter, where, number, time.time() + seconds, done))
               for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    report("papers", len(done), seconds)


# --- AD5: listings of an FTP server --------------------------------------------------------------
class AbstractedFS:
    def get_user_by_uid(self, uid):
        try:
            return pwd.getpwuid(uid).pw_name
        except KeyError:
            return uid

    def get_group_by_gid(self, gid):
        try:
            return grp.getgrgid(gid).gr_name
        except KeyError:
            return gid

    def format_list(self, basedir, listing):
        for basename in listing:
            info = os.lstat(os.path.join(basedir, basename))
            yield "%s %3s %-8s %-8s %8s %s %s\r\n" % (
                stat.filemode(info.st_mode), info.st_nlink, self.get_user_by_uid(info.st_uid),
                self.get_group_by_gid(info.st_gid), info.st_size, int(info.st_mtime), basename)


class MemoizedFS(AbstractedFS):
    get_user_by_uid = functools.lru_cache(AbstractedFS.get_user_by_uid)
    get_group_by_gid = functools.lru_cache(AbstractedFS.get_group_by_gid)


def ftp_list(seconds, scratch, fixed):
    home = folder(scratch, "ftp-list")
    for number in range(120):
        open(os.path.join(home, "file%03d" % number), "w").close()
    files = MemoizedFS() if fixed else AbstractedFS()
    end, lists = time.time() + seconds, 0
    while time.time() < end:
        "".join(files.format_list(home, os.listdir(home)))
        lists += 1
    report("listings", lists, seconds)


# --- AD6: an evolution with a pool of processes --------------------------------------------------
def objective(individual):
    x = individual
    return sum((x * i) % 7 for i in range(300))


class HalGA:
    def __init__(self, n_processes, keep):
        self.n_processes = n_processes
        self.process_pool = multiprocessing.Pool(n_processes) if keep else None

    def _compute_fitness(self, population):
        if self.process_pool:
            return self.process_pool.map(objective, population)
        with multiprocessing.Pool(processes=self.n_processes) as pool:
            return pool.map(objective, population)

    def step(self, population):
        fitness = self._compute_fitness(population)
        best = max(range(len(fitness)), key=fitness.__getitem__)
        return [population[best] + random.randrange(5) for _ in population]


def evolve_graph(seconds, scratch, fixed):
    history = [float(i) for i in range(1000000)]
    algorithm, population = HalGA(4, fixed), list(range(10))
    end, generations = time.time() + seconds, 0
    while time.time() < end:
        population = algorithm.step(population)
        history[generations] = population[0]
        generations += 1
    if algorithm.process_pool:
        algorithm.process_pool.terminate()
    report("generations", generations, seconds)


# --- AD7: frames of a connection -----------------------------------------------------------------
class FrameBuffer:
    def __init__(self, in_place):
        self._data, self._in_place = bytearray(), in_place

    def add_data(self, data):
        self._data += data

    def __iter__(self):
        return self

    def __next__(self):
        if len(self._data) < 9:
            raise StopIteration
        length = int.from_bytes(self._data[:3], "big")
        kind, flags, stream = struct.unpack(">BBL", self._data[3:9])
        if self._in_place:
            del self._data[:9 + length]
        else:
            self._data = self._data[9 + length:]
        return kind, flags, stream


def frame_feed(seconds, scratch, fixed):
    settings = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
    buffer, frames, end = FrameBuffer(fixed), 0, time.time() + seconds
    while time.time() < end:
        buffer.add_data(settings * 60000)
        for _ in buffer:
            frames += 1
            if frames % 2000 == 0 and time.time() > end:
                break
    report("frames", frames, seconds)


# --- AD8: lexers for file names ------------------------------------------------------------------
def iter_entry_points(group_name):
    return importlib.metadata.entry_points(group=group_name)


iter_entry_points_once = functools.lru_cache(iter_entry_points)


def find_plugin_lexers(once):
    points = (iter_entry_points_once if once else iter_entry_points)("pygments.lexers")
    return [point.name for point in points]


def get_lexer_for_filename(name, once):
    known = {".py": "python", ".c": "c", ".java": "java"}
    matches = [known[end] for end in known if name.endswith(end)]
    return matches + find_plugin_lexers(once)


def source_pages(seconds, scratch, fixed):
    site = folder(scratch, "source-pages")
    for number in range(120):
        place = os.path.join(site, "package_%d-1.%d.dist-info" % (number, number))
        os.mkdir(place)
        with open(os.path.join(place, "METADATA"), "w") as out:
            out.write("Metadata-Version: 2.1\nName: package-%d\nVersion: 1.%d\n%s\nText\n"
                      % (number, number, "Requires-Dist: other\n" * 20))
        with open(os.path.join(place, "entry_points.txt"), "w") as out:
            out.write("[console_scripts]\ntool%d = package:main\n" % number)
    sys.path.insert(0, site)
    end, names = time.time() + seconds, 0
    while time.time() < end:
        get_lexer_for_filename("part%d.c" % names, fixed)
        names += 1
    report("names", names, seconds)


# --- AD9: quotes of a foreign library's thread ---------------------------------------------------
def feed_thread(put, end):
    while time.time() < end:
        time.sleep(0.1)
        put(random.random())


async def forward_quotes(seconds, fixed):
    end, quotes, rounds, sent = time.time() + seconds, collections.deque(), 0, 0
    loop, queue = asyncio.get_running_loop(), asyncio.Queue()

    def put(quote):
        if fixed:
            loop.call_soon_threadsafe(queue.put_nowait, quote)
        else:
            quotes.append(quote)

    threading.Thread(target=feed_thread, args=(put, end), daemon=True).start()
    while time.time() < end:
        rounds += 1
        if fixed:
            await queue.get()
            sent += 1
            continue
        if quotes:
            quotes.popleft()
            sent += 1
        await asyncio.sleep(0)
    return rounds, sent


def quote_bridge(seconds, scratch, fixed):
    rounds, sent = asyncio.run(forward_quotes(seconds, fixed))
    report("rounds", rounds, seconds)
    report("quotes", sent, seconds)


# --- AD10: a small HTTP server with lasting connections ------------------------------------------
def ask_page(where, end):
    answers = 0
    try:
        with open(where) as place:
            sock = socket.create_connection(("127.0.0.1", int(place.read())))
    except (OSError, ValueError):
        time.sleep(0.05)
        return
    with sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while time.time() < end:
            try:
                sock.sendall(b"GET /prepare HTTP/1.1\r\nHost: localhost\r\n\r\n")
                answer = b""
                while not answer.endswith(b"\r\n\r\n" + PAGE):
                    part = sock.recv(4096)
                    if not part:
                        return
                    answer += part
            except OSError:
                return
            answers += 1


PAGE = b"{\"prepared\": true, \"items\": [1, 2, 3]}\n"


def page_readers(seconds, scratch, fixed):
    where, end = os.path.join(folder(scratch, "page-api"), "port"), time.time() + seconds
    print("page readers are ready", flush=True)

    def reader():
        while time.time() < end:
            ask_page(where, end)

    threads = [threading.Thread(target=reader) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def send_response(connection, body, together):
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    head %= len(body)
    if together:
        connection.send(head + body)
        return
    connection.send(head)
    connection.send(body)


def handle_connection(connection, end, counts, together):
    with connection:
        pending = b""
        while time.time() < end:
            part = connection.recv(4096)
            if not part:
                return
            pending += part
            while b"\r\n\r\n" in pending:
                _, pending = pending.split(b"\r\n\r\n", 1)
                send_response(connection, PAGE, together)
                counts[0] += 1


def page_api(seconds, scratch, fixed):
    home = os.path.join(scratch, "page-api")
    os.makedirs(home, exist_ok=True)
    listener = socket.create_server(("127.0.0.1", 0))
    with open(os.path.join(home, "port"), "w") as place:
        place.write("%d" % listener.getsockname()[1])
    listener.settimeout(0.5)
    end, counts = time.time() + seconds, [0]
    while time.time() < end:
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            continue
        connection.settimeout(None)
        threading.Thread(target=handle_connection, args=(connection, end, counts, fixed),
                         daemon=True).start()
    report("answers", counts[0], seconds)


# --- AD11: an archive of files -------------------------------------------------------------------
def compress_file(data):
    return len(lzma.compress(data, format=lzma.FORMAT_XZ, preset=6))


def archive_pack(seconds, scratch, fixed):
    draw = random.Random(5)
    words = ["word%d" % draw.randrange(4000) for _ in range(40000)]
    data = " ".join(words).encode()
    end, packed = time.time() + seconds, 0
    while time.time() < end:
        compress_file(data)
        packed += len(data)
    report("bytes packed", packed, seconds)


# --- AD29: terms looked up in a dictionary's database --------------------------------------------
def search_term(db, text):
    return db.execute("SELECT term, definition FROM dictionary WHERE term LIKE '%s%%' LIMIT 20"
                      % text).fetchall()


def dictionary_search(seconds, scratch, fixed):
    db = sqlite3.connect(os.path.join(folder(scratch, "dictionary-search"), "words.db"))
    db.execute("PRAGMA synchronous=OFF")
    if fixed:
        db.execute("PRAGMA case_sensitive_like=ON")
    db.execute("CREATE TABLE dictionary (term TEXT, definition TEXT)")
    rows = (("w%06dx" % (i * 7919 % 150000), "meaning of number %d" % i) for i in range(150000))
    db.executemany("INSERT INTO dictionary VALUES (?, ?)", rows)
    db.execute("CREATE INDEX term_index ON dictionary (term)")
    db.commit()
    end, searches = time.time() + seconds, 0
    while time.time() < end:
        search_term(db, "w%05d" % (searches * 31 % 15000))
        searches += 1
    report("searches", searches, seconds)


# --- AD30: files noted in a library's database ---------------------------------------------------
def library_refresh(seconds, scratch, fixed):
    path = os.path.join(folder(scratch, "library-upload"), "library.db")
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("CREATE TABLE file_group (path TEXT PRIMARY KEY, digest TEXT)")
    db.close()
    db = sqlite3.connect(path, isolation_level=None)
    if not fixed:
        db.execute("BEGIN IMMEDIATE")
    ready, end, number = False, time.time() + seconds, 0
    while time.time() < end:
        digest = hashlib.sha256(b"%d" % number).hexdigest()
        db.execute("INSERT INTO file_group VALUES (?, ?)", ("old/%d" % number, digest))
        number += 1
        if not ready:
            print("library refresh is under way", flush=True)
            ready = True
        time.sleep(0.02)


def upsert_file(db, name):
    db.execute("BEGIN IMMEDIATE")
    db.execute("INSERT OR REPLACE INTO file_group VALUES (?, ?)", (name, "new"))
    db.execute("COMMIT")


def library_upload(seconds, scratch, fixed):
    path = os.path.join(scratch, "library-upload", "library.db")
    db = sqlite3.connect(path, isolation_level=None, timeout=2.0)
    end, stored, refused = time.time() + seconds, 0, 0
    while time.time() < end:
        try:
            upsert_file(db, "upload/%d" % (stored % 1000))
            stored += 1
        except sqlite3.OperationalError:
            refused += 1
    report("stored", stored, seconds)
    report("refused", refused, seconds)


CASES = {
    "keymap-find": keymap_find, "array-store": array_store, "line-import": line_import,
    "paper-archive": paper_archive, "paper-fetch": paper_fetch, "ftp-list": ftp_list,
    "evolve-graph": evolve_graph, "frame-feed": frame_feed, "source-pages": source_pages,
    "quote-bridge": quote_bridge, "page-readers": page_readers, "page-api": page_api,
    "archive-pack": archive_pack, "library-refresh": library_refresh,
    "library-upload": library_upload, "dictionary-search": dictionary_search,
}

if __name__ == "__main__":
    CASES[sys.argv[1]](float(sys.argv[2]), sys.argv[3], "fixed" in sys.argv[4:])
