"""The third late part of the programs from public reports (tests/outside/49-third-aside-scripts.md),
for CPython, SQLite, PostgreSQL, make, git, the shell and its tools: each does steadily what its
report describes, for some seconds: third.py NAME SECONDS DIR. REPAIRED=1 in the environment asks
for the repaired form, to compare with."""

import collections
import copy
import ctypes
import datetime
import fcntl
import multiprocessing
import os
import random
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import threading
import time

END = time.monotonic() + float(sys.argv[2])
DIR = sys.argv[3]
IS_REPAIRED = "REPAIRED" in os.environ


def is_over():
    return time.monotonic() >= END


def tell(*words):
    print(*words, file=sys.stderr)


def path_of(name):
    return os.path.join(DIR, name)


def write_file(name, text):
    path = path_of(name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)


def connect_local(name):
    """Connects to a program that may not have started yet."""
    while not is_over():
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(path_of(name))
            return connection
        except OSError:
            connection.close()
            time.sleep(0.02)
    sys.exit("there is no one to connect to")


def listen_local(name):
    if os.path.exists(path_of(name)):
        os.unlink(path_of(name))
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path_of(name))
    listener.listen(16)
    return listener


# U1: one thread answers requests, another one counts.
def answer_requests(listener):
    connection, _ = listener.accept()
    answers = 0
    while not is_over():
        request = connection.recv(100)
        if not request:
            break
        connection.sendall(request.upper())
        answers += 1
    tell(answers, "answers")


def count_down(number):
    while number > 0:
        number -= 1


def serve_beside_count():
    listener = listen_local("echo.sock")
    thread = threading.Thread(target=answer_requests, args=(listener,), daemon=True)
    thread.start()
    while not is_over():
        if IS_REPAIRED:
            time.sleep(0.05)
        else:
            count_down(20000)
    thread.join(1)


def ask_echo():
    print("ready", flush=True)
    connection = connect_local("echo.sock")
    try:
        while not is_over():
            connection.sendall(b"x" * 20)
            if not connection.recv(100):
                break
            time.sleep(0.001)
    except OSError:
        pass


# U2: a pool runs many experiments with one large model.
class Model:
    def __init__(self):
        chance = random.Random(1)
        self.lookups = {
            f"lookup_{n}": [chance.random() for _ in range(80)]
            for n in range(3000)
        }
        self.outcomes = ["prey", "predators"]

    def run(self, experiment):
        table = self.lookups[f"lookup_{experiment % 3000}"]
        return {name: sum(x * y for x, y in zip(table, table[1:])) for name in self.outcomes}


class ExperimentRunner:
    def __init__(self, model):
        self.model = model

    def run_experiment(self, experiment):
        return experiment, self.model.run(experiment)


WORKER_RUNNER = None


def initialize_worker(runner):
    global WORKER_RUNNER
    WORKER_RUNNER = runner


def run_in_worker(experiment):
    return WORKER_RUNNER.run_experiment(experiment)


def run_experiments():
    runner = ExperimentRunner(Model())
    with multiprocessing.Pool(2, initialize_worker, (runner,)) as pool:
        done = 0
        while not is_over():
            run = run_in_worker if IS_REPAIRED else runner.run_experiment
            done += len(pool.map(run, range(done, done + 16), chunksize=1))
    tell(done, "experiments")


# U3: a driver fetches rows of a database through a socket.
class Driver:
    def __init__(self, connection):
        self.socket = connection
        self.stream = connection.makefile("rb", 1 << 17)

    def read_bytes(self, size):
        if IS_REPAIRED:
            return self.stream.read(size)
        parts = b""
        while len(parts) < size:
            part = self.socket.recv(size - len(parts))
            if not part:
                raise EOFError
            parts += part
        return parts

    def read_message(self):
        kind = self.read_bytes(1)
        size = struct.unpack("!I", self.read_bytes(4))[0]
        return kind, self.read_bytes(size - 4)

    def fetch_row(self):
        kind, content = self.read_message()
        return content.split(b"|")


def fetch_rows():
    driver = Driver(connect_local("vertica.sock"))
    rows = 0
    while not is_over():
        driver.fetch_row()
        rows += 1
    tell(rows, "rows")


def serve_rows():
    rows = b"".join(
        b"D" + struct.pack("!I", 4 + len(text)) + text
        for text in (b"%06d|name-%d" % (n, n % 97) for n in range(5000))
    )
    listener = listen_local("vertica.sock")
    print("ready", flush=True)
    listener.settimeout(0.5)
    while not is_over():
        try:
            connection, _ = listener.accept()
            connection.settimeout(5)
            while not is_over():
                connection.sendall(rows)
        except OSError:
            pass


# U4: a recorder writes the samples of an eye tracker to a log.
class EyeTracker:
    def __init__(self, name):
        self.logfile = open(path_of(name), "w")
        self.samples = 0

    def next_sample(self):
        self.samples += 1
        n = self.samples
        return {"timestamp": n, "x": n * 7 % 1920, "y": n * 11 % 1080, "size": 3.5 + n % 10 / 10}

    def log_sample(self, sample):
        self.logfile.write("\t".join(str(value) for value in sample.values()) + "\n")
        if not IS_REPAIRED:
            self.logfile.flush()
            os.fsync(self.logfile.fileno())


def record_samples():
    tracker = EyeTracker("samples.tsv")
    while not is_over():
        tracker.log_sample(tracker.next_sample())
    tell(tracker.samples, "samples")


# U5: a state machine keeps its old states.
class Transfer:
    def __init__(self, number):
        self.payment = number
        self.route = [f"0x{number:08x}", f"0x{number * 3:08x}"]
        self.lock = {"amount": number * 10, "expiration": number + 100, "secrethash": f"{number:064d}"}


class StateManager:
    def __init__(self):
        self.current_state = {
            "block": 0,
            "transfers": {n: Transfer(n) for n in range(400)},
            "channels": {n: {"balance": n, "nonce": 0} for n in range(200)},
        }

    def transition(self, state, block):
        state["block"] = block
        channel = state["channels"][block % 200]
        channel["nonce"] += 1
        return state

    def dispatch(self, block):
        if IS_REPAIRED:
            import pickle
            next_state = pickle.loads(pickle.dumps(self.current_state, -1))
        else:
            next_state = copy.deepcopy(self.current_state)
        self.current_state = self.transition(next_state, block)


def dispatch_state():
    manager = StateManager()
    block = 0
    while not is_over():
        block += 1
        manager.dispatch(block)
    tell(block, "blocks")


# U6: a table of statistics gets the types of its cells.
DATE_FORMATS = ["%Y-%m-%d", "%m/%d/%Y", "%d %b %Y"]


def try_parse(value):
    if value.endswith("%"):
        try:
            return float(value[:-1]) / 100
        except ValueError:
            return value
    try:
        return int(value)
    except ValueError:
        pass
    if IS_REPAIRED and value.count("-") != 2 and value.count("/") != 2:
        formats = []
    else:
        formats = DATE_FORMATS
    for form in formats:
        try:
            return datetime.datetime.strptime(value, form)
        except ValueError:
            pass
    try:
        return float(value)
    except ValueError:
        return value


def postprocess_table():
    chance = random.Random(3)
    row = ["2019-07-04", "12", "%.3f" % chance.random(), "Mike Trout", "33.1 %", "6.2", "LAA", "0.291"]
    cells = 0
    while not is_over():
        for _ in range(50):
            cells += len([try_parse(value) for value in row])
    tell(cells, "cells")


# U7: a type checker works through the groups of modules of a large program.
class SCC:
    def __init__(self, number):
        self.number = number
        self.deps = set()
        self.mod_ids = {f"module{number}"}


def process_graph(sccs):
    not_ready = {scc: None for scc in sccs} if IS_REPAIRED else list(sccs)
    order = list(sccs)
    random.Random(5).shuffle(order)
    processed = 0
    for scc in order:
        if IS_REPAIRED:
            del not_ready[scc]
        else:
            not_ready.remove(scc)
        for name in sorted(scc.mod_ids):
            processed += len(name)
        if is_over():
            break
    return processed


def load_graph():
    sccs = [SCC(n) for n in range(12000)]
    rounds = 0
    while not is_over():
        process_graph(sccs)
        rounds += 1
    tell(rounds, "rounds")


# U8: a compiler's cache is guarded by a file that another process has locked.
def try_acquire_lock(lock_file):
    try:
        fcntl.flock(lock_file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except OSError:
        return False


def file_lock(path, timeout_seconds):
    lock_file = open(path, "a")
    start = time.time()
    while True:
        try:
            if try_acquire_lock(lock_file):
                return lock_file
            if IS_REPAIRED:
                time.sleep(0.1)
        except OSError:
            if time.time() - start > timeout_seconds:
                raise TimeoutError(path)
            time.sleep(0.1)
        if is_over():
            return None


def jit_compile():
    kernels = 0
    while not is_over():
        lock_file = file_lock(path_of("cache.lock"), 60)
        if lock_file:
            kernels += 1
            lock_file.close()
            time.sleep(0.02)
    tell(kernels, "kernels")


def hold_cache():
    lock_file = open(path_of("cache.lock"), "a")
    fcntl.flock(lock_file, fcntl.LOCK_EX)
    print("ready", flush=True)
    while not is_over():
        time.sleep(1.7)
        fcntl.flock(lock_file, fcntl.LOCK_UN)
        time.sleep(0.01)
        fcntl.flock(lock_file, fcntl.LOCK_EX)


# U9: a server of a model keeps the prefixes of many requests.
class TreeNode:
    def __init__(self, parent, tokens):
        self.parent = parent
        self.tokens = tokens
        self.slots = [[token, 0] for token in range(24)]
        self.children = {}


class Scheduler:
    def __init__(self):
        self.root = TreeNode(None, [])
        self.nodes = collections.deque()

    def insert(self, request):
        node = self.root
        for position in range(4):
            node = TreeNode(node, [request, position])
            node.parent.children[(request, position)] = node
        self.nodes.append(request)

    def evict(self):
        request = self.nodes.popleft()
        node = self.root.children.pop((request, 0))
        while node.children:
            node = node.children.popitem()[1]
            node.parent = None

    def process_batch(self, first):
        for request in range(first, first + 200):
            self.insert(request)
            if len(self.nodes) > 12000:
                self.evict()


def schedule_batches():
    import gc
    collections_time = [0.0, 0.0]

    def watch(phase, _):
        if phase == "start":
            collections_time[1] = time.monotonic()
        else:
            collections_time[0] += time.monotonic() - collections_time[1]

    if "WATCH" in os.environ:
        gc.callbacks.append(watch)
    if IS_REPAIRED:
        gc.disable()
    scheduler = Scheduler()
    requests = 0
    while not is_over():
        scheduler.process_batch(requests)
        requests += 200
    tell(requests, "requests", collections_time[0])
    os._exit(0)


# U28: two runs of a program that fetches data share one database.
def open_store():
    connection = sqlite3.connect(path_of("timeseries.sqlite"), timeout=120, isolation_level=None)
    connection.execute("CREATE TABLE IF NOT EXISTS tsindex(network TEXT, station TEXT, start INT)")
    return connection


def retrieve_other():
    connection = open_store()
    connection.execute("BEGIN")
    connection.executemany(
        "INSERT INTO tsindex VALUES (?, ?, ?)", [("IU", f"S{n}", n) for n in range(500)])
    connection.execute("COMMIT")
    print("ready", flush=True)
    while not is_over():
        connection.execute("BEGIN")
        connection.execute("DELETE FROM tsindex WHERE start = ?", (random.randrange(500),))
        if IS_REPAIRED:
            connection.execute("COMMIT")
        # The download.
        time.sleep(0.9)
        if not IS_REPAIRED:
            connection.execute("COMMIT")
        time.sleep(0.12)


def retrieve_data():
    connection = open_store()
    stations = 0
    while not is_over():
        connection.execute("DELETE FROM tsindex WHERE station = ?", (f"S{stations}",))
        connection.execute("INSERT INTO tsindex VALUES ('IU', ?, ?)", (f"S{stations}", stations))
        stations += 1
    tell(stations, "stations")


# U29: an index of sequences is opened again and again.
def build_index():
    name = path_of("reads.idx")
    if os.path.exists(name):
        os.unlink(name)
    connection = sqlite3.connect(name)
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("CREATE TABLE meta_data (key TEXT, value TEXT)")
    connection.execute("INSERT INTO meta_data VALUES ('count', '-1')")
    connection.execute(
        "CREATE TABLE offset_data (key TEXT, file_number INTEGER, offset INTEGER, length INTEGER)")
    connection.executemany(
        "INSERT INTO offset_data VALUES (?, 0, ?, 150)",
        ((f"SRR62634.{n}/1", n * 300) for n in range(700000)))
    connection.execute("CREATE UNIQUE INDEX key_index ON offset_data(key)")
    connection.commit()
    connection.close()
    print("ready", flush=True)


class IndexedSequences:
    def __init__(self, name):
        self.connection = sqlite3.connect(name)
        self.load_existing()

    def load_existing(self):
        self.connection.execute("SELECT value FROM meta_data WHERE key = 'count'").fetchone()
        query = "MAX(_ROWID_)" if IS_REPAIRED else "COUNT(key)"
        self.length = self.connection.execute(f"SELECT {query} FROM offset_data").fetchone()[0]

    def get_raw(self, key):
        return self.connection.execute(
            "SELECT offset, length FROM offset_data WHERE key = ?", (key,)).fetchone()


def open_index():
    opened = 0
    while not is_over():
        index = IndexedSequences(path_of("reads.idx"))
        for n in range(20):
            index.get_raw(f"SRR62634.{(opened * 31 + n) % 700000}/1")
        index.connection.close()
        opened += 1
    tell(opened, "times opened")


# PostgreSQL: the server refuses to be an administrator's, so it runs as another user of a namespace
# of its own. A fourth argument says where its programs are.
def stop_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


SOME_USER = ["unshare", "--user", "--map-user=1000", "--map-group=1000"]


def make_database(name):
    folder = path_of(name)
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run(
        [*SOME_USER, f"{sys.argv[4]}/initdb", "-D", folder, "-U", "postgres", "-A", "trust", "-N"],
        check=True, stdout=subprocess.DEVNULL)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    write_file(name + ".port", str(port))


def start_database(name):
    return subprocess.Popen(
        [*SOME_USER, f"{sys.argv[4]}/postgres", "-D", path_of(name), "-p", str(port_of(name)),
         "-h", "127.0.0.1", "-k", "", "-F"],
        preexec_fn=stop_with_parent, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def port_of(name):
    with open(path_of(name + ".port")) as file:
        return int(file.read())


def read_exactly(connection, size):
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise OSError("the server has closed the connection")
        data += part
    return data


def read_answer(connection):
    """Reads up to the server being ready for the next query."""
    while True:
        kind, size = struct.unpack("!cI", read_exactly(connection, 5))
        content = read_exactly(connection, size - 4)
        if kind == b"E":
            raise RuntimeError(content)
        if kind == b"Z":
            return


def connect_database(name):
    while not is_over():
        connection = socket.socket()
        try:
            connection.connect(("127.0.0.1", port_of(name)))
            text = b"user\0postgres\0database\0postgres\0\0"
            connection.sendall(struct.pack("!ii", len(text) + 8, 196608) + text)
            read_answer(connection)
            return connection
        except (OSError, RuntimeError):
            connection.close()
            time.sleep(0.05)
    sys.exit("there is no database to connect to")


def query(connection, text):
    text = text.encode() + b"\0"
    connection.sendall(b"Q" + struct.pack("!i", len(text) + 4) + text)
    read_answer(connection)


# U30: projects are deleted from a package index, and what belongs to them.
def prepare_projects():
    make_database("warehouse")
    server = start_database("warehouse")
    connection = connect_database("warehouse")
    query(connection, "CREATE TABLE projects(id int PRIMARY KEY, name text)")
    query(connection, "CREATE TABLE releases(id int PRIMARY KEY, version text, project_id int"
                      " REFERENCES projects(id) ON DELETE CASCADE)")
    query(connection, "INSERT INTO projects SELECT n, 'project-' || n FROM generate_series(1, 20000) n")
    query(connection, "INSERT INTO releases SELECT n, '1.' || n, n % 20000 + 1"
                      " FROM generate_series(1, 300000) n")
    if IS_REPAIRED:
        query(connection, "CREATE INDEX ON releases(project_id)")
    connection.close()
    server.send_signal(signal.SIGINT)
    server.wait()
    print("ready", flush=True)
    connection = connect_database("warehouse")
    deleted = 0
    try:
        while not is_over():
            deleted += 1
            query(connection, f"DELETE FROM projects WHERE id = {deleted}")
    except (OSError, RuntimeError):
        pass
    tell(deleted, "deleted")


def serve_projects():
    server = start_database("warehouse")
    try:
        server.wait(max(0, END - time.monotonic()))
    except subprocess.TimeoutExpired:
        server.send_signal(signal.SIGINT)
        server.wait()


# U31: a page is shown while a migration is on its way.
def start_migration():
    make_database("prescribing")
    start_database("prescribing")
    report = connect_database("prescribing")
    query(report, "CREATE TABLE frontend_pct(code text PRIMARY KEY, name text)")
    query(report, "INSERT INTO frontend_pct SELECT 'P' || n, 'PCT ' || n FROM generate_series(1, 300) n")
    turn = threading.Semaphore(0)

    def migrate():
        connection = connect_database("prescribing")
        while not is_over():
            turn.acquire()
            query(connection, "ALTER TABLE frontend_pct ADD CONSTRAINT named CHECK (name <> '')")
            query(connection, "ALTER TABLE frontend_pct DROP CONSTRAINT named")

    threading.Thread(target=migrate, daemon=True).start()
    is_told = False
    while not is_over():
        query(report, "BEGIN")
        query(report, "SELECT count(*) FROM frontend_pct")
        if not IS_REPAIRED:
            turn.release()
        time.sleep(0.05)
        if not is_told:
            print("ready", flush=True)
            is_told = True
        time.sleep(0.9)
        query(report, "COMMIT")
        time.sleep(0.01)


def view_page():
    connection = connect_database("prescribing")
    pages = 0
    while not is_over():
        query(connection, f"SELECT code, name FROM frontend_pct WHERE code = 'P{pages % 300}'")
        pages += 1
        time.sleep(0.002)
    tell(pages, "pages")


# U21: a container's start gives its files to the user.
def write_volume():
    for n in range(60):
        write_file(f"npmplus/data/{n % 20}/certificate-{n}.pem", "x" * 50)
    write_file("npmplus/start.sh", """#!/usr/bin/env bash
last=$((${EPOCHREALTIME/[.,]/} + $1 * 1000000))
PUID="$(id -u)"; PGID="$(id -g)"
while ((${EPOCHREALTIME/[.,]/} < last)); do
    find "$2/npmplus/data" -not \\( -uid 4242 -and -gid 4242 \\) -exec chown "$PUID:$PGID" {} \\;
done
""")
    print("ready", flush=True)


# U22: the makefile of a project with several variables from commands.
def write_makefile():
    targets = ["fmt", "vet", "lint", "tidy", "schema", "charts", "docs", "licenses"]
    assign = ":=" if IS_REPAIRED else "?="
    lines = ["export", ""]
    for name, command in [
        ("BUILD_DATE", "date -u '+%Y-%m-%d'"),
        ("GIT_COMMIT", "git rev-parse --short HEAD"),
        ("VERSION", "git describe --tags --always"),
        ("LOCALARCH", "uname -m"),
        ("CHART_VERSION", "sed -n 's/^version //p' VERSION"),
    ]:
        lines.append(f"{name} {assign} $(shell {command})")
    lines += ["LDFLAGS ?= -X $(VERSION) -X $(GIT_COMMIT) -X $(BUILD_DATE)", "",
              ".PHONY: verify " + " ".join(targets), "verify: " + " ".join(targets)]
    for target in targets:
        lines += [f"{target}:", "\t@: checking " + target, "\t@[ -n \"$$LDFLAGS\" ]"]
    write_file("agentregistry/Makefile", "\n".join(lines) + "\n")
    write_file("agentregistry/VERSION", "version 1.4.0\n")
    folder = path_of("agentregistry")
    shutil.rmtree(folder + "/.git", ignore_errors=True)
    git = ["git", "-C", folder, "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "first"], check=True)
    subprocess.run([*git, "tag", "v1.4.0"], check=True)
    write_file("agentregistry/ci.sh", """#!/usr/bin/env bash
last=$((${EPOCHREALTIME/[.,]/} + $1 * 1000000))
while ((${EPOCHREALTIME/[.,]/} < last)); do
    make -s -C "$2/agentregistry" verify
done
""")
    print("ready", flush=True)


# U23: a desktop's menu says in a file that the choice is made.
def show_menu():
    write_file("omarchy/menu-select.sh", """#!/usr/bin/env bash
done_file="$1/omarchy/done"
rm -f "$done_file"
touch "$1/omarchy/request"
while [[ ! -e $done_file ]]; do
    sleep 0.05
done
""")
    request = path_of("omarchy/request")
    if os.path.exists(request):
        os.unlink(request)
    print("ready", flush=True)
    while not is_over():
        if os.path.exists(request):
            os.unlink(request)
            time.sleep(4)
            write_file("omarchy/done", "")
        time.sleep(0.02)


# U24: the output of an update of a container is shown with a prefix.
def write_update_log():
    write_file("proxmox/apt.log", "".join(
        f"Get:{n} http://deb.debian.org/debian bookworm/main amd64 package-{n} 1.{n}-2 [{n * 37} kB]\n"
        for n in range(1, 200)))
    if IS_REPAIRED:
        body = "awk -v prefix=\"$1\" '{ print prefix \" \" $0; fflush() }'"
    else:
        body = "while IFS= read -r line; do printf '%s %s\\n' \"$1\" \"$line\"; done"
    write_file("proxmox/update.sh", f"""#!/usr/bin/env bash
last=$((${{EPOCHREALTIME/[.,]/}} + $1 * 1000000))
pipe_prefix() {{
    {body}
}}
update_container() {{
    while ((${{EPOCHREALTIME/[.,]/}} < last)); do
        cat "$2/proxmox/apt.log"
    done
}}
update_container "$1" "$2" | pipe_prefix "[CT 101]" > "$2/proxmox/update.log"
wc -l < "$2/proxmox/update.log" >&2
""")
    print("ready", flush=True)


# U25: a prompt tells the state of a large repository.
def write_repository():
    folder = path_of("work")
    shutil.rmtree(folder, ignore_errors=True)
    for n in range(4000):
        write_file(f"work/src/part{n % 60}/unit{n}/main.c", f"int unit{n};\n")
    git = ["git", "-C", folder, "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "first"], check=True)
    # The time stamps of the index are then older than those of the next look.
    time.sleep(1.1)
    subprocess.run([*git, "status", "--porcelain"], check=True, stdout=subprocess.DEVNULL)
    option = " -uno" if IS_REPAIRED else ""
    write_file("prompt.sh", f"""#!/usr/bin/env bash
last=$((${{EPOCHREALTIME/[.,]/}} + $1 * 1000000))
cd "$2/work"
prompts=0
while ((${{EPOCHREALTIME/[.,]/}} < last)); do
    state="$(git status --porcelain --branch{option})"
    prompts=$((prompts + 1))
done
echo "$prompts prompts" >&2
""")
    print("ready", flush=True)


# U26: the files of a system that belong to no package.
def write_lists():
    subprocess.run(
        ["localedef", "-i", "en_US", "-f", "UTF-8", path_of("en_US.UTF-8")],
        check=False, stderr=subprocess.DEVNULL)
    chance = random.Random(7)
    files = [
        f"/usr/share/{chance.choice(['doc', 'man', 'locale', 'icons'])}/package-{chance.randrange(900)}"
        f"/{chance.choice(['README', 'Changes', 'copying'])}-{n}.gz" for n in range(60000)]
    chance.shuffle(files)
    write_file("lostfiles/files.txt", "\n".join(files) + "\n")
    write_file("lostfiles/owned.txt", "\n".join(files[3000:]) + "\n")
    write_file("lostfiles/lostfiles.sh", """#!/usr/bin/env bash
last=$((${EPOCHREALTIME/[.,]/} + $1 * 1000000))
rounds=0
while ((${EPOCHREALTIME/[.,]/} < last)); do
    comm -13 <(sort -u "$2/lostfiles/owned.txt") <(sort -u "$2/lostfiles/files.txt") > "$2/lostfiles/lost.txt"
    rounds=$((rounds + 1))
done
echo "$rounds rounds, $(wc -l < "$2/lostfiles/lost.txt") lost" >&2
""")
    print("ready", flush=True)


# U27: a backup of a system is written in one stream.
def write_system():
    """The null device stands for the place of the backup, so that no disk is worn."""
    chance = random.Random(9)
    for n in range(20):
        name = path_of(f"rear/system/lib{n}.so")
        os.makedirs(os.path.dirname(name), exist_ok=True)
        with open(name, "wb") as file:
            file.write(chance.randbytes(1 << 20))
    option = " bs=1M" if IS_REPAIRED else ""
    write_file("rear/make_backup.sh", f"""#!/usr/bin/env bash
last=$((${{EPOCHREALTIME/[.,]/}} + $1 * 1000000))
backuparchive=/dev/null
SPLIT_COMMAND="dd of=$backuparchive{option}"
while ((${{EPOCHREALTIME/[.,]/}} < last)); do
    tar --create --file - -C "$2/rear" system
done | $SPLIT_COMMAND 2> "$2/rear/dd.log"
cat "$2/rear/dd.log" >&2
""")
    print("ready", flush=True)


# U32: the versions of a program are listed from several pages.
def serve_versions():
    """Stands for the servers of the pages, which take 0.2 s each."""
    def serve(connection):
        with connection:
            request = b""
            while True:
                part = connection.recv(4096)
                if not part:
                    return
                request += part
                while b"\r\n\r\n" in request:
                    request = request.split(b"\r\n\r\n", 1)[1]
                    time.sleep(0.2)
                    body = b'{"releases": ["6.0.1", "6.0.2", "7.0.0"]}\n'
                    connection.sendall(
                        b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    write_file("dotnet/urls.txt", "".join(
        f"http://127.0.0.1:{port}/release-metadata/{n}.0/releases.json\n" for n in range(1, 5)))
    option = " -n1 -P4" if IS_REPAIRED else ""
    write_file("dotnet/list-all.sh", f"""#!/usr/bin/env bash
last=$((${{EPOCHREALTIME/[.,]/}} + $1 * 1000000))
while ((${{EPOCHREALTIME/[.,]/}} < last)); do
    xargs{option} curl -s < "$2/dotnet/urls.txt" | grep -o '[0-9.]\\{{5,\\}}' | sort -V > "$2/dotnet/versions.txt"
done
""")
    print("ready", flush=True)
    listener.settimeout(0.5)
    while not is_over():
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            continue
        connection.settimeout(5)
        threading.Thread(target=serve, args=(connection,), daemon=True).start()


PROGRAMS = {
    function.__name__.replace("_", "-"): function
    for function in [
        serve_beside_count, ask_echo, run_experiments, fetch_rows, serve_rows, record_samples,
        dispatch_state, postprocess_table, load_graph, jit_compile, hold_cache, schedule_batches,
        retrieve_other, retrieve_data, build_index, open_index, prepare_projects, serve_projects,
        start_migration, view_page, write_volume, write_makefile, show_menu, write_update_log,
        write_repository, write_lists, write_system, serve_versions,
    ]
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]]()
