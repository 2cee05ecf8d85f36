// The late half of the programs from public reports (tests/outside/49-put-aside.md), for Node: each
// does steadily what its report describes, for some seconds: node late.js NAME SECONDS DIR.
'use strict';
const { execFileSync, spawn } = require('child_process');
const fs = require('fs');
const path = require('path');

const [name, seconds, dir] = process.argv.slice(2);
const end = Date.now() + Number(seconds) * 1000;
const isOver = () => Date.now() >= end;
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

// R2: four requests wait inside the pool, for what stands in for a name server (a FIFO that no one
// writes yet), and a small file is read beside them.
async function readSettings() {
  const feed = path.join(dir, 'feed');
  const settings = path.join(dir, 'settings.json');
  if (!fs.existsSync(feed)) execFileSync('mkfifo', [feed]);
  fs.writeFileSync(settings, '{"a": 1}');
  let reads = 0;
  let slowest = 0;
  const subscribe = () => {
    fs.open(feed, 'r', (error, file) => {
      if (error) throw error;
      fs.closeSync(file);
      if (!isOver()) subscribe();
    });
  };
  for (let n = 0; n < 4; n++) subscribe();
  const timer = setInterval(() => {
    // The answer: those that open it for reading go on.
    fs.closeSync(fs.openSync(feed, fs.constants.O_RDWR | fs.constants.O_NONBLOCK));
  }, 1000);
  while (!isOver()) {
    const start = Date.now();
    await fs.promises.readFile(settings);
    reads++;
    slowest = Math.max(slowest, Date.now() - start);
  }
  clearInterval(timer);
  process.stderr.write(`${reads} reads, the slowest ${slowest} ms\n`);
  process.exit(0);
}

// R39: a watcher of many files in a place without notifications.
function makeTree() {
  const tree = path.join(dir, 'watched');
  fs.mkdirSync(tree, { recursive: true });
  for (let n = 0; n < 8000; n++) fs.writeFileSync(path.join(tree, `module-${n}.js`), '');
  console.log('ready');
}

async function watchTree() {
  const tree = path.join(dir, 'watched');
  let changes = 0;
  let latest = 0;
  for (const file of fs.readdirSync(tree)) {
    fs.watchFile(path.join(tree, file), { interval: 100 }, () => changes++);
  }
  while (!isOver()) {
    const start = Date.now();
    await sleep(50);
    latest = Math.max(latest, Date.now() - start - 50);
  }
  process.stderr.write(`${changes} changes, the loop late by ${latest} ms\n`);
  process.exit(0);
}

// R85: a test writes messages and waits for what its agent makes of them.
async function agent() {
  const inbox = path.join(dir, 'inbox');
  const log = path.join(dir, 'agent.log');
  const parent = process.ppid;
  while (!isOver() && process.ppid === parent) {
    if (fs.existsSync(inbox)) {
      fs.appendFileSync(log, fs.readFileSync(inbox));
      fs.unlinkSync(inbox);
    }
    await sleep(3000);
  }
}

async function testAgent() {
  const inbox = path.join(dir, 'inbox');
  const log = path.join(dir, 'agent.log');
  fs.writeFileSync(log, '');
  fs.rmSync(inbox, { force: true });
  const child = spawn(process.execPath, [__filename, 'agent', seconds, dir], { stdio: 'ignore' });
  let answers = 0;
  await sleep(300);
  while (!isOver()) {
    fs.writeFileSync(inbox + '.new', `message ${answers}\n`);
    fs.renameSync(inbox + '.new', inbox);
    while (!isOver() && !fs.readFileSync(log, 'utf8').includes(`message ${answers}\n`)) {
      await sleep(50);
    }
    answers++;
  }
  child.kill();
  process.stderr.write(`${answers} answers\n`);
}

const programs = {
  'read-settings': readSettings,
  'make-tree': makeTree,
  'watch-tree': watchTree,
  agent,
  'test-agent': testAgent,
};
programs[name]();
