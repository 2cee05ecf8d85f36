// Test programs for Node, each chosen by the first argument: CASE SECONDS FOLDER.
'use strict';
const fs = require('fs');
const path = require('path');
const vm = require('vm');
const zlib = require('zlib');
const {Transform, Readable} = require('stream');
const {performance} = require('perf_hooks');

const started = Date.now();
const seconds = Number(process.argv[3] || 4);
const end = started + seconds * 1000;
const running = () => Date.now() < end;
const turn = () => new Promise(resolve => setImmediate(resolve));

function ownFolder(name) {
  const folder = path.join(process.argv[4], name);
  fs.rmSync(folder, {recursive: true, force: true});
  fs.mkdirSync(folder, {recursive: true});
  return folder;
}

function finish(name, count, things) {
  console.log(`${name}: ${count} ${things}`);
  process.exit(0);
}

function featureEnabled(name) {
  return process.env['FEATURE_' + name] === 'on' || process.env.NODE_ENV === 'test';
}

function renderComponent(depth) {
  if (depth === 0) return featureEnabled('LEAF') ? 'x' : 'y';
  return '<b>' + renderComponent(depth - 1) + renderComponent(depth - 1) + '</b>';
}

function serverRender() {
  for (let i = 0; i < 5000; i++) process.env[`SERVICE_${i}_PORT`] = `tcp://10.0.0.1:${i}`;
  let pages = 0;
  while (running()) {
    renderComponent(4);
    pages++;
  }
  finish('server-render', pages, 'pages');
}

function monthReport() {
  process.removeAllListeners('warning');
  let runs = 0;
  const compile = () => {
    let sum = 0;
    for (let i = 0; i < 40000; i++) sum += (i * runs) % 7;
    return sum;
  };
  const schedule = () => {
    const now = new Date(2026, 0, 2);
    const nextMonth = new Date(now.getFullYear(), now.getMonth() + 1);
    if (!running()) finish('month-report', runs, 'reports');
    setTimeout(() => {
      compile();
      runs++;
      schedule();
    }, nextMonth - now);
  };
  schedule();
}

class Memoized {
  constructor(check, maxSize) {
    this.check = check;
    this.maxSize = maxSize;
    this.cache = new Map();
    this.evict = this.evict.bind(this);
  }

  evict() {
    while (this.cache.size > this.maxSize) {
      this.cache.delete(this.cache.keys().next().value);
    }
  }

  validate(value) {
    const known = this.cache.get(value);
    if (known !== undefined) {
      this.cache.delete(value);
      this.cache.set(value, known);
      return known;
    }
    const result = this.check(value);
    this.cache.set(value, result);
    if (this.cache.size === this.maxSize + 1) setImmediate(this.evict);
    return result;
  }
}

async function dateValidator() {
  const dates = new Memoized(value => value.length === 24 && value[10] === 'T', 120000);
  let checked = 0;
  while (running()) {
    for (let i = 0; i < 250; i++) {
      checked++;
      dates.validate(`2026-01-02T10:00:${String(checked).padStart(7, '0')}`);
    }
    await turn();
  }
  finish('date-validator', checked, 'dates');
}

const TEST_FILE = `
  (function suite(rounds) {
    for (let i = 0; i < rounds; i++) {
      total = total + weight * (i & limit);
      if (total > ceiling) total = 0;
    }
    return total;
  })
`;

function suiteRunner() {
  const context = vm.createContext({total: 0, weight: 3, limit: 15, ceiling: 1e9});
  const suite = vm.runInContext(TEST_FILE, context);
  let rounds = 0;
  while (running()) {
    suite(2000);
    rounds += 2000;
  }
  finish('suite-runner', rounds, 'assertions');
}

class Marky {
  mark(name) {
    performance.mark(`start ${name}`);
  }

  stop(name) {
    performance.mark(`end ${name}`);
    performance.measure(name, `start ${name}`, `end ${name}`);
    const entries = performance.getEntriesByName(name);
    return entries[entries.length - 1].duration;
  }
}

async function spanTimer() {
  const marky = new Marky();
  let spans = 0;
  while (running()) {
    const name = `query ${spans % 4000}`;
    marky.mark(name);
    marky.stop(name);
    spans++;
    if (spans % 100 === 0) await turn();
  }
  finish('span-timer', spans, 'spans');
}

function packLine(line) {
  return new Promise(resolve => zlib.deflate(line, (err, data) => resolve(data)));
}

async function logShipper() {
  let lines = 0;
  while (running()) {
    const batch = [];
    for (let i = 0; i < 1500; i++) batch.push(packLine(Buffer.from(`{"n":${i},"m":"ok"}`)));
    lines += (await Promise.all(batch)).length;
  }
  finish('log-shipper', lines, 'lines');
}

class PageTransform extends Transform {
  constructor(folder) {
    super({objectMode: true});
    this.folder = folder;
    this.pages = 0;
  }

  _transform(page, encoding, done) {
    fs.writeFile(path.join(this.folder, `${page}.html`), `<p>${page}</p>`, err => {
      this.pages++;
      done(err, page);
    });
  }
}

function viewBuilder() {
  const build = new PageTransform(ownFolder('view-builder'));
  const pages = Array.from({length: 5000}, (_, i) => `page${i}`);
  setTimeout(() => finish('view-builder', build.pages, 'pages'), end - Date.now());
  Readable.from(pages).pipe(build).on('finish', () => {
    finish('view-builder', build.pages, 'pages');
  });
}

class FrameConsumer {
  constructor() {
    this.group = 0;
  }

  async next() {
    await null;
    this.group++;
    return {group: this.group, frame: {time: this.group, planes: [{y: 1}, {u: 2}, {v: 3}]}};
  }
}

async function frameDecoder() {
  const closed = new Promise(() => {});
  const consumer = new FrameConsumer();
  let frames = 0;
  while (running()) {
    const next = await Promise.race([consumer.next(), closed]);
    if (next === undefined) break;
    frames += next.frame.planes.length > 0 ? 1 : 0;
  }
  finish('frame-decoder', frames, 'frames');
}

const cases = {
  'server-render': serverRender,
  'month-report': monthReport,
  'date-validator': dateValidator,
  'suite-runner': suiteRunner,
  'span-timer': spanTimer,
  'log-shipper': logShipper,
  'view-builder': viewBuilder,
  'frame-decoder': frameDecoder,
};

cases[process.argv[2]]();
