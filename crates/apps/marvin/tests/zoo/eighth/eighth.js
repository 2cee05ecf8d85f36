// Eighth set of Node programs for the observer: one function per case.
// Use: node eighth.js CASE SECONDS FOLDER
'use strict';
const fs = require('fs');
const path = require('path');
const { Writable } = require('stream');
const { Worker } = require('worker_threads');

function fresh(folder, name) {
  const dir = path.join(folder, name);
  fs.rmSync(dir, { recursive: true, force: true });
  fs.mkdirSync(dir, { recursive: true });
  return dir;
}

function done(name, count, what) {
  console.log(`${name}: ${count} ${what}`);
}

// --- replay-buffer ----------------------------------------------------------

const COMPRESSOR = `
const { parentPort } = require('worker_threads');
parentPort.on('message', ({ id, method, arg }) => {
  parentPort.postMessage({ id, method, success: true, response: arg.length });
});
`;

class WorkerHandler {
  constructor(worker) {
    this.worker = worker;
    this.id = 0;
    worker.setMaxListeners(0);
  }

  postMessage(method, arg) {
    const id = this.id++;
    return new Promise((resolve) => {
      const listener = (response) => {
        if (response.method !== method) return;
        if (response.id !== id) return;
        this.worker.removeListener('message', listener);
        resolve(response.response);
      };
      this.worker.on('message', listener);
      this.worker.postMessage({ id, method, arg });
    });
  }
}

async function replayBuffer(seconds, folder) {
  fresh(folder, 'replay-buffer');
  const deadline = Date.now() + seconds * 1000;
  const worker = new Worker(COMPRESSOR, { eval: true });
  const handler = new WorkerHandler(worker);
  let events = 0;
  const addEvent = async () => {
    await handler.postMessage('addEvent', '{"type":3,"data":"rule"}');
    events++;
  };
  const timer = setTimeout(() => {
    done('replay-buffer', events, 'events');
    process.exit(0);
  }, seconds * 1000);
  while (Date.now() < deadline) {
    const burst = [];
    for (let k = 0; k < 4000; k++) burst.push(addEvent());
    await Promise.all(burst);
  }
  clearTimeout(timer);
  done('replay-buffer', events, 'events');
  process.exit(0);
}

// --- query-client -----------------------------------------------------------

class Connection {
  constructor() {
    this.queue = [];
  }

  query(sql, values, callback) {
    this.queue.push(callback);
    if (this.queue.length === 1) setImmediate(() => this.flush());
  }

  flush() {
    const batch = this.queue;
    this.queue = [];
    for (const callback of batch) callback(null, batch.length);
  }
}

class PromiseConnection {
  constructor(connection) {
    this.connection = connection;
  }

  query(sql, values) {
    const localErr = new Error();
    return new Promise((resolve, reject) => {
      this.connection.query(sql, values, (err, rows) => {
        if (err) {
          localErr.message = err.message;
          reject(localErr);
        } else {
          resolve(rows);
        }
      });
    });
  }
}

class Repository {
  constructor(connection) {
    this.connection = connection;
  }

  find(id) { return this.select('users', id); }

  select(table, id) { return this.run(`SELECT * FROM ${table} WHERE id = ?`, id); }

  run(sql, id) { return this.connection.query(sql, [id]); }
}

async function queryClient(seconds, folder) {
  fresh(folder, 'query-client');
  const deadline = Date.now() + seconds * 1000;
  const repository = new Repository(new PromiseConnection(new Connection()));
  const route = (id) => controller(id);
  const controller = (id) => service(id);
  const service = (id) => repository.find(id);
  let queries = 0;
  while (Date.now() < deadline) {
    const page = [];
    for (let k = 0; k < 200; k++) page.push(route(k));
    await Promise.all(page);
    queries += page.length;
  }
  done('query-client', queries, 'queries');
}

// --- web-sink ---------------------------------------------------------------

class Sink extends Writable {
  constructor() {
    super({ highWaterMark: 0 });
    this.bytes = 0;
  }

  _write(chunk, encoding, callback) {
    this.bytes += chunk.length;
    callback();
  }

  write(chunk, ...rest) {
    const more = super.write(chunk, ...rest);
    if (!more) this.emit('drain');
    return more;
  }
}

async function webSink(seconds, folder) {
  fresh(folder, 'web-sink');
  const sink = new Sink();
  let chunks = 0;
  setTimeout(() => {
    done('web-sink', chunks, 'chunks');
    process.exit(0);
  }, seconds * 1000);
  const writer = Writable.toWeb(sink).getWriter();
  for (;;) {
    await writer.ready;
    await writer.write(Buffer.alloc(512));
    chunks++;
  }
}

// --- method-queue -----------------------------------------------------------

class SynchronousQueue {
  constructor() {
    this.tasks = [];
    this.running = false;
  }

  queueTask(task) {
    this.tasks.push(task);
    this.scheduleRun();
  }

  scheduleRun() {
    if (!this.running) process.nextTick(() => this.run());
  }

  run() {
    const task = this.tasks.shift();
    if (task) task();
    if (this.tasks.length) this.scheduleRun();
  }
}

function methodQueue(seconds, folder) {
  const file = path.join(fresh(folder, 'method-queue'), 'collection.json');
  fs.writeFileSync(file, JSON.stringify({ docs: [1, 2, 3] }));
  const deadline = Date.now() + seconds * 1000;
  const queue = new SynchronousQueue();
  let loaded = 0;
  const load = () => fs.readFile(file, () => { loaded++; });
  setInterval(load, 10);
  load();
  let polls = 0;
  const awaitDocs = () => {
    polls++;
    if (loaded >= 100 || Date.now() >= deadline) {
      done('method-queue', loaded, 'documents');
      process.exit(0);
    }
    queue.queueTask(awaitDocs);
  };
  queue.queueTask(awaitDocs);
}

// --- scan-journal -----------------------------------------------------------

function atomicAppendJsonLine(file, entry) {
  const before = fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : '';
  const temp = `${file}.${process.pid}.tmp`;
  fs.writeFileSync(temp, before + JSON.stringify(entry) + '\n');
  fs.renameSync(temp, file);
}

function scanJournal(seconds, folder) {
  const file = path.join(fresh(folder, 'scan-journal'), 'journal.ndjson');
  const entry = (k) => ({ seq: k, tool: 'http', target: `/path/${k}`, note: 'n'.repeat(150) });
  const lines = [];
  for (let k = 0; k < 20000; k++) lines.push(JSON.stringify(entry(k)) + '\n');
  fs.writeFileSync(file, lines.join(''));
  const deadline = Date.now() + seconds * 1000;
  let entries = 0;
  while (Date.now() < deadline) {
    atomicAppendJsonLine(file, entry(20000 + entries));
    entries++;
  }
  done('scan-journal', entries, 'entries');
}

// --- access-log -------------------------------------------------------------

async function accessLog(seconds, folder) {
  const file = path.join(fresh(folder, 'access-log'), 'common.log');
  const deadline = Date.now() + seconds * 1000;
  const stream = fs.createWriteStream(file, { flags: 'a' });
  const line = `2017-05-11 10:00:00 INFO [-/127.0.0.1/-/3ms GET /] ${'m'.repeat(60)}\n`;
  const info = () => new Promise((resolve) => stream.write(line, resolve));
  let lines = 0;
  const request = async () => {
    while (Date.now() < deadline) {
      await info();
      lines++;
    }
  };
  await request();
  stream.end();
  done('access-log', lines, 'lines');
}

// --- date-sort --------------------------------------------------------------

const TOKENS = /(\[[^[]*\])|YYYY|MM?|DD?|HH?|mm?|ss?|./g;
const PATTERNS = {
  YYYY: '(\\d{4})', MM: '(\\d\\d)', DD: '(\\d\\d)', HH: '(\\d\\d)', mm: '(\\d\\d)', ss: '(\\d\\d)',
};

function configFromStringAndFormat(config) {
  const tokens = config.format.match(TOKENS) || [];
  let string = config.input;
  config.parsed = {};
  for (const token of tokens) {
    const pattern = new RegExp(PATTERNS[token] || token.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
    const match = pattern.exec(string);
    if (!match) continue;
    string = string.slice(match.index + match[0].length);
    if (PATTERNS[token]) config.parsed[token] = Number(match[0]);
  }
  const p = config.parsed;
  config.date = new Date(p.YYYY, p.MM - 1, p.DD, p.HH, p.mm, p.ss);
  return config;
}

function stringDatesComparator(dateFormat, a, b) {
  const dateA = configFromStringAndFormat({ input: a, format: dateFormat }).date;
  const dateB = configFromStringAndFormat({ input: b, format: dateFormat }).date;
  return dateA - dateB;
}

function dateSort(seconds, folder) {
  fresh(folder, 'date-sort');
  const two = (n) => String(n).padStart(2, '0');
  const rows = [];
  for (let k = 0; k < 3000; k++) {
    const h = (k * 7919) % 100003;
    rows.push(`${two(1 + (h % 28))}.${two(1 + (h % 12))}.${2000 + (h % 17)} ` +
      `${two(h % 24)}:${two(h % 60)}:${two((h * 7) % 60)}`);
  }
  const deadline = Date.now() + seconds * 1000;
  let sorted = 0;
  while (Date.now() < deadline) {
    rows.slice().sort((a, b) => stringDatesComparator('DD.MM.YYYY HH:mm:ss', a, b));
    sorted++;
  }
  done('date-sort', sorted, 'lists');
}

const CASES = {
  'replay-buffer': replayBuffer,
  'query-client': queryClient,
  'web-sink': webSink,
  'method-queue': methodQueue,
  'scan-journal': scanJournal,
  'access-log': accessLog,
  'date-sort': dateSort,
};

CASES[process.argv[2]](Number(process.argv[3]), process.argv[4]);
