'use strict';
// Programs after public reports, one function a case: sixth.js NAME SECONDS FOLDER [fixed].
const fs = require('node:fs');
const path = require('node:path');
const http = require('node:http');
const crypto = require('node:crypto');
const { spawn } = require('node:child_process');

const NAME = process.argv[2];
const SECONDS = Number(process.argv[3]);
const FOLDER = process.argv[4];
const FIXED = process.argv[5] === 'fixed';
const START = Date.now();

const going = () => Date.now() - START < SECONDS * 1000;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const turn = () => new Promise((resolve) => setImmediate(resolve));

function done(count, unit) {
  console.log(`${NAME}: ${count} ${unit} in ${((Date.now() - START) / 1000).toFixed(1)} s`);
}

// dashboard-render: pages made of modules, each with a template
class Templater {
  constructor(folder) {
    this.folder = folder;
    this.sources = new Map();
    this.compiled = new Map();
  }

  loadTemplate(name) {
    const file = path.join(this.folder, name + '.html');
    if (FIXED && this.sources.has(file)) return this.sources.get(file);
    const source = fs.readFileSync(file, 'utf8');
    this.sources.set(file, source);
    return source;
  }

  render(name, context) {
    const source = this.loadTemplate(name);
    let parts = this.compiled.get(name);
    if (!parts || parts.source.length !== source.length) {
      parts = { source, list: source.split(/\{\{(\w+)\}\}/) };
      this.compiled.set(name, parts);
    }
    let out = '';
    for (let i = 0; i < parts.list.length; i++) {
      out += i % 2 ? context[parts.list[i]] : parts.list[i];
    }
    return out;
  }
}

async function dashboardRender() {
  const names = [];
  for (let i = 0; i < 12; i++) {
    names.push('module-' + i);
    fs.writeFileSync(path.join(FOLDER, names[i] + '.html'),
      `<section id="m${i}"><h2>{{title}}</h2><p>{{value}}</p>${'<br>'.repeat(200)}</section>`);
  }
  const templater = new Templater(FOLDER);
  let pages = 0;
  while (going()) {
    let page = '';
    for (const name of names) page += templater.render(name, { title: name, value: pages });
    if (page.length < 100) throw new Error('empty');
    pages++;
    if (pages % 20 === 0) await turn();
  }
  done(pages, 'pages');
}

// vault-service: opens vaults for several users, and answers others meanwhile
function deriveFromPassword(password, salt, rounds) {
  if (FIXED) {
    return new Promise((resolve, reject) => {
      crypto.pbkdf2(password, salt, rounds, 64, 'sha256',
        (error, key) => (error ? reject(error) : resolve(key)));
    });
  }
  return Promise.resolve(crypto.pbkdf2Sync(password, salt, rounds, 64, 'sha256'));
}

async function decryptVault(user) {
  const derived = await deriveFromPassword('password of ' + user, 'salt' + user, 60000);
  return crypto.createHmac('sha256', derived.subarray(32)).update('vault').digest('hex');
}

async function vaultService() {
  let vaults = 0;
  let answers = 0;
  const ticker = setInterval(() => { answers++; }, 5);
  const user = async (id) => {
    while (going()) {
      await decryptVault(id + '-' + vaults);
      vaults++;
      await pause(1);
    }
  };
  await Promise.all([user('a'), user('b')]);
  clearInterval(ticker);
  done(vaults, `vaults and ${answers} other answers`);
}

// asset-tree: the sources that asset-watch looks at
function sources() {
  return Array.from({ length: 3000 }, (_, i) => path.join(FOLDER, 'src-' + i + '.js'));
}

function assetTree() {
  for (const file of sources()) fs.writeFileSync(file, 'export default {};');
  console.log('ready');
  setTimeout(() => {}, SECONDS * 1000);
}

// asset-watch: looks for changes of the sources of a client
async function assetWatch() {
  const files = sources();
  let changes = 0;
  const watchers = [];
  function setFsWatchFileListener(file) {
    fs.watchFile(file, { persistent: true, interval: 100 }, () => { changes++; });
  }
  if (FIXED) {
    watchers.push(fs.watch(FOLDER, () => { changes++; }));
  } else {
    for (const file of files) setFsWatchFileListener(file);
  }
  while (going()) await pause(50);
  const cpu = process.cpuUsage();
  done(changes, `changes, ${Math.round((cpu.user + cpu.system) / 1000)} ms of processor`);
  process.exit(0);
}

// event-log: writes what happened into a file
class Logger {
  constructor(folder) {
    this.file = path.join(folder, 'hive.log');
    if (FIXED) this.stream = fs.createWriteStream(this.file, { flags: 'a' });
  }

  async writeLog(level, message) {
    const line = JSON.stringify({ time: Date.now(), level, message }) + '\n';
    if (this.stream) {
      if (!this.stream.write(line)) {
        await new Promise((resolve) => this.stream.once('drain', resolve));
      }
      return;
    }
    await fs.promises.appendFile(this.file, line);
  }
}

async function eventLog() {
  const logger = new Logger(FOLDER);
  let lines = 0;
  while (going() && lines < 900000) {
    await logger.writeLog('info', 'task ' + lines + ' of session ' + (lines % 17) + ' ended');
    lines++;
    if (lines % 500 === 0) await turn();
  }
  done(lines, 'lines');
}

// date-grid: formats the dates of a table
class DateTime {
  constructor(time) { this.time = time; }

  static formatters = new Map();

  toLocaleString(locale, options) {
    if (FIXED) {
      const key = locale + JSON.stringify(options);
      let formatter = DateTime.formatters.get(key);
      if (!formatter) {
        formatter = new Intl.DateTimeFormat(locale, options);
        DateTime.formatters.set(key, formatter);
      }
      return formatter.format(this.time);
    }
    return new Intl.DateTimeFormat(locale, options).format(this.time);
  }
}

async function dateGrid() {
  const options = { year: 'numeric', month: 'long', day: 'numeric', hour: '2-digit',
    minute: '2-digit', timeZone: 'Europe/Copenhagen' };
  const locales = ['de', 'fr', 'da'];
  require('node:v8').setFlagsFromString('--expose-gc');
  const trim = require('node:vm').runInNewContext('gc'); // keeps the process below 300 MB
  let cells = 0;
  while (going()) {
    const row = [];
    for (let i = 0; i < 30; i++) {
      row.push(new DateTime(1.54e12 + cells * 3.6e6).toLocaleString(locales[i % 3], options));
      cells++;
    }
    if (row.join(' ').length < 30) throw new Error('empty');
    if (cells % 300 === 0) await turn();
    if (cells % 4500 === 0) trim();
  }
  done(cells, 'cells');
}

// browser-server: the server that browser-tests starts
function browserServer() {
  let requests = 0;
  const writeLog = (line) => fs.writeSync(1, line);
  const server = http.createServer((req, res) => {
    requests++;
    writeLog(`request ${requests} ${req.url} ` + 'x'.repeat(1500) + '\n');
    res.end('ok');
  });
  server.keepAliveTimeout = 60000;
  server.listen(0, '127.0.0.1', () => {
    fs.writeFileSync(path.join(FOLDER, 'server.port'), String(server.address().port));
  });
  setTimeout(() => process.exit(0), SECONDS * 1000 + 500);
}

// browser-tests: starts a server and loads its pages
async function browserTests() {
  const portFile = path.join(FOLDER, 'server.port');
  fs.rmSync(portFile, { force: true });
  const server = spawn(process.execPath,
    [__filename, 'browser-server', String(SECONDS), FOLDER],
    { stdio: ['ignore', 'pipe', 'inherit'] });
  if (FIXED) server.stdout.on('data', () => {});
  while (!fs.existsSync(portFile) || !fs.readFileSync(portFile, 'utf8')) await pause(20);
  const port = Number(fs.readFileSync(portFile, 'utf8'));
  const agent = new http.Agent({ keepAlive: true, maxSockets: 2 });
  let pages = 0;
  const ending = setTimeout(() => {
    done(pages, 'pages');
    server.kill('SIGKILL');
    process.exit(0);
  }, SECONDS * 1000 - (Date.now() - START));
  ending.ref();
  function navigate(number) {
    return new Promise((resolve, reject) => {
      http.get({ host: '127.0.0.1', port, agent, path: '/page/' + number }, (res) => {
        res.resume();
        res.on('end', resolve);
      }).on('error', reject);
    });
  }
  for (;;) {
    await navigate(pages);
    pages++;
    await pause(2);
  }
}

// workflow-runner: takes jobs of a queue and runs them
class WorkflowRunner {
  constructor(jobs) {
    this.queue = jobs;
    this.slots = 2;
    this.finished = 0;
    this.runInterval = 800;
  }

  async runJob(job) {
    for (const task of job.tasks) {
      await pause(3);
      crypto.createHash('sha1').update(task).digest();
    }
    this.finished++;
  }

  async doPoll() {
    const jobs = this.queue.splice(0, this.slots);
    await Promise.all(jobs.map((job) => this.runJob(job)));
  }

  run() {
    if (FIXED) {
      const next = async () => {
        await this.doPoll();
        this.timer = setTimeout(next, this.queue.length ? 1 : this.runInterval);
      };
      next();
    } else {
      this.timer = setInterval(() => this.doPoll(), this.runInterval);
    }
  }
}

async function workflowRunner() {
  const jobs = [];
  for (let i = 0; i < 20000; i++) jobs.push({ uuid: 'job-' + i, tasks: ['a' + i, 'b' + i] });
  const runner = new WorkflowRunner(jobs);
  runner.run();
  setTimeout(() => {
    done(runner.finished, 'jobs');
    process.exit(0);
  }, SECONDS * 1000);
}

const cases = {
  'dashboard-render': dashboardRender, 'vault-service': vaultService,
  'asset-tree': assetTree, 'asset-watch': assetWatch, 'event-log': eventLog, 'date-grid': dateGrid,
  'browser-server': browserServer, 'browser-tests': browserTests,
  'workflow-runner': workflowRunner,
};

cases[NAME]();
