"""Programs after public reports, ninth half: CPython and SQLite.

Usage: python ninth.py CASE SECONDS FOLDER
"""

import asyncio
import difflib
import inspect
import json
import mmap
import multiprocessing
import os
import queue
import random
import re
import shutil
import socket
import sqlite3
import sys
import threading
import time


def work_folder(folder, name):
    path = os.path.join(folder, name)
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    return path


def check_models(results, count):
    clashes = [{"a": i, "b": i + 1, "text": "pipe %d meets wall %d" % (i, i)}
               for i in range(count)]
    results.put(json.dumps(clashes))


def clash_report(seconds, folder):
    work_folder(folder, "clash-report")
    deadline = time.monotonic() + seconds
    results = multiprocessing.Queue()
    worker = multiprocessing.Process(target=check_models, args=(results, 9000))
    worker.start()
    worker.join(max(0.1, deadline - time.monotonic()))
    found = 0
    if worker.is_alive():
        worker.terminate()
        worker.join()
    else:
        found = len(json.loads(results.get()))
    print("clash-report: %d clashes" % found)


def render_template(deadline):
    done = threading.Event()
    done.wait(max(0, deadline - time.monotonic()))


async def connect_tcp(loop, number, deadline):
    left = max(0.05, deadline - time.monotonic())
    try:
        await asyncio.wait_for(loop.getaddrinfo("127.0.0.1", 8000 + number), left)
    except asyncio.TimeoutError:
        return 0
    return 1


async def serve_requests(deadline):
    loop = asyncio.get_running_loop()
    slots = min(32, (os.cpu_count() or 1) + 4)
    renders = [loop.run_in_executor(None, render_template, deadline) for _ in range(3 * slots)]
    connects = [connect_tcp(loop, n, deadline) for n in range(40)]
    answers = await asyncio.gather(*connects)
    for render in renders:
        render.cancel()
    return sum(answers)


def web_gateway(seconds, folder):
    work_folder(folder, "web-gateway")
    answered = asyncio.run(serve_requests(time.monotonic() + seconds))
    print("web-gateway: %d connects" % answered)


class JobPool:
    def __init__(self, threads):
        self.jobs = queue.Queue()
        self.built = 0
        for _ in range(threads):
            threading.Thread(target=self.run_jobs, daemon=True).start()

    def run_jobs(self):
        while True:
            job = self.jobs.get()
            try:
                self.build(job)
            except ValueError:
                continue
            self.jobs.task_done()

    def build(self, job):
        if job % 37 == 0:
            raise ValueError("no statement for problem %d" % job)
        self.built += 1

    def close(self):
        self.jobs.join()


def contest_build(seconds, folder):
    work_folder(folder, "contest-build")
    pool = JobPool(3)
    for job in range(1, 200):
        pool.jobs.put(job)
    closer = threading.Thread(target=pool.close, daemon=True)
    closer.start()
    closer.join(seconds)
    print("contest-build: %d problems" % pool.built)


def index_records(path, deadline):
    offsets = []
    with open(path, "rb") as handle:
        while True:
            start = handle.tell()
            line = handle.readline()
            if not line:
                break
            if line[:1] == b">":
                offsets.append(start)
            if time.monotonic() > deadline:
                break
    return offsets


def fasta_index(seconds, folder):
    path = os.path.join(work_folder(folder, "fasta-index"), "reads.fa")
    with open(path, "wb") as out:
        for number in range(20000):
            out.write(b">read%d\n" % number)
            out.write(b"ACGTACGTTGCA\n" * 6)
    deadline = time.monotonic() + seconds
    found = 0
    while time.monotonic() < deadline:
        found += len(index_records(path, deadline))
    print("fasta-index: %d records" % found)


def save_point(pages, number):
    spot = (number * 7919) % (len(pages) - 64)
    pages[spot:spot + 16] = b"%016d" % number
    pages.flush()


def page_journal(seconds, folder):
    path = os.path.join(work_folder(folder, "page-journal"), "pages.bin")
    with open(path, "wb") as out:
        out.truncate(1 << 22)
    deadline = time.monotonic() + seconds
    saved = 0
    with open(path, "r+b") as handle, mmap.mmap(handle.fileno(), 0) as pages:
        while time.monotonic() < deadline:
            save_point(pages, saved)
            saved += 1
    print("page-journal: %d points" % saved)


def send_ticks(peer, deadline):
    tick = b"EURUSD 1.0842 1.0843\n" * 8
    while time.monotonic() < deadline:
        for _ in range(64):
            peer.send(tick)
    peer.send(b"")
    os._exit(0)


def read_ready(sock, max_size):
    data = sock.recv(max_size)
    return len(data)


def tick_reader(seconds, folder):
    work_folder(folder, "tick-reader")
    deadline = time.monotonic() + seconds
    ours, peer = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        ours.close()
        send_ticks(peer, deadline)
    peer.close()
    ticks = 0
    while read_ready(ours, 4 << 20):
        ticks += 8
    os.wait()
    print("tick-reader: %d ticks" % ticks)


class Axes:
    def __init__(self):
        self.drawn = 0

    def grid(self, which="major", axis="both", color=None, alpha=1.0, linewidth=0.5, **kwargs):
        self.drawn += 1

    def legend(self, loc="best", ncol=1, frame=True, title=None, handles=None, **kwargs):
        self.drawn += 1


def pop_params(kwargs, *funcs):
    output = {}
    for func in funcs:
        for name in inspect.signature(func).parameters:
            if name in kwargs:
                output[name] = kwargs.pop(name)
    return output


def plot_params(seconds, folder):
    work_folder(folder, "plot-params")
    deadline = time.monotonic() + seconds
    axes = Axes()
    while time.monotonic() < deadline:
        for _ in range(200):
            style = {"color": "grey", "alpha": 0.3, "loc": "upper left", "ncol": 2}
            axes.grid(**pop_params(style, Axes.grid, Axes.legend))
    print("plot-params: %d grids" % axes.drawn)


def export_document(records):
    return json.dumps({"records": records}, indent=2)


def report_export(seconds, folder):
    path = os.path.join(work_folder(folder, "report-export"), "report.json")
    records = [{"id": n, "name": "item %d" % n, "tags": ["a", "b", str(n)], "ok": n % 3 == 0}
               for n in range(3000)]
    deadline = time.monotonic() + seconds
    exported = 0
    while time.monotonic() < deadline:
        with open(path, "w") as out:
            out.write(export_document(records))
        exported += 1
    print("report-export: %d documents" % exported)


def make_hunk(rng, count):
    words = ["alpha", "beta", "gamma", "delta", "omega", "sigma", "kappa"]
    return ["%s = %s(%d)\n" % (rng.choice(words), rng.choice(words), rng.randrange(9999))
            for _ in range(count)]


def compare_hunk(old, new, deadline):
    shown = 0
    for _ in difflib.ndiff(old, new):
        shown += 1
        if time.monotonic() > deadline:
            break
    return shown


def side_by_side(seconds, folder):
    work_folder(folder, "side-by-side")
    rng = random.Random(7)
    deadline = time.monotonic() + seconds
    shown = 0
    while time.monotonic() < deadline:
        shown += compare_hunk(make_hunk(rng, 60), make_hunk(rng, 60), deadline)
    print("side-by-side: %d lines" % shown)


def list_scans(db):
    return db.execute(
        "SELECT id, repo, status, log FROM scans ORDER BY CASE status WHEN 'running' THEN 0"
        " WHEN 'queued' THEN 1 ELSE 2 END, id DESC LIMIT 20").fetchall()


def scans_list(seconds, folder):
    path = os.path.join(work_folder(folder, "scans-list"), "scans.db")
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE scans(id INTEGER PRIMARY KEY, repo TEXT, status TEXT, log TEXT)")
    db.execute("CREATE INDEX scans_status ON scans(status, id)")
    db.executemany("INSERT INTO scans(repo, status, log) VALUES (?, ?, ?)",
                   (("org/repo%d" % n, "done" if n % 50 else "queued", "line " * 12)
                    for n in range(60000)))
    db.commit()
    deadline = time.monotonic() + seconds
    pages = 0
    while time.monotonic() < deadline:
        list_scans(db)
        pages += 1
    db.close()
    print("scans-list: %d pages" % pages)


class Collator:
    def __init__(self, name):
        table = {}
        for code in range(32, 383):
            table[code] = chr(code).lower()
        self.name = name
        self.table = str.maketrans({chr(k): v for k, v in table.items()})

    def like(self, text, pattern):
        body = re.escape(pattern.translate(self.table)).replace("%", ".*")
        return re.fullmatch(body, text.translate(self.table)) is not None


def fl_like(text, pattern, collation):
    return Collator(collation).like(text, pattern)


def note_search(seconds, folder):
    path = os.path.join(work_folder(folder, "note-search"), "notes.db")
    db = sqlite3.connect(path)
    db.create_function("fl_like", 3, fl_like, deterministic=True)
    db.execute("CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT)")
    db.executemany("INSERT INTO notes(title) VALUES (?)",
                   (("Note %d about Topic %d" % (n, n % 97),) for n in range(2000)))
    db.commit()
    deadline = time.monotonic() + seconds
    hits = 0
    while time.monotonic() < deadline:
        hits += db.execute("SELECT count(*) FROM notes WHERE fl_like(title, ?, 'unicode')",
                           ("%topic 4%",)).fetchone()[0]
    db.close()
    print("note-search: %d hits" % hits)


CASES = {
    "clash-report": clash_report,
    "web-gateway": web_gateway,
    "contest-build": contest_build,
    "fasta-index": fasta_index,
    "page-journal": page_journal,
    "tick-reader": tick_reader,
    "plot-params": plot_params,
    "report-export": report_export,
    "side-by-side": side_by_side,
    "scans-list": scans_list,
    "note-search": note_search,
}


if __name__ == "__main__":
    CASES[sys.argv[1]](float(sys.argv[2]), sys.argv[3])
    sys.stdout.flush()
