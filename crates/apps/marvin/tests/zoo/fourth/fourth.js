'use strict';
// Programs written from public reports: fourth.js NAME SECONDS DIR [fixed]
const fs = require('fs');
const http = require('http');
const path = require('path');
const crypto = require('crypto');
const zlib = require('zlib');

const NAME = process.argv[2];
const SECONDS = Number(process.argv[3]);
const DIR = process.argv[4];
const FIXED = process.argv[5] === 'fixed';
const END = Date.now() + SECONDS * 1000;

function running() {
  return Date.now() < END;
}

function report(label, count) {
  console.log(`${NAME}: ${count} ${label} in ${SECONDS} s`);
}

// ------------------------------------------------------------------ W12
// A service that checks passwords and serves small images.
class ImageService {
  constructor() {
    this.waiting = 0;
    this.served = 0;
    this.worst = 0;
    this.total = 0;
  }

  verifyPassword(done) {
    crypto.pbkdf2('correct horse', 'battery staple', 60000, 64, 'sha512', done);
  }

  logins(count) {
    const next = () => {
      if (running()) this.verifyPassword(next);
    };
    for (let i = 0; i < count; i++) next();
  }

  serveImage(file) {
    const began = process.hrtime.bigint();
    fs.readFile(file, () => {
      const ms = Number(process.hrtime.bigint() - began) / 1e6;
      this.served++;
      this.total += ms;
      this.worst = Math.max(this.worst, ms);
    });
  }
}

function imageService() {
  const file = path.join(DIR, 'logo.png');
  fs.writeFileSync(file, crypto.randomBytes(20000));
  const service = new ImageService();
  service.logins(FIXED ? 2 : 8);
  const timer = setInterval(() => {
    if (!running()) {
      clearInterval(timer);
      setTimeout(() => {
        console.log(`mean ${(service.total / service.served).toFixed(1)} ms, worst ${service.worst.toFixed(0)} ms`);
        report('images', service.served);
        process.exit(0);
      }, 300);
      return;
    }
    service.serveImage(file);
  }, 50);
}

// ------------------------------------------------------------------ W13
class FileLock {
  constructor(file) {
    this.dir = file + '.lock';
  }

  acquire(options, done, attempt) {
    attempt = attempt || 0;
    fs.mkdir(this.dir, (err) => {
      if (!err) return done();
      if (err.code !== 'EEXIST') throw err;
      const pause = Math.min(options.minTimeout * Math.pow(options.factor, attempt), options.maxTimeout);
      setTimeout(() => this.acquire(options, done, attempt + 1), pause);
    });
  }

  release(done) {
    fs.rmdir(this.dir, done);
  }
}

function otherSuite() {
  const lock = new FileLock(path.join(DIR, 'testcontainers-node'));
  try { fs.rmdirSync(lock.dir); } catch (e) { /* not there */ }
  console.log('ready');
  const round = () => {
    if (!running()) process.exit(0);
    lock.acquire({ minTimeout: 2, factor: 1, maxTimeout: 2 }, () => {
      setTimeout(() => lock.release(() => setTimeout(round, 30)), 30);
    });
  };
  round();
}

function testContainers() {
  const lock = new FileLock(path.join(DIR, 'testcontainers-node'));
  const options = FIXED ? { minTimeout: 8, factor: 1, maxTimeout: 8 } : { minTimeout: 1000, factor: 2, maxTimeout: 1e9 };
  let started = 0;
  const reaperInit = () => {
    lock.acquire(options, () => {
      setTimeout(() => lock.release(() => {
        started++;
        setTimeout(reaperInit, 5);
      }), 3);
    });
  };
  for (let suite = 0; suite < 6; suite++) setTimeout(reaperInit, suite * 70);
  setTimeout(() => {
    report('containers', started);
    try { fs.rmdirSync(lock.dir); } catch (e) { /* of the other, or none */ }
    process.exit(0);
  }, SECONDS * 1000);
}

// ------------------------------------------------------------------ W14
function apiServer() {
  const body = JSON.stringify({ rates: Array.from({ length: 20 }, (_, i) => ({ id: i, price: i * 1.5 })) });
  const server = http.createServer((req, res) => {
    res.setHeader('content-type', 'application/json');
    res.end(body);
  });
  server.listen(0, '127.0.0.1', () => {
    fs.writeFileSync(path.join(DIR, 'api.port'), String(server.address().port));
    console.log('ready');
  });
  setTimeout(() => process.exit(0), SECONDS * 1000);
}

function apiPoller() {
  const port = Number(fs.readFileSync(path.join(DIR, 'api.port'), 'utf8'));
  const agent = FIXED ? new http.Agent({ keepAlive: true, maxSockets: 4 }) : new http.Agent({ maxSockets: 4 });
  let done = 0;
  const getRates = () => {
    if (!running()) return;
    http.get({ host: '127.0.0.1', port, path: '/rates', agent }, (res) => {
      res.resume();
      res.on('end', () => {
        done++;
        setImmediate(getRates);
      });
    }).on('error', () => setTimeout(getRates, 5));
  };
  for (let i = 0; i < 4; i++) getRates();
  setTimeout(() => {
    report('answers', done);
    process.exit(0);
  }, SECONDS * 1000);
}

// ------------------------------------------------------------------ W15
class PackageTree {
  constructor() {
    this.paths = new Map();
    this.nodes = 0;
  }

  realpath(p) {
    if (!FIXED) return fs.realpathSync(p);
    const parent = path.dirname(p);
    let known = this.paths.get(parent);
    if (known === undefined) {
      known = fs.realpathSync(parent);
      this.paths.set(parent, known);
    }
    return fs.lstatSync(p).isSymbolicLink() ? fs.realpathSync(p) : path.join(known, path.basename(p));
  }

  readPackage(dir) {
    const real = this.realpath(dir);
    this.nodes++;
    return { path: dir, real, children: this.readChildren(dir) };
  }

  readChildren(dir) {
    const modules = path.join(dir, 'node_modules');
    let names;
    try {
      names = fs.readdirSync(modules);
    } catch (e) {
      return [];
    }
    return names.map((n) => this.readPackage(path.join(modules, n)));
  }
}

function packageTree() {
  const root = path.join(DIR, 'Users/hyooman/projects/company/products/main/website');
  for (let i = 0; i < 40; i++) {
    for (let j = 0; j < 20; j++) {
      fs.mkdirSync(path.join(root, 'node_modules', `package-${i}`, 'node_modules', `dep-${j}`, 'node_modules'), { recursive: true });
    }
  }
  let rounds = 0;
  let nodes = 0;
  while (running()) {
    const tree = new PackageTree();
    tree.readPackage(root);
    nodes += tree.nodes;
    rounds++;
  }
  report('packages', nodes);
  return rounds;
}

// ------------------------------------------------------------------ W16
// A deep copy that keeps the identity of objects met twice.
function clone(parent) {
  const allParents = [];
  const allChildren = [];
  function _clone(node) {
    if (node === null || typeof node !== 'object') return node;
    if (node instanceof Date) return new Date(node.getTime());
    const child = Array.isArray(node) ? [] : Object.create(Object.getPrototypeOf(node));
    const index = allParents.indexOf(node);
    if (index !== -1) return allChildren[index];
    allParents.push(node);
    allChildren.push(child);
    for (const i in node) child[i] = _clone(node[i]);
    return child;
  }
  return _clone(parent);
}

class NodeCache {
  constructor(options) {
    this.options = options;
    this.data = {};
  }

  _wrap(value) {
    return { t: 0, v: this.options.useClones ? clone(value) : value };
  }

  _unwrap(entry) {
    return this.options.useClones ? clone(entry.v) : entry.v;
  }

  set(key, value) {
    this.data[key] = this._wrap(value);
  }

  get(key) {
    return this._unwrap(this.data[key]);
  }
}

function configCache() {
  const cache = new NodeCache({ useClones: !FIXED });
  const settings = [];
  for (let i = 0; i < 1500; i++) {
    settings.push({ id: i, name: `setting ${i}`, limits: { low: i, high: i * 2 }, tags: ['a', 'b', `t${i % 9}`] });
  }
  cache.set('settings', settings);
  let done = 0;
  let sum = 0;
  while (running()) {
    const item = cache.get('settings');
    for (let i = 0; i < item.length; i++) sum += item[i].limits.high;
    done++;
  }
  report('reads', done);
  return sum;
}

// ------------------------------------------------------------------ W17
function counting(list, identity) {
  if (FIXED) {
    return list.reduce((acc, item) => {
      const id = identity(item);
      acc[id] = (acc[id] || 0) + 1;
      return acc;
    }, {});
  }
  return list.reduce((acc, item) => {
    const id = identity(item);
    return { ...acc, [id]: (acc[id] || 0) + 1 };
  }, {});
}

function wordCount() {
  const words = [];
  for (let i = 0; i < 1200; i++) words.push({ word: `w${(i * 7919) % 800}x` });
  let done = 0;
  let total = 0;
  while (running()) {
    total += counting(words, (w) => w.word).w0x;
    done++;
  }
  report('texts', done);
  return total;
}

// ------------------------------------------------------------------ W18 (healthy)
class Archiver {
  constructor(file, level) {
    this.fd = fs.openSync(file, 'w');
    this.level = level;
    this.written = 0;
    this.entries = 0;
  }

  append(data, name, done) {
    zlib.deflateRaw(data, { level: this.level }, (err, packed) => {
      if (err) throw err;
      const head = Buffer.alloc(30);
      head.writeUInt32LE(0x04034b50, 0);
      head.writeUInt32LE(packed.length, 18);
      head.writeUInt32LE(data.length, 22);
      head.writeUInt16LE(name.length, 26);
      const part = Buffer.concat([head, Buffer.from(name), packed]);
      fs.write(this.fd, part, 0, part.length, this.written % (64 << 20), () => {
        this.written += part.length;
        this.entries++;
        done();
      });
    });
  }
}

function zipArchive() {
  const words = ['report', 'of', 'the', 'measurement', 'value', 'total', 'error', 'none'];
  let text = '';
  let x = 12345;
  while (text.length < 2000000) {
    x = (x * 1103515245 + 12345) % 2147483648;
    text += words[x % 8] + ' ' + (x % 5000) + (x % 11 === 0 ? '\n' : ' ');
  }
  const data = Buffer.from(text);
  const archive = new Archiver(path.join(DIR, 'all.zip'), 6);
  const next = () => {
    if (!running()) {
      report('files', archive.entries);
      return;
    }
    archive.append(data, `file-${archive.entries}.txt`, next);
  };
  next();
}

const PROGRAMS = {
  'image-service': imageService,
  'other-suite': otherSuite,
  'test-containers': testContainers,
  'api-server': apiServer,
  'api-poller': apiPoller,
  'package-tree': packageTree,
  'config-cache': configCache,
  'word-count': wordCount,
  'zip-archive': zipArchive,
};

PROGRAMS[NAME]();
