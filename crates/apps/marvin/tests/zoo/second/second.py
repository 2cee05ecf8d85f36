"""The second late half of the programs from public reports (tests/outside/49-second-aside.md), for
CPython, SQLite, PostgreSQL, make, git, the shell and its tools: each does steadily what its report
describes, for some seconds: second.py NAME SECONDS DIR."""

import asyncio
import ctypes
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
# A fourth argument asks for the repaired form, to compare with.
IS_REPAIRED = len(sys.argv) > 4


def is_over():
    return time.monotonic() >= END


def tell(*words):
    print(*words, file=sys.stderr)


# S3: threads compress blocks by an extension that keeps the GIL.
def compress_block(library, block):
    size = ctypes.c_ulong(len(block) + 1000)
    result = ctypes.create_string_buffer(size.value)
    library.compress2(result, ctypes.byref(size), block, ctypes.c_ulong(len(block)), 6)
    return size.value


def compress_blocks():
    library = (ctypes.CDLL if IS_REPAIRED else ctypes.PyDLL)("libz.so.1")
    block = b"".join(b"%d %d\n" % (n, n * 7919 % 10007) for n in range(60000))
    counts = [0] * 4

    def compress(place):
        while not is_over():
            compress_block(library, block)
            counts[place] += 1

    threads = [threading.Thread(target=compress, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tell(counts, "blocks")


# S4: the output of a fuzzer goes to a pipe that is read when the fuzzer has ended.
FUZZER = "import os, signal; signal.alarm(2); os.write(1, b'x' * 300000)"


def fuzz_once():
    fuzzer = subprocess.Popen(
        [sys.executable, "-S", "-c", FUZZER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    fuzzer.stdin.close()
    if IS_REPAIRED:
        return len(fuzzer.stdout.read()), fuzzer.wait()
    fuzzer.wait()
    size = len(fuzzer.stdout.read())
    fuzzer.stdout.close()
    return size


def fuzz():
    count = 0
    while not is_over():
        fuzz_once()
        count += 1
    tell(count, "samples")


# S37: each worker gets an object of more than 64 KB when it starts.
class Worker(multiprocessing.Process):
    def __init__(self, container):
        super().__init__()
        self.container = container

    def run(self):
        # What the worker does then, beside the others.
        time.sleep(0.1)


def start_workers():
    multiprocessing.set_start_method("spawn")
    container = random.randbytes(1000 if IS_REPAIRED else 90_000)
    count = 0
    waited = 0
    while not is_over():
        workers = [Worker(container) for _ in range(4)]
        for worker in workers:
            begin = time.monotonic()
            worker.start()
            waited += time.monotonic() - begin
        for worker in workers:
            worker.join()
        count += len(workers)
    tell(count, "workers, of which the starts took", round(waited, 2), "s")


# S48: a handler sleeps, and the event loop of all others with it.
async def handle_command():
    if IS_REPAIRED:
        await asyncio.sleep(0.25)
    else:
        time.sleep(0.25)


async def answer_chats():
    answers = 0

    async def answer():
        nonlocal answers
        while not is_over():
            await handle_command()
            answers += 1

    await asyncio.gather(*(answer() for _ in range(8)))
    tell(answers, "answers")


# S26: a sound is put together from the parts that a decoder gives.
def load_sound(parts):
    data = bytearray() if IS_REPAIRED else b""
    for part in parts:
        data += part
        if is_over():
            break
    return len(data)


def load_sounds():
    parts = [bytes(4096)] * 5000
    count = 0
    while not is_over():
        load_sound(parts)
        count += 1
    tell(count, "sounds")


# S34: a search of messages asks the full-text index again for each message.
def search_messages():
    mail = sqlite3.connect(":memory:")
    mail.execute("CREATE TABLE messages(id INTEGER PRIMARY KEY, deleted INTEGER, subject TEXT)")
    mail.execute("CREATE VIRTUAL TABLE messages_fulltext USING fts4(fulltext)")
    words = [f"word{n}" for n in range(500)]
    chooser = random.Random(7)
    for number in range(2000):
        mail.execute("INSERT INTO messages VALUES(?, 0, ?)", (number, f"subject {number}"))
        text = " ".join(chooser.choices(words, k=80))
        mail.execute("INSERT INTO messages_fulltext(docid, fulltext) VALUES(?, ?)", (number, text))
    exists = (
        "SELECT id FROM messages AS m WHERE deleted = 0 AND EXISTS (SELECT docid"
        " FROM messages_fulltext WHERE +docid = m.id AND fulltext MATCH ?)"
    )
    within = (
        "SELECT id FROM messages AS m WHERE deleted = 0 AND id IN (SELECT docid"
        " FROM messages_fulltext WHERE fulltext MATCH ?)"
    )
    count = found = 0
    while not is_over():
        asked = within if IS_REPAIRED else exists
        found += len(mail.execute(asked, (words[count % 500],)).fetchall())
        count += 1
    tell(count, "searches", found, "messages")


# S41: a file of 1500 sources, none of which has a rule.
def write_chip():
    os.makedirs("chip", exist_ok=True)
    names = [f"src/main/scala/unit{n % 30}/Part{n}.scala" for n in range(1500)]
    for name in names:
        os.makedirs(os.path.dirname(f"chip/{name}"), exist_ok=True)
        with open(f"chip/{name}", "w"):
            pass
    with open("chip/Makefile", "w") as file:
        file.write("design.fir: " + " ".join(names) + "\n\techo generate\n")
    print("ready", flush=True)


# S33: the state of a chain, of which a snapshot is made.
def write_snapshot():
    os.makedirs("snapshot", exist_ok=True)
    chooser = random.Random(7)
    for number in range(30):
        with open(f"snapshot/{number:06}.ldb", "w") as file:
            for _ in range(12000):
                file.write(f"{chooser.getrandbits(96):x} validator {chooser.randrange(900)}\n")
    print("ready", flush=True)


# S47: a workspace of a job.
def write_workspace():
    for folder in range(60):
        os.makedirs(f"workspace/d{folder}", exist_ok=True)
        for file in range(25):
            with open(f"workspace/d{folder}/f{file}", "w") as out:
                out.write("x")
    print("ready", flush=True)


# S17: a library for plugins in the language of the shell.
PLUGIN = """get_threshold() {
    name=$1; level=$2
    value=$(eval "echo \\"\\$${name}_$level\\"")
    [ -n "$value" ] || value=$(eval "echo \\"\\$$level\\"")
    echo "$value"
}
print_thresholds() {
    warning_value=$(get_threshold "$1" warning)
    critical_value=$(get_threshold "$1" critical)
    [ -z "$warning_value" ] || echo "$1.warning $warning_value"
    [ -z "$critical_value" ] || echo "$1.critical $critical_value"
}
warning=800; foo_critical=1300
end=$(($(date +%s) + $1))
count=0
while [ $((count % 100)) -ne 0 ] || [ "$(date +%s)" -lt $end ]; do
    print_thresholds foo
    count=$((count + 1))
done
echo "$count plugins" >&2
"""


def write_plugin():
    with open("plugin.sh", "w") as file:
        file.write(PLUGIN)
    print("ready", flush=True)


# S45: a repository of many packs, and the names that a remote repository offers, none of them here.
def run_git(*arguments, text=b""):
    command = ["git", "--git-dir=remote.git", *arguments]
    return subprocess.run(command, input=text, stdout=subprocess.PIPE, check=True).stdout


def write_remote():
    if not os.path.exists("remote.git"):
        subprocess.run(["git", "init", "-q", "--bare", "remote.git"], check=True)
        for number in range(250):
            name = run_git("hash-object", "-w", "--stdin", text=b"object %d\n" % number)
            run_git("pack-objects", "-q", "remote.git/objects/pack/pack", text=name)
        run_git("prune-packed")
        chooser = random.Random(7)
        with open("remote.names", "w") as file:
            for _ in range(8000):
                file.write(f"{chooser.getrandbits(160):040x}\n")
    print("ready", flush=True)


# S14 and S38: a database of PostgreSQL.
def stop_with_parent():
    # PR_SET_PDEATHSIG: who started this kills it, and the server has to end too.
    ctypes.CDLL(None).prctl(1, signal.SIGQUIT)


def run_server():
    """Runs a server as another user, since it refuses to be an administrator's. A fourth argument
    says where its programs are."""
    tools = sys.argv[4]
    user = ["unshare", "--user", "--map-user=1000", "--map-group=1000"]
    # A server that has just been killed may still write to the other one.
    folder = "database-" + sys.argv[1]
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run(
        [*user, f"{tools}/initdb", "-D", folder, "-U", "postgres", "-A", "trust", "-N"],
        check=True, stdout=subprocess.DEVNULL,
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with open("database.port", "w") as file:
        file.write(str(port))
    server = subprocess.Popen(
        [*user, f"{tools}/postgres", "-D", folder, "-p", str(port), "-h", "127.0.0.1",
         "-k", "", "-F"],
        preexec_fn=stop_with_parent, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
    )
    return server


def connect():
    with open("database.port") as file:
        port = int(file.read())
    connection = socket.create_connection(("127.0.0.1", port))
    text = b"user\0postgres\0database\0postgres\0\0"
    connection.sendall(struct.pack("!ii", len(text) + 8, 196608) + text)
    read_answer(connection)
    return connection


def read_exactly(connection, size):
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise ConnectionError("the server has closed the connection")
        data += part
    return data


def read_answer(connection):
    """Reads until the server is ready for a query."""
    while True:
        kind, size = struct.unpack("!ci", read_exactly(connection, 5))
        text = read_exactly(connection, size - 4)
        if kind == b"E":
            raise ConnectionError(text.decode(errors="replace"))
        if kind == b"Z":
            return


def query(connection, text):
    text = text.encode() + b"\0"
    connection.sendall(b"Q" + struct.pack("!i", len(text) + 4) + text)
    read_answer(connection)


def start_database():
    server = run_server()
    while True:
        try:
            connection = connect()
            break
        except OSError:
            time.sleep(0.1)
    query(connection, "CREATE TABLE metric_sessions_current(datetime int, record int)")
    print("ready", flush=True)
    server.wait()


def start_locked_database():
    """Another session reads the table, and leaves its transaction open for most of the time."""
    server = run_server()
    while True:
        try:
            connection = connect()
            break
        except OSError:
            time.sleep(0.1)
    query(connection, "CREATE TABLE metric_sessions_current(datetime int, record int)")
    query(connection, "BEGIN; SELECT count(*) FROM metric_sessions_current")
    print("ready", flush=True)
    while server.poll() is None:
        time.sleep(1.5)
        query(connection, "COMMIT")
        time.sleep(0.01)
        query(connection, "BEGIN; SELECT count(*) FROM metric_sessions_current")


def history_tables():
    connection = connect()
    count = 0
    while not is_over():
        query(connection, "BEGIN; TRUNCATE metric_sessions_current; COMMIT")
        count += 1
    tell(count, "histories")


def export_metrics():
    count = 0
    connection = connect() if IS_REPAIRED else None
    while not is_over():
        if IS_REPAIRED:
            query(connection, "SELECT count(*) FROM metric_sessions_current")
        else:
            with connect() as connection:
                query(connection, "SELECT count(*) FROM metric_sessions_current")
        count += 1
    tell(count, "metrics")


PROGRAMS = {
    "compress-blocks": compress_blocks,
    "fuzz": fuzz,
    "start-workers": start_workers,
    "answer-chats": lambda: asyncio.run(answer_chats()),
    "load-sounds": load_sounds,
    "search-messages": search_messages,
    "write-chip": write_chip,
    "write-snapshot": write_snapshot,
    "write-workspace": write_workspace,
    "write-plugin": write_plugin,
    "write-remote": write_remote,
    "start-database": start_database,
    "start-locked-database": start_locked_database,
    "history-tables": history_tables,
    "export-metrics": export_metrics,
}

# Workers that are started anew read this file too.
if __name__ == "__main__":
    os.chdir(sys.argv[3])
    PROGRAMS[sys.argv[1]]()
