'use strict';
// Programs written anew from public reports: NAME SECONDS SCRATCH [fixed].
const fs = require('fs');
const http = require('http');
const net = require('net');
const path = require('path');
const { execFile } = require('child_process');
const { Worker, isMainThread, parentPort } = require('worker_threads');

const [, , name, secondsText, scratch, form] = process.argv;
const seconds = Number(secondsText);
const fixed = form === 'fixed';
const end = Date.now() + seconds * 1000;
const over = () => Date.now() >= end;
const nap = (ms) => new Promise((done) => setTimeout(done, ms));

function folder(which) {
  const place = path.join(scratch, which);
  fs.rmSync(place, { recursive: true, force: true });
  fs.mkdirSync(place, { recursive: true });
  return place;
}

function report(what, count) {
  console.log(`${what}: ${count} in ${seconds} s`);
}

// --- AD12: uploads of a form --------------------------------------------------------------------
function sendFile(where, body) {
  return new Promise((done) => {
    const request = http.request({ socketPath: where, method: 'POST', path: '/upload' },
      (answer) => { answer.resume(); answer.on('end', done); answer.on('error', done); });
    request.on('error', () => setTimeout(done, 50));
    request.end(body);
  });
}

async function uploadClients() {
  const where = path.join(folder('upload-form'), 'form.sock');
  const body = Buffer.alloc(6 * 1024 * 1024, 'photo ');
  console.log('upload clients are ready');
  while (!over()) await sendFile(where, body);
}

function processFile(request, done) {
  let buf = Buffer.alloc(0);
  const parts = [];
  request.on('data', (data) => {
    if (fixed) parts.push(data);
    else buf = Buffer.concat([buf, data]);
  });
  request.on('end', () => done(fixed ? Buffer.concat(parts) : buf));
}

function uploadForm() {
  const home = path.join(scratch, 'upload-form');
  fs.mkdirSync(home, { recursive: true });
  const where = path.join(home, 'form.sock');
  fs.rmSync(where, { force: true });
  let files = 0;
  const server = http.createServer((request, response) => {
    processFile(request, (file) => {
      files += 1;
      response.end(`${file.length}\n`);
    });
  });
  server.listen(where);
  setTimeout(() => { report('files', files); process.exit(0); }, seconds * 1000);
}

// --- AD13: a log of records, one JSON object a line ---------------------------------------------
function createNdjsonLogger(file) {
  const queue = [];
  let draining = false;
  let written = 0;
  const drain = async () => {
    if (draining) return;
    draining = true;
    while (queue.length) {
      if (fixed) {
        const batch = queue.splice(0, queue.length);
        await fs.promises.appendFile(file, batch.join(''));
        written += batch.length;
      } else {
        await fs.promises.appendFile(file, queue.shift());
        written += 1;
      }
      if (over()) break;
    }
    draining = false;
  };
  return { append: (entry) => { queue.push(`${JSON.stringify(entry)}\n`); return drain(); },
    written: () => written, waiting: () => queue.length };
}

async function scanLog() {
  const logger = createNdjsonLogger(path.join(folder('scan-log'), 'scan.ndjson'));
  let number = 0;
  while (!over()) {
    for (let i = 0; i < 100 && logger.waiting() < 2000; i++) {
      logger.append({ level: 'info', file: `src/part${number % 300}.ts`, number: number++ });
    }
    await new Promise(setImmediate);
    if (logger.waiting() >= 2000) await nap(1);
  }
  report('records', logger.written());
  process.exit(0);
}

// --- AD14: documents taken in below a memory limit ----------------------------------------------
let lastRss = 0;

function checkMemory(limit, number) {
  if (!fixed || number % 500 === 0) lastRss = process.memoryUsage().rss;
  return lastRss < limit;
}

async function documentIntake() {
  const kept = [];
  for (let i = 0; i < 400000; i++) kept.push({ id: i, big: { text: 'I am blue' } });
  let taken = 0;
  while (!over()) {
    for (let i = 0; i < 50; i++) {
      if (!checkMemory(1e12, taken)) throw new Error('overload');
      kept[taken % kept.length] = { id: taken, big: { text: 'I am green' } };
      taken += 1;
    }
    await new Promise(setImmediate);
  }
  report('documents', taken);
}

// --- AD15: does the terminal's shell have children? ---------------------------------------------
function listProcesses(script) {
  return new Promise((done) => {
    execFile('/bin/sh', [script], (error, text) => done(error ? '' : text));
  });
}

async function hasChildProcesses(script, pid) {
  if (fixed) {
    const children = await fs.promises.readFile(`/proc/${pid}/task/${pid}/children`, 'utf8');
    return children.trim() !== '';
  }
  const text = await listProcesses(script);
  return text.split('\n').some((line) => Number(line.trim().split(/\s+/)[1]) === pid);
}

async function terminalMonitor() {
  const script = path.join(folder('terminal-monitor'), 'ps.sh');
  fs.writeFileSync(script, '#!/bin/sh\nps -ax -o pid=,ppid=,pcpu=,pmem=,command= |\n' +
    '  while read -r line; do echo "$line"; done\nPAGESIZE=$(getconf PAGESIZE)\nexit 0\n');
  let checks = 0;
  while (!over()) {
    await hasChildProcesses(script, process.pid);
    checks += 1;
    await nap(2);
  }
  report('checks', checks);
}

// --- AD16: evaluations of a process' memory in a worker -----------------------------------------
function evaluateInWorker() {
  parentPort.on('message', ({ memory, slot }) => {
    const cells = new Uint32Array(memory);
    cells[slot] += 1;
    parentPort.postMessage({ memory }, process.argv[5] === 'fixed' ? [memory] : []);
  });
}

async function computeUnit() {
  const worker = new Worker(__filename, { argv: process.argv.slice(2) });
  let memory = new ArrayBuffer(16 * 1024 * 1024);
  let evaluated = 0;
  const evaluate = (slot) => new Promise((done) => {
    worker.once('message', (answer) => done(answer.memory));
    worker.postMessage({ memory, slot }, fixed ? [memory] : []);
  });
  while (!over()) {
    memory = await evaluate(evaluated % 1000);
    evaluated += 1;
  }
  report('evaluations', evaluated);
  process.exit(0);
}

// --- AD17: a configuration that is copied for each request --------------------------------------
function baseClone(value, stackA, stackB) {
  if (value === null || typeof value !== 'object') return value;
  let length = stackA.length;
  while (length--) if (stackA[length] === value) return stackB[length];
  const result = Array.isArray(value) ? [] : {};
  stackA.push(value);
  stackB.push(result);
  for (const key of Object.keys(value)) result[key] = baseClone(value[key], stackA, stackB);
  return result;
}

function cloneDeep(value) {
  return fixed ? JSON.parse(JSON.stringify(value)) : baseClone(value, [], []);
}

function routeConfig(number) {
  const rules = [];
  for (let i = 0; i < 25; i++) {
    rules.push({ id: `${number}.${i}`, match: { host: 'h', path: `/p${i}` },
      headers: { accept: 'any', agent: `agent ${number}` }, upstream: { name: 'u', port: i } });
  }
  return { name: `route-${number}`, rules };
}

function handleRequest(config, number) {
  const copy = cloneDeep(config);
  return copy.routes[number % copy.routes.length].rules.length;
}

function routeConfigServer() {
  const config = { routes: Array.from({ length: 120 }, (_, number) => routeConfig(number)) };
  let requests = 0;
  while (!over()) {
    handleRequest(config, requests);
    requests += 1;
  }
  report('requests', requests);
}

// --- AD18: forms of an API whose records are in a database --------------------------------------
function sqlServer() {
  const where = path.join(folder('record-api'), 'sql.sock');
  const server = net.createServer((socket) => {
    socket.on('data', (text) => {
      for (const line of text.toString().split('\n')) {
        if (line) setTimeout(() => socket.writable && socket.write(`done ${line}\n`), 3);
      }
    });
    socket.on('error', () => {});
  });
  server.listen(where, () => console.log('sql server is ready'));
  setTimeout(() => process.exit(0), seconds * 1000);
}

class Client {
  constructor(where) {
    this.socket = net.connect(where);
    this.waiting = [];
    this.socket.on('data', (text) => {
      for (const line of text.toString().split('\n')) if (line) this.waiting.shift()(line);
    });
  }

  query(text) {
    return new Promise((done) => {
      this.waiting.push(done);
      this.socket.write(`${text}\n`);
    });
  }
}

class Pool {
  constructor(where, max) {
    this.idle = Array.from({ length: max }, () => new Client(where));
    this.pendingQueue = [];
  }

  connect() {
    if (this.idle.length) return Promise.resolve(this.idle.pop());
    return new Promise((done, fail) => {
      const pending = { done };
      pending.timer = setTimeout(() => {
        this.pendingQueue.splice(this.pendingQueue.indexOf(pending), 1);
        fail(new Error('timeout exceeded when trying to connect'));
      }, 1500);
      this.pendingQueue.push(pending);
    });
  }

  release(client) {
    const pending = this.pendingQueue.shift();
    if (!pending) { this.idle.push(client); return; }
    clearTimeout(pending.timer);
    pending.done(client);
  }

  async query(text) {
    const client = await this.connect();
    try { return await client.query(text); } finally { this.release(client); }
  }
}

async function createRecord(pool, number) {
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    await (fixed ? client : pool).query(`INSERT ${number}`);
    await client.query('COMMIT');
    return 1;
  } catch {
    await client.query('ROLLBACK');
    return 0;
  } finally {
    pool.release(client);
  }
}

async function recordApi() {
  const pool = new Pool(path.join(scratch, 'record-api', 'sql.sock'), 5);
  let stored = 0;
  let refused = 0;
  const caller = async (number) => {
    while (!over()) {
      const good = await createRecord(pool, number).catch(() => 0);
      stored += good;
      refused += 1 - good;
    }
  };
  await Promise.all(Array.from({ length: 20 }, (_, number) => caller(number)));
  report('stored', stored);
  report('refused', refused);
  process.exit(0);
}

const cases = {
  'upload-clients': uploadClients, 'upload-form': uploadForm, 'scan-log': scanLog,
  'document-intake': documentIntake, 'terminal-monitor': terminalMonitor,
  'compute-unit': computeUnit, 'route-config': routeConfigServer, 'sql-server': sqlServer,
  'record-api': recordApi,
};

if (isMainThread) cases[name]();
else evaluateInWorker();
