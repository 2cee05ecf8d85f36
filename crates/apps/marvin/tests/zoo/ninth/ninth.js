'use strict';
// Programs after public reports, ninth half: Node.
// Usage: node ninth.js CASE SECONDS FOLDER

const fs = require('fs');
const net = require('net');
const os = require('os');
const path = require('path');
const { execFileSync, spawn } = require('child_process');
const { once } = require('events');

function workFolder(folder, name) {
  const dir = path.join(folder, name);
  fs.rmSync(dir, { recursive: true, force: true });
  fs.mkdirSync(dir, { recursive: true });
  return dir;
}

function setupNamedPipe(dir, number) {
  const fifo = path.join(dir, 'feed' + number);
  execFileSync('mkfifo', [fifo]);
  return fifo;
}

async function saveState(file, feeds) {
  await fs.promises.writeFile(file, JSON.stringify({ feeds, at: Date.now() }));
  return 1;
}

function fifoHub(seconds, folder) {
  const dir = workFolder(folder, 'fifo-hub');
  const fifos = [1, 2, 3, 4, 5, 6].map((n) => setupNamedPipe(dir, n));
  let received = 0;
  let saved = 0;
  for (const fifo of fifos) {
    fs.createReadStream(fifo).on('data', (data) => { received += data.length; })
      .on('error', () => {});
  }
  setTimeout(() => {
    saveState(path.join(dir, 'state.json'), fifos.length).then((n) => { saved += n; });
  }, 100);
  setTimeout(() => {
    console.log(`fifo-hub: ${saved + received} states`);
    const flags = fs.constants.O_RDWR | fs.constants.O_NONBLOCK;
    const ends = fifos.map((fifo) => fs.openSync(fifo, flags));
    for (const fd of ends) fs.writeSync(fd, 'end\n');
    setTimeout(() => ends.forEach((fd) => fs.closeSync(fd)), 60);
    setTimeout(() => process.exit(0), 150);
  }, seconds * 1000);
}

function relayClient(seconds, folder, port) {
  const socket = net.connect(Number(port), '127.0.0.1', () => socket.write('GET stream\n'));
  let chunks = 0;
  socket.on('data', () => { if (++chunks === 3) socket.pause(); });
  socket.on('error', () => {});
  setTimeout(() => process.exit(0), seconds * 1000);
}

async function* upstreamAnswer() {
  for (let n = 0; n < 100000; n++) {
    yield Buffer.alloc(16384, 'token ');
  }
}

async function pipeThrough(answer, res, count) {
  for await (const chunk of answer) {
    count.chunks++;
    if (!res.write(chunk)) {
      await new Promise((resolve) => res.once('drain', resolve));
    }
  }
}

function streamRelay(seconds, folder) {
  workFolder(folder, 'stream-relay');
  const count = { chunks: 0 };
  let session = Promise.resolve();
  const server = net.createServer((res) => {
    res.on('error', () => {});
    res.once('data', () => {
      session = session.then(() => pipeThrough(upstreamAnswer(), res, count));
    });
  });
  server.listen(0, '127.0.0.1', () => {
    const port = String(server.address().port);
    const args = [__filename, 'relay-client', String(seconds + 1), folder, port];
    const first = spawn(process.execPath, args, { stdio: 'ignore' });
    const second = spawn(process.execPath, args, { stdio: 'ignore' });
    setTimeout(() => {
      console.log(`stream-relay: ${count.chunks} chunks`);
      first.kill();
      second.kill();
      process.exit(0);
    }, seconds * 1000);
  });
}

function meterUsage(last) {
  let idle = 0;
  let total = 0;
  for (const cpu of os.cpus()) {
    for (const kind of Object.keys(cpu.times)) total += cpu.times[kind];
    idle += cpu.times.idle;
  }
  const share = last.total === total ? 0 : 1 - (idle - last.idle) / (total - last.total);
  return { idle, total, share };
}

function loadMeter(seconds, folder) {
  workFolder(folder, 'load-meter');
  const end = Date.now() + seconds * 1000;
  let last = { idle: 0, total: 0, share: 0 };
  let requests = 0;
  const handle = () => {
    for (let i = 0; i < 50; i++) {
      last = meterUsage(last);
      if (last.share < 2) requests++;
    }
    if (Date.now() < end) setImmediate(handle);
    else console.log(`load-meter: ${requests} requests`);
  };
  handle();
}

function chatReader(seconds, folder, port) {
  const socket = net.connect(Number(port), '127.0.0.1');
  socket.on('data', () => {});
  socket.on('error', () => {});
  socket.on('close', () => process.exit(0));
  setTimeout(() => process.exit(0), seconds * 1000);
}

class Sender {
  constructor(socket) {
    this.socket = socket;
  }

  frame(data) {
    const head = Buffer.alloc(4);
    head[0] = 0x82;
    head[1] = 126;
    head.writeUInt16BE(data.length, 2);
    this.socket.write(head);
    return this.socket.write(data);
  }
}

function chatSender(seconds, folder) {
  workFolder(folder, 'chat-sender');
  const end = Date.now() + seconds * 1000;
  const message = Buffer.from('{"room":"main","from":"ann","text":"hello"}');
  let messages = 0;
  const server = net.createServer(async (socket) => {
    socket.setNoDelay(true);
    const sender = new Sender(socket);
    while (Date.now() < end) {
      let room = true;
      for (let i = 0; i < 64; i++) {
        room = sender.frame(message);
        messages++;
      }
      if (!room) await once(socket, 'drain');
      else await new Promise((resolve) => setImmediate(resolve));
    }
    console.log(`chat-sender: ${messages} messages`);
    socket.destroy();
    server.close();
  });
  server.listen(0, '127.0.0.1', () => {
    const args = [__filename, 'chat-reader', String(seconds + 2), folder,
      String(server.address().port)];
    spawn(process.execPath, args, { stdio: 'ignore' });
  });
}

async function* splitLines(text) {
  let start = 0;
  for (;;) {
    const stop = text.indexOf('\n', start);
    if (stop < 0) return;
    yield text.slice(start, stop);
    start = stop + 1;
  }
}

async function* trimLines(lines) {
  for await (const line of lines) yield line;
}

async function countWide(lines) {
  let wide = 0;
  for await (const line of lines) {
    if (line.length > 2) wide++;
  }
  return wide;
}

async function lineParser(seconds, folder) {
  workFolder(folder, 'line-parser');
  const end = Date.now() + seconds * 1000;
  let text = '';
  for (let n = 0; n < 20000; n++) text += n + '\n';
  let lines = 0;
  while (Date.now() < end) {
    lines += await countWide(trimLines(splitLines(text)));
  }
  console.log(`line-parser: ${lines} lines`);
}

function parseWithNewUrl(url) {
  let origin = null;
  let pathname;
  try {
    const parsed = new URL(url);
    origin = parsed.origin;
    pathname = parsed.pathname;
  } catch (err) {
    const stop = url.indexOf('?');
    pathname = stop < 0 ? url : url.slice(0, stop);
  }
  return { origin, pathname };
}

function routePage(url, routes) {
  for (const route of routes) {
    if (parseWithNewUrl(url).pathname === route) return route;
  }
  return null;
}

function pageRouter(seconds, folder) {
  workFolder(folder, 'page-router');
  const routes = Array.from({ length: 40 }, (_, n) => '/page/' + n);
  const end = Date.now() + seconds * 1000;
  let pages = 0;
  const handle = () => {
    for (let i = 0; i < 40; i++) {
      if (routePage('/page/' + (39 - (i % 4)) + '?lang=en', routes)) pages++;
    }
    if (Date.now() < end) setImmediate(handle);
    else console.log(`page-router: ${pages} pages`);
  };
  handle();
}

const cases = {
  'fifo-hub': fifoHub,
  'stream-relay': streamRelay,
  'relay-client': relayClient,
  'load-meter': loadMeter,
  'chat-sender': chatSender,
  'chat-reader': chatReader,
  'line-parser': lineParser,
  'page-router': pageRouter,
};

const [name, seconds, ...rest] = process.argv.slice(2);
cases[name](Number(seconds), ...rest);
