"""Cases of set Z for CPython and SQLite: argv = name seconds folder [fixed]."""
import contextlib
import copy
import fcntl
import inspect
import io
import json
import os
import pty
import re
import signal
import sqlite3
import struct
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

NAME, SECONDS, FOLDER = sys.argv[1], float(sys.argv[2]), sys.argv[3]
FIXED = "fixed" in sys.argv[4:]
END = time.monotonic() + SECONDS


class TimeIsUp(Exception):
    pass


def on_alarm(signum, frame):
    raise TimeIsUp


def running():
    return time.monotonic() < END


def report(done, what):
    print(f"{NAME}: {done} {what} in {SECONDS:g} s" + (" (fixed)" if FIXED else ""), flush=True)


# ---- flowmod-unpack: OpenFlow message library, class attributes copied for each message


class UBInt:
    fmt = "!I"

    def __init__(self, value=0, enum_ref=None):
        self._value = value
        self.enum_ref = enum_ref

    def unpack(self, buff, offset):
        self._value = struct.unpack_from(self.fmt, buff, offset)[0]

    def get_size(self):
        return struct.calcsize(self.fmt)


class UBInt8(UBInt):
    fmt = "!B"


class UBInt16(UBInt):
    fmt = "!H"


class UBInt32(UBInt):
    fmt = "!I"


class UBInt64(UBInt):
    fmt = "!Q"


if FIXED and NAME == "flowmod-unpack":
    def _fast(self, memo):
        new = self.__class__.__new__(self.__class__)
        new.__dict__.update(self.__dict__)
        return new
    UBInt.__deepcopy__ = _fast


class GenericStruct:
    def __init__(self):
        for name, value in self.get_class_attributes():
            setattr(self, name, copy.deepcopy(value))

    @classmethod
    def get_class_attributes(cls):
        for name, value in cls.__dict__.items():
            if isinstance(value, (UBInt, GenericStruct)):
                yield name, value

    def unpack(self, buff, offset=0):
        for name, _ in self.get_class_attributes():
            field = self.__dict__[name]
            field.unpack(buff, offset)
            offset += field.get_size()

    def get_size(self):
        return sum(self.__dict__[n].get_size() for n, _ in self.get_class_attributes())


class Header(GenericStruct):
    version = UBInt8(1)
    message_type = UBInt8(14, enum_ref=dict)
    length = UBInt16(72)
    xid = UBInt32(1)


class Match(GenericStruct):
    wildcards = UBInt32(0)
    in_port = UBInt16(0)
    dl_src = UBInt64(0)
    dl_dst = UBInt64(0)
    dl_vlan = UBInt16(0)
    dl_type = UBInt16(0)
    nw_tos = UBInt8(0)
    nw_proto = UBInt8(0)
    nw_src = UBInt32(0)
    nw_dst = UBInt32(0)
    tp_src = UBInt16(0)
    tp_dst = UBInt16(0)


class FlowMod(GenericStruct):
    header = Header()
    match = Match()
    cookie = UBInt64(0)
    command = UBInt16(0)
    idle_timeout = UBInt16(0)
    hard_timeout = UBInt16(0)
    priority = UBInt16(0)
    buffer_id = UBInt32(0)
    out_port = UBInt16(0)
    flags = UBInt16(0)


def unpack_message(buff):
    message = FlowMod()
    message.unpack(buff)
    return message


def flowmod_unpack():
    packet = os.urandom(96)
    done = 0
    while running():
        unpack_message(packet)
        done += 1
    report(done, "messages")


# ---- gateway-boot: file lock of a configuration folder


@contextlib.contextmanager
def file_lock(path, timeout=None):
    with open(path, "a+") as handle:
        if FIXED:
            _posix_acquire_bounded(handle, 0.3)
        else:
            _posix_acquire_blocking(handle)
        try:
            yield handle
        finally:
            fcntl.flock(handle, fcntl.LOCK_UN)


def _posix_acquire_blocking(handle):
    fcntl.flock(handle, fcntl.LOCK_EX)


def _posix_acquire_bounded(handle, timeout):
    deadline = time.monotonic() + timeout
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise TimeoutError("lock is held")
            time.sleep(0.02)


def gateway_holder():
    with open(os.path.join(FOLDER, "config.lock"), "a+") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        print("ready", flush=True)
        time.sleep(SECONDS)


def gateway_boot():
    signal.signal(signal.SIGALRM, on_alarm)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    boots = 0
    started = time.monotonic()
    try:
        with file_lock(os.path.join(FOLDER, "config.lock")):
            boots += 1
    except TimeoutError:
        boots += 1
        print(f"went on without the lock after {time.monotonic() - started:.2f} s")
        signal.setitimer(signal.ITIMER_REAL, 0)
    except TimeIsUp:
        pass
    report(boots, "boots")


# ---- mlperf-log: training loop that logs events with the caller's place


class MLLogger:
    def __init__(self, path):
        self.out = open(path, "w")

    def get_caller(self):
        if FIXED:
            frame = inspect.currentframe().f_back.f_back
            return frame.f_code.co_filename, frame.f_lineno
        frame = inspect.stack()[2]
        return frame.filename, frame.lineno

    def event(self, key, value):
        filename, lineno = self.get_caller()
        self.out.write(json.dumps({"key": key, "value": value, "file": filename, "lineno": lineno}) + "\n")
        if self.out.tell() > 4_000_000:
            self.out.seek(0)
            self.out.truncate()


def train_step(weights, step):
    total = 0.0
    for i in range(len(weights)):
        weights[i] = weights[i] * 0.99 + (step % 7) * 0.01
        total += weights[i]
    return total


def train_epoch(logger, weights, done):
    for step in range(50):
        loss = train_step(weights, step)
        logger.event("train_loss", loss)
        done += 1
    return done


def run_training(logger, weights):
    done = 0
    while running():
        done = train_epoch(logger, weights, done)
    return done


def mlperf_log():
    done = run_training(MLLogger(os.path.join(FOLDER, "result.log")), [0.5] * 300)
    report(done, "steps")


# ---- pty-readline: reads lines of a child at a terminal


class PtyProcess:
    def __init__(self, pid, fd):
        self.pid = pid
        self.fd = fd
        self.fileobj = io.open(fd, "rb", buffering=-1 if FIXED else 0)

    @classmethod
    def spawn(cls, argv):
        pid, fd = pty.fork()
        if pid == 0:
            os.execvp(argv[0], argv)
        return cls(pid, fd)

    def readline(self):
        return self.fileobj.readline()


def pty_readline():
    script = "while (1) { foreach my $l ('a'..'z') { print $l x 1000, qq(\\n); } }"
    proc = PtyProcess.spawn(["perl", "-e", script])
    done = 0
    while running():
        if proc.readline():
            done += 1
    os.kill(proc.pid, signal.SIGKILL)
    os.waitpid(proc.pid, 0)
    report(done, "lines")


# ---- flight-exchange: nested exchanges which share one executor

executor = None


def do_writes(batches):
    for batch in batches:
        sum(batch)
    return len(batches)


def do_reads(depth, batches):
    if depth > 1:
        return do_exchange_batches(depth - 1, batches)
    return [list(b) for b in batches]


def do_writes_reads(depth, batches):
    written = executor.submit(do_writes, batches)
    read = executor.submit(do_reads, depth, batches)
    written.result()
    return read.result()


def do_exchange_batches(depth, batches):
    return executor.submit(do_writes_reads, depth, batches).result()


def flight_exchange():
    global executor
    executor = ThreadPoolExecutor(max_workers=32 if FIXED else 4, thread_name_prefix="flight")
    batches = [list(range(200))] * 4
    done = []

    def client():
        while running():
            do_exchange_batches(3, batches)
            done.append(1)

    threads = [threading.Thread(target=client, daemon=True) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(max(0.0, END - time.monotonic()))
    report(len(done), "exchanges")
    os._exit(0)


# ---- watched-folder: looks for new files to add


class DirScanner:
    def __init__(self, top):
        self.top = top
        self.ignored = {}
        self.suspected = {}

    def scan_folder(self, folder):
        found = 0
        for filename in os.listdir(folder):
            path = os.path.join(folder, filename)
            if os.path.isdir(path) or path in self.ignored or filename[0] == ".":
                if os.path.isdir(path):
                    found += self.scan_folder(path)
                continue
            stat_tuple = os.stat(path)
            if path in self.suspected and self.suspected[path] == (stat_tuple.st_mtime, stat_tuple.st_size):
                continue
            self.suspected[path] = (stat_tuple.st_mtime, stat_tuple.st_size)
            found += 1
        return found

    def scan_changed(self, folder):
        mtime = os.stat(folder).st_mtime_ns
        if self.suspected.get(folder) == mtime:
            return 0
        self.suspected[folder] = mtime
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    self.scan_changed(entry.path)
        return 0

    def run(self):
        scans = 0
        while running():
            (self.scan_changed if FIXED else self.scan_folder)(self.top)
            scans += 1
            time.sleep(0.01)
        return scans


def watched_files():
    top = os.path.join(FOLDER, "watched")
    for d in range(40):
        sub = os.path.join(top, f"show{d:02}")
        os.makedirs(sub, exist_ok=True)
        for f in range(100):
            open(os.path.join(sub, f"episode{f:03}.nzb.part"), "w").close()
    print("ready", flush=True)
    time.sleep(SECONDS)


def watched_folder():
    top = os.path.join(FOLDER, "watched")
    used = time.process_time()
    scans = DirScanner(top).run()
    report(scans, f"scans, {time.process_time() - used:.2f} s of processor")


# ---- chunk-store: key/value store in a folder


class PosixFS:
    def __init__(self, base, do_fsync):
        self.base = base
        self.do_fsync = do_fsync

    def store(self, name, value):
        path = os.path.join(self.base, name[:2], name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        tmp = path + ".tmp"
        with open(tmp, "wb") as f:
            f.write(value)
            f.flush()
            if self.do_fsync:
                os.fsync(f.fileno())
        os.replace(tmp, path)

    def delete(self, name):
        os.unlink(os.path.join(self.base, name[:2], name))


def chunk_store():
    store = PosixFS(os.path.join(FOLDER, "store"), not FIXED)
    value = os.urandom(48 * 1024)
    done = 0
    while running():
        store.store(f"{done % 64:02x}{done:030x}", value)
        if done >= 1500:
            store.delete(f"{(done - 1500) % 64:02x}{done - 1500:030x}")
        done += 1
    report(done, "objects")


# ---- infra-setup: runs a command and waits for it


def run(cmd):
    process = subprocess.Popen(cmd, shell=True, stdin=subprocess.PIPE, bufsize=-1,
                               stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        if FIXED:
            output, _ = process.communicate()
        else:
            process.wait()
            output = process.stdout.read()
        return len(output)
    except TimeIsUp:
        process.stdout.close()
        process.kill()
        raise


def infra_setup():
    plan = os.path.join(FOLDER, "plan.txt")
    with open(plan, "w") as f:
        for i in range(20000):
            f.write(f"resource {i}: will be created in the default region of the account\n")
    signal.signal(signal.SIGALRM, on_alarm)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    done = 0
    try:
        while running():
            run(f"cat {plan}")
            done += 1
    except TimeIsUp:
        pass
    signal.setitimer(signal.ITIMER_REAL, 0)
    report(done, "commands")


# ---- css-compress: minifies style sheets


def remove_comments(css):
    out, i = [], 0
    while True:
        start = css.find("/*", i)
        if start < 0:
            out.append(css[i:])
            return "".join(out)
        out.append(css[i:start])
        i = css.index("*/", start) + 2


def remove_unnecessary_whitespace(css):
    css = re.sub(r"\s+([!{};:>+\(\)\],])", r"\1", css)
    return re.sub(r"([!{}:;>+\(\[,])\s+", r"\1", css)


def normalize_rgb_colors_to_hex(css):
    def hexed(m):
        return "#" + "".join("%02x" % int(v) for v in m.group(1).split(","))
    return re.sub(r"rgb\s*\(\s*([0-9,\s]+)\s*\)", hexed, css)


def condense_zero_units(css):
    return re.sub(r"([\s:])(0)(px|em|%|in|cm|mm|pc|pt|ex)", r"\1\2", css)


def condense_hex_colors(css):
    return re.sub(r"#([0-9a-f])\1([0-9a-f])\2([0-9a-f])\3", r"#\1\2\3", css)


def wrap_css_lines(css, length):
    lines, start = [], 0
    for i, char in enumerate(css):
        if char == "}" and i - start >= length:
            lines.append(css[start:i + 1])
            start = i + 1
    lines.append(css[start:])
    return "\n".join(lines)


def cssmin(css):
    css = remove_comments(css)
    css = re.sub(r"\s+", " ", css)
    css = remove_unnecessary_whitespace(css)
    css = condense_zero_units(css)
    css = normalize_rgb_colors_to_hex(css)
    css = condense_hex_colors(css)
    return wrap_css_lines(css, 400)


def css_compress():
    rules = []
    for i in range(600):
        rules.append(f"/* rule {i} */\n.box-{i} , .card-{i} > a:hover {{\n  margin : 0px {i}px 0em ;\n"
                     f"  color : rgb( {i % 256}, 17, 34 ) ;\n  background : #aabbcc ;\n}}\n")
    sheet = "\n".join(rules)
    done = 0
    while running():
        cssmin(sheet)
        done += 1
    report(done, "sheets")


# ---- contacts-import: rows into SQLite


def insert_contact(db, i):
    db.execute("INSERT INTO contacts(name, mail, city) VALUES (?, ?, ?)",
               (f"person {i}", f"person{i}@example.org", f"city {i % 97}"))


def contacts_import():
    db = sqlite3.connect(os.path.join(FOLDER, "contacts.db"), isolation_level=None)
    db.execute("CREATE TABLE IF NOT EXISTS contacts(id INTEGER PRIMARY KEY, name TEXT, mail TEXT, city TEXT)")
    done = 0
    while running():
        if FIXED:
            db.execute("BEGIN")
        for _ in range(500):
            insert_contact(db, done)
            done += 1
            if not running():
                break
        if FIXED:
            db.execute("COMMIT")
    report(done, "rows")


# ---- song-list: page of a music library, newest first


def get_songs(db, plus):
    rows = db.execute("SELECT id, title, album, artist, created_at FROM media_file "
                      f"WHERE {plus}missing = 0 ORDER BY created_at DESC LIMIT 500").fetchall()
    return len(rows)


def song_list():
    db = sqlite3.connect(os.path.join(FOLDER, "navi.db"))
    db.executescript("PRAGMA synchronous=OFF; CREATE TABLE media_file(id INTEGER PRIMARY KEY, title TEXT, album TEXT,"
                     " artist TEXT, missing INTEGER, created_at INTEGER, path TEXT);")
    db.executemany("INSERT INTO media_file(title, album, artist, missing, created_at, path) VALUES (?,?,?,?,?,?)",
                   ((f"title {i}", f"album {i // 12}", f"artist {i // 100}", 0, (i * 7919) % 1000003,
                     f"/music/artist{i // 100}/album{i // 12}/{i}.flac") for i in range(40000)))
    db.executescript("CREATE INDEX media_file_missing ON media_file(missing);"
                     "CREATE INDEX media_file_created_at ON media_file(created_at);")
    db.commit()
    done = 0
    while running():
        get_songs(db, "+" if FIXED else "")
        done += 1
    report(done, "pages")


if __name__ == "__main__":
    globals()[NAME.replace("-", "_")]()
