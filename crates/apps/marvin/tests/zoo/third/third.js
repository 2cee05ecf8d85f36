// The third late part of the programs from public reports (tests/outside/49-third-aside-scripts.md),
// for Node: each does steadily what its report describes, for some seconds: node third.js NAME
// SECONDS DIR. REPAIRED=1 in the environment asks for the repaired form, to compare with.
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const http = require('http');
const net = require('net');
const path = require('path');

const [name, seconds, dir] = process.argv.slice(2);
const end = Date.now() + Number(seconds) * 1000;
const isOver = () => Date.now() >= end;
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const isRepaired = Boolean(process.env.REPAIRED);
const tell = (...words) => console.error(...words);
const later = () => new Promise((done) => setImmediate(done));

function listen(server, file) {
  const socketPath = path.join(dir, file);
  if (fs.existsSync(socketPath)) fs.unlinkSync(socketPath);
  return new Promise((done) => server.listen(socketPath, done));
}

function ask(file, url) {
  return new Promise((done) => {
    const request = http.get({ socketPath: path.join(dir, file), path: url }, (response) => {
      response.resume();
      response.on('end', () => done(true));
      response.on('error', () => done(false));
    });
    request.on('error', () => done(false));
  });
}

// U10: an application answers with many records, and with a sign of life.
function makeRecords(count) {
  const records = [];
  for (let n = 0; n < count; n++) {
    const createdAt = new Date(1716458400000 + n);
    records.push({ id: n, name: `record ${n}`, amount: n * 1.25, createdAt, updatedAt: createdAt });
  }
  return records;
}

function writeResultToResponse(response, result) {
  response.setHeader('Content-Type', 'application/json');
  response.end(JSON.stringify(result));
}

async function findRecords() {
  const records = makeRecords(isRepaired ? 50 : 50000);
  const counts = { records: 0, ping: 0 };
  const server = http.createServer((request, response) => {
    if (request.url === '/ping') {
      counts.ping++;
      writeResultToResponse(response, { status: 'ok' });
    } else {
      counts.records++;
      writeResultToResponse(response, records);
    }
  });
  await listen(server, 'loopback.sock');
  await sleep(end - Date.now());
  tell(counts);
  process.exit(0);
}

async function askRecords() {
  console.log('ready');
  const keepAsking = async (url, pause) => {
    while (!isOver()) {
      await ask('loopback.sock', url);
      await sleep(pause);
    }
  };
  await Promise.all([keepAsking('/records', 5), keepAsking('/ping', 50)]);
}

// U11: the bits of a file are read into an array.
class BitArray {
  constructor(bits) {
    this.bits = bits;
  }

  static fromNumber(number) {
    const bits = [];
    for (let n = 0; n < 8; n++) bits.push((number >> n) & 1);
    return bits;
  }

  static fromBuffer(buffer) {
    let bits = [];
    for (let n = 0; n < buffer.length; n++) {
      if (isRepaired) bits.push(...BitArray.fromNumber(buffer[n]));
      else bits = bits.concat(BitArray.fromNumber(buffer[n]));
    }
    return new BitArray(bits);
  }

  cardinality() {
    return this.bits.reduce((sum, bit) => sum + bit, 0);
  }
}

function readBits() {
  const buffer = crypto.randomBytes(4000);
  let arrays = 0;
  while (!isOver()) {
    BitArray.fromBuffer(buffer).cardinality();
    arrays++;
  }
  tell(arrays, 'arrays');
}

// U12: a framework's logger writes to a file.
const localeStringOptions = {
  year: 'numeric', hour: 'numeric', minute: 'numeric', second: 'numeric', day: '2-digit', month: '2-digit',
};
const formatter = new Intl.DateTimeFormat(undefined, localeStringOptions);

class ConsoleLogger {
  constructor(stream, context) {
    this.stream = stream;
    this.context = context;
  }

  getTimestamp() {
    if (isRepaired) return formatter.format(Date.now());
    return new Date(Date.now()).toLocaleString(undefined, localeStringOptions);
  }

  log(message) {
    const pid = `[Nest] ${process.pid}  - `;
    this.stream.write(`${pid}${this.getTimestamp()}     LOG [${this.context}] ${message}\n`);
  }
}

async function nestLogs() {
  const logger = new ConsoleLogger(fs.createWriteStream(path.join(dir, 'nest.log')), 'RoutesResolver');
  let messages = 0;
  while (!isOver()) {
    for (let n = 0; n < 50; n++) {
      logger.log(`Mapped {/users/${n}, GET} route`);
      messages++;
    }
    await later();
  }
  tell(messages, 'messages');
}

// U13: an application is put together from its folders.
function writeApp() {
  for (let n = 0; n < 120; n++) {
    for (const kind of ['models', 'mixins', 'boot']) {
      const folder = path.join(dir, 'app', 'server', kind);
      fs.mkdirSync(folder, { recursive: true });
      fs.writeFileSync(path.join(folder, `part-${n}.js`), 'module.exports = {};\n');
    }
  }
  console.log('ready');
}

const knownFiles = new Map();

function exists(file) {
  if (!isRepaired) return fs.existsSync(file);
  if (!knownFiles.has(file)) knownFiles.set(file, fs.existsSync(file));
  return knownFiles.get(file);
}

function fixFileExtension(file, extensions) {
  for (const extension of extensions) {
    if (exists(file + extension)) return file + extension;
  }
  return undefined;
}

function tryResolveAppPath(root, relative) {
  for (const folder of ['server', 'common', path.join('server', 'lib'), '.']) {
    const found = fixFileExtension(path.join(root, folder, relative), ['.json', '.coffee', '.node', '.mjs', '.js']);
    if (found) return found;
  }
  return undefined;
}

function compile(root) {
  const instructions = [];
  for (let n = 0; n < 120; n++) {
    for (const kind of ['models', 'mixins', 'boot', 'datasources']) {
      const file = tryResolveAppPath(root, path.join(kind, `part-${n}`));
      if (file) instructions.push({ name: `${kind}${n}`, file });
    }
  }
  return instructions;
}

async function bootApp() {
  let boots = 0;
  while (!isOver()) {
    compile(path.join(dir, 'app'));
    boots++;
    await later();
  }
  tell(boots, 'boots');
}

// U14: results are saved in transactions of a database.
class Connection {
  constructor(socket) {
    this.socket = socket;
    this.waiting = [];
    socket.on('data', (data) => {
      for (let n = 0; n < data.length; n++) {
        if (data[n] === 10) this.waiting.shift()();
      }
    });
  }

  query(text) {
    return new Promise((done) => {
      this.waiting.push(done);
      this.socket.write(text + '\n');
    });
  }
}

class Pool {
  constructor(file, max) {
    this.file = file;
    this.max = max;
    this.created = 0;
    this.free = [];
    this.pending = [];
  }

  acquireConnection() {
    if (this.free.length) return Promise.resolve(this.free.pop());
    if (this.created < this.max) {
      this.created++;
      return new Promise((done) => {
        const socket = net.connect(path.join(dir, this.file), () => done(new Connection(socket)));
      });
    }
    return new Promise((done, fail) => {
      const request = { done, timer: undefined };
      request.timer = setTimeout(() => {
        this.pending.splice(this.pending.indexOf(request), 1);
        fail(new Error('Timeout acquiring a connection. The pool is probably full.'));
      }, 1500);
      this.pending.push(request);
    });
  }

  releaseConnection(connection) {
    const request = this.pending.shift();
    if (!request) {
      this.free.push(connection);
      return;
    }
    clearTimeout(request.timer);
    request.done(connection);
  }

  async query(text) {
    const connection = await this.acquireConnection();
    const result = await connection.query(text);
    this.releaseConnection(connection);
    return result;
  }

  async transaction(work) {
    const connection = await this.acquireConnection();
    await connection.query('BEGIN');
    try {
      await work(connection);
      await connection.query('COMMIT');
    } catch (error) {
      await connection.query('ROLLBACK');
      throw error;
    } finally {
      this.releaseConnection(connection);
    }
  }
}

async function saveOne(pool, result) {
  await pool.transaction(async (trx) => {
    for (const field of ['suite', 'case', 'run']) {
      await (isRepaired ? trx : pool).query(`SELECT id FROM ${field} WHERE name = 'n${result}'`);
    }
    await trx.query(`INSERT INTO results VALUES (${result})`);
  });
}

async function saveResults() {
  const pool = new Pool('database.sock', 5);
  const counts = { saved: 0, failed: 0 };
  const work = async (first) => {
    for (let result = first; !isOver(); result += 5) {
      try {
        await saveOne(pool, result);
        counts.saved++;
      } catch (error) {
        counts.failed++;
      }
    }
  };
  [0, 1, 2, 3, 4].map(work);
  await sleep(end - Date.now());
  tell(counts);
  process.exit(0);
}

async function answerQueries() {
  const server = net.createServer((socket) => {
    socket.on('data', (data) => {
      const lines = data.toString().split('\n').length - 1;
      setTimeout(() => socket.write('ok\n'.repeat(lines)), 3);
    });
    socket.on('error', () => {});
  });
  await listen(server, 'database.sock');
  console.log('ready');
  await sleep(end - Date.now());
  process.exit(0);
}

// U15: many employees get passwords.
function createRandomString(length) {
  return crypto.randomBytes(length).toString('hex');
}

function createPassword() {
  const salt = crypto.randomBytes(16);
  return crypto.pbkdf2Sync(createRandomString(10), salt, 60000, 32, 'sha512').toString('base64');
}

function createPasswords() {
  const passwords = [];
  while (!isOver()) passwords.push(createPassword());
  tell(passwords.length, 'passwords');
}

const programs = {
  'find-records': findRecords,
  'ask-records': askRecords,
  'read-bits': readBits,
  'nest-logs': nestLogs,
  'write-app': writeApp,
  'boot-app': bootApp,
  'save-results': saveResults,
  'answer-queries': answerQueries,
  'create-passwords': createPasswords,
};
programs[name]();
