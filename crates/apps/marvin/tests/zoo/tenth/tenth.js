// Tenth half of the zoo: programs in Node. Arguments: CASE SECONDS FOLDER.
'use strict';
const crypto = require('crypto');
const dgram = require('dgram');
const fs = require('fs');
const http = require('http');
const os = require('os');
const path = require('path');

const [name, secondsText, folder] = process.argv.slice(2);
const end = Date.now() + Number(secondsText) * 1000;

function makeFolder() {
  const dir = path.join(folder, name);
  fs.rmSync(dir, { recursive: true, force: true });
  fs.mkdirSync(dir, { recursive: true });
  return dir;
}

function finish(count, things) {
  console.log(`${name}: ${count} ${things}`);
  process.exit(0);
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

class Semaphore {
  constructor(concurrency, size, timeout) {
    this.counter = concurrency;
    this.size = size;
    this.timeout = timeout;
    this.queue = [];
  }

  async enter() {
    if (this.counter > 0) {
      this.counter--;
      return;
    }
    await new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error('Semaphore timeout')), this.timeout);
      this.queue.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  leave() {
    const next = this.queue.shift();
    if (next) setTimeout(next, 0);
    else this.counter++;
  }
}

function apiGate() {
  const semaphore = new Semaphore(8, 100, 60000);
  let served = 0;
  let rejected = 0;
  const proc = async (args) => {
    await pause(1);
    if (args % 25 === 0) throw new Error('Forbidden');
    return args * 2;
  };
  const api = async (args) => {
    await semaphore.enter();
    const result = await proc(args);
    semaphore.leave();
    return result;
  };
  const client = async (id) => {
    for (let i = 1; Date.now() < end; i++) {
      try {
        await api(id * 7 + i);
        served++;
      } catch {
        rejected++;
      }
    }
  };
  for (let id = 0; id < 20; id++) client(id);
  setTimeout(() => finish(served, 'calls'), end - Date.now());
}

function plantWorkspace(dir) {
  for (let p = 0; p < 60; p++) {
    const sub = path.join(dir, 'node_modules', `package${p}`, 'lib');
    fs.mkdirSync(sub, { recursive: true });
    for (let f = 0; f < 40; f++) fs.writeFileSync(path.join(sub, `file${f}.js`), '');
  }
  fs.mkdirSync(path.join(dir, 'src'));
  for (let f = 0; f < 20; f++) fs.writeFileSync(path.join(dir, 'src', `index${f}.ts`), '');
}

async function grepWatch() {
  const dir = makeFolder();
  plantWorkspace(dir);
  let sessions = 0;
  while (Date.now() < end) {
    const watcher = fs.watch(dir, { recursive: true }, () => {});
    watcher.on('error', () => {});
    await pause(1);
    watcher.close();
    sessions++;
    await pause(1);
  }
  finish(sessions, 'sessions');
}

function statsdClient() {
  const dir = makeFolder();
  fs.writeFileSync(path.join(dir, 'statsd.conf'), 'port 8125\n');
  const sink = dgram.createSocket('udp4');
  const socket = dgram.createSocket('udp4');
  let metrics = 0;
  sink.bind(0, '127.0.0.1', () => {
    const port = sink.address().port;
    sink.close();
    const sendStat = (stat, value, type, done) => {
      const buf = Buffer.from(`${stat}:${value}|${type}`);
      socket.send(buf, 0, buf.length, port, '127.0.0.1', done);
    };
    const request = () => {
      if (Date.now() >= end) finish(metrics, 'metrics');
      let open = 60;
      for (let i = 0; i < 60; i++) {
        sendStat(`api.route${i}.time`, i, 'ms', () => {
          metrics++;
          if (--open === 0) setImmediate(request);
        });
      }
    };
    request();
  });
}

const urlAlphabet = 'useandom-26T198340PX75pxJACKVERYMINDBUSHWOLF_GQZbfghjklqvwyzrict';

function nanoid(size) {
  const bytes = crypto.randomBytes(size);
  let id = '';
  for (let i = 0; i < size; i++) id += urlAlphabet[bytes[i] & 63];
  return id;
}

function shortIds() {
  makeFolder();
  let made = 0;
  let length = 0;
  while (Date.now() < end) {
    for (let i = 0; i < 500; i++) length += nanoid(21).length;
    made += 500;
  }
  finish(made, length > 0 ? 'ids' : 'none');
}

class GitIndex {
  constructor(file) {
    this.file = file;
    this.entries = new Map();
    this.sorted = [];
  }

  insert(filepath, oid, size) {
    if (!this.entries.has(filepath)) this.sorted.push(filepath);
    this.entries.set(filepath, { filepath, oid, size, mode: 0o100644 });
  }

  toObject() {
    const parts = [];
    const header = Buffer.alloc(12);
    header.write('DIRC');
    header.writeUInt32BE(2, 4);
    header.writeUInt32BE(this.entries.size, 8);
    parts.push(header);
    for (const key of this.sorted) {
      const entry = this.entries.get(key);
      const pathBytes = Buffer.from(entry.filepath);
      const written = Buffer.alloc(Math.ceil((62 + pathBytes.length + 1) / 8) * 8);
      written.writeUInt32BE(entry.mode, 24);
      written.writeUInt32BE(entry.size, 36);
      written.write(entry.oid, 40, 20, 'hex');
      written.writeUInt16BE(pathBytes.length, 60);
      pathBytes.copy(written, 62);
      parts.push(written);
    }
    return Buffer.concat(parts);
  }
}

function add(index, dir, filepath) {
  const body = fs.readFileSync(path.join(dir, 'sub', filepath));
  const oid = crypto.createHash('sha1').update(body).digest('hex');
  index.insert(`sub/${filepath}`, oid, body.length);
  fs.writeFileSync(index.file, index.toObject());
}

function datasetStage() {
  const dir = makeFolder();
  fs.mkdirSync(path.join(dir, 'sub'));
  const index = new GitIndex(path.join(dir, 'index'));
  for (let i = 0; i < 12000; i++) {
    index.insert(`old/subject-${i}_task-rest_bold.json`, '00'.repeat(20), 10);
  }
  let staged = 0;
  while (Date.now() < end) {
    const filepath = `subject-${staged}.json`;
    fs.writeFileSync(path.join(dir, 'sub', filepath), `{"id": ${staged}}\n`);
    add(index, dir, filepath);
    staged++;
  }
  finish(staged, 'files');
}

function cpuUsage(before) {
  const now = os.cpus();
  let idle = 0;
  let total = 0;
  for (let i = 0; i < now.length; i++) {
    const last = before ? before[i].times : null;
    for (const kind of Object.keys(now[i].times)) {
      const ticks = now[i].times[kind] - (last ? last[kind] : 0);
      total += ticks;
      if (kind === 'idle') idle += ticks;
    }
  }
  return { now, busy: total ? 1 - idle / total : 0 };
}

function poolSize() {
  return Math.max(1, os.cpus().length - 1);
}

function cpuGauge() {
  makeFolder();
  let tasks = 0;
  let gauge = cpuUsage(null);
  const turn = () => {
    if (Date.now() >= end) finish(tasks, 'tasks');
    for (let i = 0; i < 20; i++) {
      if (tasks % 4 === 0) gauge = cpuUsage(gauge.now);
      tasks += poolSize() > 0 ? 1 : 0;
    }
    setImmediate(turn);
  };
  turn();
}

function modelGate() {
  const dir = makeFolder();
  const sock = path.join(dir, 'gate.sock');
  let served = 0;
  const server = http.createServer((req, res) => {
    served++;
    res.writeHead(200, { 'Content-Type': 'text/event-stream' });
    res.write('data: hello\n\n');
    if (req.url !== '/events') res.end();
  });
  const stop = () => {
    server.close(() => finish(served, 'requests'));
    setTimeout(() => finish(served, 'requests'), end - Date.now());
  };
  server.listen(sock, () => setTimeout(stop, 400));
}

function gateClient() {
  makeFolder();
  const sock = path.join(folder, 'model-gate', 'gate.sock');
  const agent = new http.Agent({ keepAlive: true });
  let answers = 0;
  const ask = (url) => new Promise((resolve) => {
    const req = http.get({ socketPath: sock, path: url, agent }, (res) => {
      answers++;
      res.on('data', () => {});
      res.on('end', resolve);
      res.on('error', resolve);
      res.on('close', resolve);
    });
    req.on('error', () => setTimeout(resolve, 20));
  });
  const stream = async () => {
    while (Date.now() < end) await ask('/events');
  };
  const caller = async () => {
    while (Date.now() < end) {
      await ask('/models');
      await pause(30);
    }
  };
  for (let i = 0; i < 3; i++) stream();
  caller();
  console.log('ready');
  setTimeout(() => finish(answers, 'answers'), end - Date.now());
}

const cases = {
  'api-gate': apiGate,
  'grep-watch': grepWatch,
  'statsd-client': statsdClient,
  'short-ids': shortIds,
  'dataset-stage': datasetStage,
  'cpu-gauge': cpuGauge,
  'model-gate': modelGate,
  'gate-client': gateClient,
};

cases[name]();
