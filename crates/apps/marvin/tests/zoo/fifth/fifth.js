'use strict';
// Cases of set Z for Node: argv = name seconds folder [fixed].
const fs = require('fs');
const path = require('path');
const http = require('http');
const { EventEmitter } = require('events');
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const { spawn, spawnSync } = require('child_process');

const [name, seconds, folder] = [process.argv[2], Number(process.argv[3]), process.argv[4]];
const fixed = process.argv[5] === 'fixed';
const end = Date.now() + seconds * 1000;
const running = () => Date.now() < end;

function report(done, what) {
  console.log(`${name}: ${done} ${what} in ${seconds} s${fixed ? ' (fixed)' : ''}`);
  process.exit(0);
}

// ---- test-resolve: module resolution of a test runner

const seen = new Map();

function isFile(file) {
  if (fixed && seen.has(file)) return seen.get(file);
  let found = false;
  try {
    const stat = fs.statSync(file);
    found = stat.isFile() || stat.isFIFO();
  } catch (e) {
    if (e.code !== 'ENOENT' && e.code !== 'ENOTDIR') throw e;
  }
  if (fixed) seen.set(file, found);
  return found;
}

function loadAsFileSync(base) {
  if (isFile(base)) return base;
  for (const extension of ['.ts', '.tsx', '.json', '.js']) {
    if (isFile(base + extension)) return base + extension;
  }
  return null;
}

function nodeModulesPaths(start) {
  const dirs = [];
  for (let dir = start; ; dir = path.dirname(dir)) {
    dirs.push(path.join(dir, 'node_modules'));
    if (dir === path.dirname(dir)) return dirs;
  }
}

function resolveSync(request, basedir) {
  for (const dir of nodeModulesPaths(basedir)) {
    const found = loadAsFileSync(path.join(dir, request)) || loadAsFileSync(path.join(dir, request, 'index'));
    if (found) return found;
  }
  return null;
}

function runSuite(requests, basedir) {
  const source = 'describe(a => { expect(a).toBe(1); });'.repeat(20);
  let size = 0;
  for (const request of requests) {
    const file = resolveSync(request, basedir);
    if (!file) throw new Error(request);
    for (const word of source.split(/\b/)) size += word.length;
  }
  return size;
}

function testResolve() {
  const top = path.join(folder, 'app');
  const basedir = path.join(top, 'src', 'components', 'list');
  fs.mkdirSync(basedir, { recursive: true });
  const requests = [];
  for (let i = 0; i < 60; i++) {
    const dir = path.join(top, 'node_modules', `lib-${i}`);
    fs.mkdirSync(dir, { recursive: true });
    fs.writeFileSync(path.join(dir, 'index.js'), 'module.exports = {};\n');
    requests.push(`lib-${i}`);
  }
  let done = 0;
  while (running()) {
    runSuite(requests, basedir);
    done++;
  }
  report(done, 'suites');
}

// ---- disk-usage: a web interface which shows the room on its disks

function spawnAsync(command, args) {
  if (fixed) {
    return new Promise((resolve) => {
      const child = spawn(command, args);
      let out = '';
      child.stdout.on('data', (d) => { out += d; });
      child.on('close', () => resolve(out));
    });
  }
  return new Promise((resolve) => {
    resolve(spawnSync(command, args).stdout.toString());
  });
}

async function diskUsage(mounts) {
  const sizes = {};
  for (const mount of mounts) {
    const out = await spawnAsync('df', ['-k', mount]);
    sizes[mount] = out.split('\n')[1];
  }
  return sizes;
}

function diskUsageService() {
  const mounts = ['/', '/tmp', '/var', '/usr', folder];
  let polls = 0;
  let late = 0;
  let ticks = 0;
  let last = Date.now();
  setInterval(() => {
    const now = Date.now();
    late = Math.max(late, now - last - 5);
    last = now;
    ticks++;
    if (!running()) report(polls, `polls, ${ticks} of ${seconds * 200} ticks of the activity stream, latest ${late} ms late,`);
  }, 5);
  const poll = async () => {
    await diskUsage(mounts);
    polls++;
    setTimeout(poll, 5);
  };
  poll();
}

// ---- cache-response: middleware which keeps a copy of each answer

function accumulateContent(res, content) {
  if (!content) return;
  if (fixed) {
    (res.chunks = res.chunks || []).push(content);
    return;
  }
  const cache = res.apicache;
  cache.content = Buffer.concat([cache.content, content], cache.content.length + content.length);
}

function proxyResponse(chunk, size) {
  const res = new EventEmitter();
  res.apicache = { content: Buffer.alloc(0) };
  for (let sent = 0; sent < size; sent += chunk.length) accumulateContent(res, chunk);
  if (fixed) res.apicache.content = Buffer.concat(res.chunks);
  return res.apicache.content.length;
}

function cacheResponse() {
  const chunk = Buffer.alloc(4096, 'x');
  let done = 0;
  const next = () => {
    if (!running()) report(done, 'answers');
    proxyResponse(chunk, 4 * 1024 * 1024);
    done++;
    setImmediate(next);
  };
  next();
}

// ---- mirror-cache: files kept in memory by a package mirror

class CacheItem {
  constructor(key, expireSeconds) {
    this.key = key;
    this.data = Buffer.alloc(512, key);
    this.hits = 0;
    this.checks = 0;
    this.born = Date.now();
    this.ttl = expireSeconds * 1000;
    const every = this.ttl * 1000;
    this.timer = setInterval(() => this.expire(), fixed ? Math.min(every, 2 ** 31 - 1) : every);
  }

  expire() {
    this.checks++;
    if (this.data && Date.now() - this.born > this.ttl && this.hits === 0) {
      this.data = null;
      clearInterval(this.timer);
    }
  }
}

function mirrorCache() {
  process.removeAllListeners('warning');
  const items = [];
  for (let i = 0; i < 10000; i++) items.push(new CacheItem(`package-${i}`, 3600));
  setTimeout(() => {
    const used = process.cpuUsage();
    const checks = items.reduce((sum, item) => sum + item.checks, 0);
    report(checks, `checks, ${((used.user + used.system) / 1e6).toFixed(2)} s of processor`);
  }, seconds * 1000);
}

// ---- library-sort: songs of a library by name

const numericSortCollator = new Intl.Collator(undefined, { numeric: true });

function sortSongList(songs) {
  if (fixed) return songs.sort((a, b) => numericSortCollator.compare(a.name, b.name));
  return songs.sort((a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }));
}

function librarySort() {
  const songs = [];
  for (let i = 0; i < 1000; i++) songs.push({ name: `Track ${(i * 7919) % 1000} of ${i % 13}`, id: i });
  let done = 0;
  while (running()) {
    sortSongList(songs.slice());
    done++;
  }
  report(done, 'sorts');
}

// ---- image-fetch: an image converter which gets its sources by HTTP

function originServer() {
  const page = Buffer.alloc(400 * 1024, '<p>not found</p>\n');
  const image = Buffer.alloc(2000, 1);
  const server = http.createServer((req, res) => {
    if (req.url.startsWith('/missing')) {
      res.writeHead(404, { 'content-length': page.length });
      res.end(page);
    } else {
      res.writeHead(200, { 'content-length': image.length });
      res.end(image);
    }
  });
  server.keepAliveTimeout = 0;
  server.requestTimeout = 0;
  server.listen(0, '127.0.0.1', () => {
    fs.writeFileSync(path.join(folder, 'origin.port'), String(server.address().port));
    console.log('ready');
  });
  setTimeout(() => process.exit(0), seconds * 1000);
}

function fetchSource(agent, port, url) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('Processing Timeout')), 60000);
    http.get({ host: '127.0.0.1', port, path: url, agent }, (res) => {
      if (res.statusCode !== 200) {
        if (fixed) res.resume();
        clearTimeout(timer);
        reject(new Error(`source answered ${res.statusCode}`));
        return;
      }
      let size = 0;
      res.on('data', (d) => { size += d.length; });
      res.on('end', () => { clearTimeout(timer); resolve(size); });
    }).on('error', reject);
  });
}

function imageFetch() {
  const port = Number(fs.readFileSync(path.join(folder, 'origin.port'), 'utf8'));
  const agent = new http.Agent({ keepAlive: true, maxSockets: 5 });
  let done = 0;
  let failed = 0;
  const work = async (n) => {
    for (let i = 0; ; i++) {
      try {
        await fetchSource(agent, port, i < 2 ? `/missing/${n}-${i}.png` : `/images/${n}-${i}.png`);
        done++;
      } catch (e) {
        failed++;
      }
    }
  };
  for (let n = 0; n < 8; n++) work(n);
  setTimeout(() => report(done, `images, ${failed} failed,`), seconds * 1000);
}

// ---- job-runner: small jobs outside of the main thread

function jobBody(n) {
  let sum = 0;
  for (let i = 0; i < n; i++) sum += i % 7;
  return sum;
}

function job(data) {
  return new Promise((resolve, reject) => {
    const worker = new Worker(__filename, { workerData: data, argv: process.argv.slice(2) });
    worker.once('message', (m) => { worker.terminate().then(() => resolve(m)); });
    worker.once('error', reject);
  });
}

let pooled;
function pooledJob(data) {
  pooled = pooled || new Worker(__filename, { workerData: -1, argv: process.argv.slice(2) });
  return new Promise((resolve) => {
    pooled.once('message', resolve);
    pooled.postMessage(data);
  });
}

async function jobRunner() {
  let done = 0;
  while (running()) {
    await (fixed ? pooledJob(20000) : job(20000));
    done++;
  }
  report(done, 'jobs');
}

if (!isMainThread) {
  if (workerData === -1) parentPort.on('message', (n) => parentPort.postMessage(jobBody(n)));
  else parentPort.postMessage(jobBody(workerData));
} else {
  const cases = {
    'test-resolve': testResolve,
    'disk-usage': diskUsageService,
    'cache-response': cacheResponse,
    'mirror-cache': mirrorCache,
    'library-sort': librarySort,
    'origin-server': originServer,
    'image-fetch': imageFetch,
    'job-runner': jobRunner,
  };
  cases[name]();
}
