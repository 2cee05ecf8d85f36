// The second late half of the programs from public reports (tests/outside/49-second-aside.md), for
// Node: each does steadily what its report describes, for some seconds: node second.js NAME SECONDS
// DIR.
'use strict';
const { spawnSync } = require('child_process');
const fs = require('fs');
const http = require('http');
const path = require('path');

const [name, seconds, dir, repaired] = process.argv.slice(2);
const end = Date.now() + Number(seconds) * 1000;
const isOver = () => Date.now() >= end;
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

// S8: a run that failed asks git for the last commit, and the event loop of all requests with it.
function readLastCommit() {
  // Stands for git in a repository that is so large that the answer takes 0.4 s.
  const git = spawnSync('sh', ['-c', 'sleep 0.4; git --version'], { encoding: 'utf8' });
  return git.stdout.trim();
}

async function completeRuns() {
  const server = http.createServer((request, response) => response.end('{}'));
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const url = `http://127.0.0.1:${server.address().port}/`;
  let runs = 0;
  let requests = 0;
  const ask = () => {
    http.get(url, (response) => {
      response.resume();
      response.on('end', () => {
        requests++;
        if (!isOver()) ask();
      });
    });
  };
  for (let n = 0; n < 4; n++) ask();
  while (!isOver()) {
    await sleep(20);
    readLastCommit();
    runs++;
  }
  process.stderr.write(`${runs} runs, ${requests} requests\n`);
  process.exit(0);
}

// S24: links of a page are found with an expression that tries each way to divide a line.
function findLinks(text) {
  const link = repaired ? /\]\([^)]*\)/gi : /\]\(*(.*?)*\)/gi;
  return text.match(link) || [];
}

function renderPages() {
  let pages = 0;
  let links = 0;
  while (!isOver()) {
    const text = `An [example](a.html of ${pages}`.padEnd(32, 'x') + '\n';
    links += findLinks(text).length;
    pages++;
  }
  process.stderr.write(`${pages} pages, ${links} links\n`);
}

// S42: tasks are taken from the front of a long array.
function drainQueue(queue) {
  let sum = 0;
  if (repaired) {
    for (let n = 0; n < queue.length; n++) sum += queue[n];
    return sum;
  }
  while (queue.length > 0 && !isOver()) sum += queue.shift();
  return sum;
}

function runTasks() {
  let sum = 0;
  let queues = 0;
  while (!isOver()) {
    const queue = [];
    for (let n = 0; n < 150000; n++) queue.push(n);
    sum += drainQueue(queue);
    queues++;
  }
  process.stderr.write(`${queues} queues, ${sum}\n`);
}

// S52: components are written to files one after another, each made sure to be on the disk.
async function writeFileAtomic(file, text) {
  const temporary = `${file}.${process.pid}`;
  const handle = await fs.promises.open(temporary, 'w');
  await handle.write(text);
  if (!repaired) await handle.sync();
  await handle.close();
  await fs.promises.rename(temporary, file);
}

async function importComponents() {
  const folder = path.join(dir, 'components');
  fs.mkdirSync(folder, { recursive: true });
  let files = 0;
  while (!isOver()) {
    const file = path.join(folder, `${files % 500}.js`);
    await writeFileAtomic(file, 'module.exports = 1;\n'.repeat(9));
    files++;
  }
  process.stderr.write(`${files} files\n`);
}

const programs = {
  'complete-runs': completeRuns,
  'render-pages': renderPages,
  'run-tasks': runTasks,
  'import-components': importComponents,
};
programs[name]();
