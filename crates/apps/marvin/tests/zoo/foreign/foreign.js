// Programs of Node from public reports: `foreign.js NAME SECONDS FOLDER`; `cases.txt` has the reports.
const [, , name, seconds] = process.argv;
const until = Date.now() + 1000 * seconds;
const going = () => Date.now() < until;
const cases = {
  // R21: a pattern that backtracks.
  'regexp-backtracking'() {
    const text = 'aAbBcCdDeEfFgGhHiIjJkKlLmM_';
    const handle = () => { /^[a-z][a-z0-9]*(?:[A-Z][a-zA-Z0-9]*)+$/.test(text); if (going()) setImmediate(handle); };
    handle();
  },
  // R65: hashing in slices on the main thread.
  'hash-in-slices'() {
    function encipher(left, right) {
      for (let i = 0; i < 2000000; i++) { left = (left * 31 + right) | 0; right = (right ^ left) | 0; }
      return left + right;
    }
    let sum = 0;
    const slice = () => { sum += encipher(sum, 1); if (going()) setImmediate(slice); };
    slice();
  },
  // A server without clients.
  'idle-server'() {
    const server = require('http').createServer((_, answer) => answer.end('ok'));
    server.listen(7431, '127.0.0.1');
    setTimeout(() => process.exit(0), 1000 * seconds);
  },
  // The pool of libuv is full of slow hashes.
  'pool-full'() {
    const { pbkdf2 } = require('crypto');
    const one = () => pbkdf2('x', 'y', 200000, 64, 'sha512', () => { if (going()) one(); });
    for (let n = 0; n < 16; n++) one();
  },
  // Garbage of a lively heap.
  'heap-garbage'() {
    const kept = [];
    const work = () => {
      for (let n = 0; n < 200000; n++) { kept[n % 2000000] = { n, next: kept[(n * 7) % 2000000] && null, text: 'x' + n }; }
      if (kept.length < 2000000) for (let n = 0; n < 300000; n++) kept.push({ n, text: 'y' + n });
      if (going()) setImmediate(work);
    };
    work();
  },
  // A synchronous child blocks the event loop.
  'sync-child'() {
    const { execSync } = require('child_process');
    const one = () => { execSync('sleep 0.3'); if (going()) setImmediate(one); };
    one();
  },
};
cases[name]();
