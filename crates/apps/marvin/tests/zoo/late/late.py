"""The late half of the programs from public reports (tests/outside/49-put-aside.md), for CPython,
SQLite, make and git: each does steadily what its report describes, for some seconds:
late.py NAME SECONDS DIR."""

import ctypes
import hashlib
import os
import queue
import sqlite3
import struct
import subprocess
import sys
import threading
import time
import zlib

END = time.monotonic() + float(sys.argv[2])


def is_over():
    return time.monotonic() >= END


def tell(*words):
    print(*words, file=sys.stderr)


# R19: rows are inserted one by one.
def insert_rows():
    for name in ("orders.db", "orders.db-journal"):
        if os.path.exists(name):
            os.remove(name)
    orders = sqlite3.connect("orders.db", isolation_level=None)
    orders.execute("PRAGMA journal_mode=DELETE")
    orders.execute("PRAGMA synchronous=FULL")
    orders.execute("CREATE TABLE orders(id INTEGER PRIMARY KEY, customer TEXT, total REAL)")
    count = 0
    while not is_over():
        orders.execute("INSERT INTO orders VALUES(NULL, ?, ?)", (f"customer {count % 90}", 9.5))
        count += 1
    tell(count, "rows")


# R47: two programs share a database; the library has no sleep of less than a second.
def import_entries():
    """Holds the write lock for 30 ms of every 100."""
    if os.path.exists("ledger.db"):
        os.remove("ledger.db")
    ledger = sqlite3.connect("ledger.db", isolation_level=None)
    ledger.execute("CREATE TABLE entries(id INTEGER PRIMARY KEY, text TEXT)")
    print("ready", flush=True)
    while not is_over():
        ledger.execute("BEGIN IMMEDIATE")
        time.sleep(0.03)
        ledger.execute("ROLLBACK")
        time.sleep(0.07)


def add_entries():
    import _sqlite3

    # The calls of the C library that Python's module uses.
    library = ctypes.CDLL(_sqlite3.__file__)
    handler = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)
    refused = 0

    def busy(_, tries):
        nonlocal refused
        refused += 1
        time.sleep(1)
        return tries < 10

    ledger = ctypes.c_void_p()
    library.sqlite3_open(b"ledger.db", ctypes.byref(ledger))
    kept = handler(busy)
    library.sqlite3_busy_handler(ledger, kept, None)
    library.sqlite3_exec(ledger, b"PRAGMA synchronous=OFF", None, None, None)
    count = 0
    while not is_over():
        insert = b"INSERT INTO entries VALUES(NULL, 'x')"
        count += library.sqlite3_exec(ledger, insert, None, None, None) == 0
        time.sleep(0.02)
    tell(count, "entries,", refused, "times refused")


# R99: favourites are looked for among the tracks.
def list_favourites():
    music = sqlite3.connect(":memory:", isolation_level=None)
    music.execute("CREATE TABLE tracks(id INTEGER PRIMARY KEY, path TEXT, cached TEXT, url TEXT)")
    music.execute("CREATE TABLE favourites(p TEXT PRIMARY KEY)")
    music.execute("BEGIN")
    for n in range(47944):
        track = (f"/music/a{n % 700}/t{n}.flac", f"/cache/{n:08x}.opus", f"https://music/{n}")
        music.execute("INSERT INTO tracks VALUES(NULL, ?, ?, ?)", track)
        if n % 387 == 0:
            music.execute("INSERT INTO favourites VALUES(?)", (track[n % 3],))
    music.execute("COMMIT")
    count = 0
    while not is_over():
        music.execute(
            "SELECT t.id FROM favourites f JOIN tracks t"
            " ON (t.path = f.p OR t.cached = f.p OR t.url = f.p)"
        ).fetchall()
        count += 1
    tell(count, "lists")


# R94: a filter between two programs, with its own buffering.
def filter_words():
    if not os.path.exists("words"):
        with open("words", "w") as words:
            words.writelines(f"word{n}\n" for n in range(400000))
    source = subprocess.Popen(["cat", "words", "words", "words"], stdout=subprocess.PIPE, bufsize=0)
    counter = subprocess.Popen(
        ["wc", "-l"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, bufsize=0
    )
    pending = queue.Queue(1024)

    def feed_stdin():
        while True:
            chunk = pending.get()
            if not chunk:
                break
            os.write(counter.stdin.fileno(), chunk)

    feeder = threading.Thread(target=feed_stdin)
    feeder.start()
    count = 0
    while not is_over():
        chunk = os.read(source.stdout.fileno(), 1)
        if not chunk:
            break
        pending.put(chunk)
        count += 1
    pending.put(b"")
    feeder.join()
    counter.stdin.close()
    source.kill()
    source.wait()
    counter.wait()
    tell(count, "bytes")


# R8: what stands in for /dev/random of a kernel that has little entropy.
def give_entropy():
    if not os.path.exists("random"):
        os.mkfifo("random")
    device = os.open("random", os.O_RDWR)
    print("ready", flush=True)
    while not is_over():
        os.write(device, os.urandom(1))
        time.sleep(0.1)


# What make and git work on; written before.
def write_images():
    """R30: six images whose recipes install packages one at a time."""
    targets = " ".join(f"image{n}" for n in range(6))
    recipe = (
        "@while true; do mkdir pip.lock 2>/dev/null && break; done; sleep 1.5; rmdir pip.lock"
    )
    with open("images.mk", "w") as makefile:
        makefile.write(f"all: {targets}\n.PHONY: all {targets}\n{targets}:\n\t{recipe}\n")
    if os.path.isdir("pip.lock"):
        os.rmdir("pip.lock")
    print("ready", flush=True)


def write_flow():
    """R52: a flow of up-to-date results, whose rules name the tool by a variable."""
    os.makedirs("results", exist_ok=True)
    count = 4000
    with open("flow.mk", "w") as makefile:
        makefile.write("OPENROAD_EXE ?= $(shell command -v sh)\n")
        makefile.write("OPENROAD_CMD = $(OPENROAD_EXE) -exit -no_init\n")
        results = [f"results/stage_{n}.odb" for n in range(count)]
        makefile.write("all: " + " ".join(results) + "\n.PHONY: all\n")
        for name in results:
            makefile.write(f"{name}: $(firstword $(OPENROAD_CMD))\n\t$(OPENROAD_CMD) {name}\n")
            with open(name, "w"):
                pass
    print("ready", flush=True)


def run_git(*words, **more):
    words = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "gc.auto=0") + words
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, **more).stdout


def write_checkout():
    """R16: a working tree of many tracked files."""
    if not os.path.exists("checkout.written"):
        for folder in range(100):
            os.makedirs(f"checkout/d{folder}", exist_ok=True)
            for n in range(250):
                with open(f"checkout/d{folder}/f{n}", "w") as file:
                    file.write("x\n")
        run_git("init", "-q", cwd="checkout")
        run_git("add", ".", cwd="checkout")
        run_git("commit", "-qm", "all", "--allow-empty", cwd="checkout")
        # No entry may be as young as the index: git would read its content each time.
        time.sleep(1.2)
        run_git("update-index", "--refresh", "--really-refresh", cwd="checkout")
        run_git("read-tree", "HEAD", cwd="checkout")
        run_git("status", cwd="checkout")
        with open("checkout.written", "w"):
            pass
    print("ready", flush=True)


def pack_of(contents):
    """The bytes of a pack of these blobs and of its index, and the blobs' names."""
    body = bytearray(struct.pack(">4sII", b"PACK", 2, len(contents)))
    rows = []
    for content in contents:
        name = hashlib.sha1(b"blob %d\0" % len(content) + content).digest()
        part = bytes([0x30 | len(content)]) + zlib.compress(content)
        rows.append((name, zlib.crc32(part), len(body)))
        body += part
    trailer = hashlib.sha1(body).digest()
    rows.sort()
    index = bytearray(b"\xfftOc" + struct.pack(">I", 2))
    for first in range(256):
        index += struct.pack(">I", sum(row[0][0] <= first for row in rows))
    index += b"".join(row[0] for row in rows)
    index += b"".join(struct.pack(">I", row[1]) for row in rows)
    index += b"".join(struct.pack(">I", row[2]) for row in rows)
    index += trailer
    index += hashlib.sha1(index).digest()
    return bytes(body) + trailer, bytes(index), trailer.hex(), [row[0].hex() for row in rows]


def write_tarball_cache():
    """R96: a bare repository of 4000 packs, and names of objects to look up."""
    if not os.path.exists("cache.names"):
        run_git("init", "-q", "--bare", "cache.git")
        names = []
        for number in range(4000):
            pack, index, name, own = pack_of([b"%d/%d" % (number, n) for n in range(10)])
            for suffix, content in (("pack", pack), ("idx", index)):
                with open(f"cache.git/objects/pack/pack-{name}.{suffix}", "wb") as file:
                    file.write(content)
            names += own
        # Spread over the packs, so that no lookup helps the next.
        names.sort()
        with open("cache.names", "w") as file:
            file.write("\n".join(names * 2) + "\n")
    print("ready", flush=True)


PROGRAMS = {
    "insert-rows": insert_rows,
    "import-entries": import_entries,
    "add-entries": add_entries,
    "list-favourites": list_favourites,
    "filter-words": filter_words,
    "give-entropy": give_entropy,
    "write-images": write_images,
    "write-flow": write_flow,
    "write-checkout": write_checkout,
    "write-cache": write_tarball_cache,
}

os.chdir(sys.argv[3])
PROGRAMS[sys.argv[1]]()
