// Evaluated before every program: the globals, and the handles by which Rust turns the
// event loop. What few programs use is a file of its own, evaluated when first touched.
(function (native) {
  'use strict';

  // Bytes cross to Rust as text with a character for each.
  const binary = (bytes) => {
    let text = '';
    for (let at = 0; at < bytes.length; at += 8192) {
      text += String.fromCharCode(...new Uint8Array(bytes.buffer, bytes.byteOffset + at, Math.min(8192, bytes.length - at)));
    }
    return text;
  };
  const host = {
    ...native,
    ticks: [],
    write: (fd, data) => (typeof data === 'string' ? native.write(fd, data.toWellFormed()) : native.writeBytes(fd, binary(data))),
    decode: (bytes, fatal) => native.decode(binary(bytes), fatal),
    fetch: (id, method, url, headers, body) => native.fetch(id, method, url, headers, body && binary(body)),
    writeFile: (path, bytes, append) => native.writeFile(path, binary(bytes), append),
  };

  const loaded = new Map();
  const library = (name) => {
    if (!loaded.has(name)) loaded.set(name, host.library(name)(host, library));
    return loaded.get(name);
  };
  const define = (name, value) =>
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
  const lazily = (from, ...names) => {
    for (const name of names) {
      Object.defineProperty(globalThis, name, {
        configurable: true,
        get() {
          const value = library(from)[name];
          define(name, value);
          return value;
        },
        set(value) {
          define(name, value);
        },
      });
    }
  };

  // Frames as V8 writes them, in lines of the source that the caller knows.
  Error.prepareStackTrace = (error, sites) => {
    let head;
    try {
      head = String(error);
      if (error.code) head = head.replace(error.name, `${error.name} [${error.code}]`);
    } catch {
      head = 'Error';
    }
    const frames = sites.map((site) => {
      const file = site.getFileName();
      if (!file || file.startsWith('hotcell:') || file.startsWith('<')) return '';
      const [line, column] = host.place(file, site.getLineNumber(), site.getColumnNumber());
      const name = site.getFunctionName();
      const place = `${file}:${line}:${column}`;
      return name && !name.startsWith('<') ? `\n    at ${name} (${place})` : `\n    at ${place}`;
    });
    return head + frames.join('');
  };

  // Timers by due time, then by the order they were made in.
  let lastTimer = 0;
  const timers = new Map();
  class Timeout {
    constructor(id) {
      this.id = id;
    }
    ref() {
      return this;
    }
    unref() {
      const timer = timers.get(this.id);
      if (timer) timer.weak = true;
      return this;
    }
    hasRef() {
      return timers.has(this.id) && !timers.get(this.id).weak;
    }
    [Symbol.toPrimitive]() {
      return this.id;
    }
  }
  const start = (callback, delay, every, args) => {
    if (typeof callback !== 'function') {
      throw new TypeError('The "callback" argument must be of type function.');
    }
    delay = Math.max(1, Math.min(2 ** 31 - 1, Number(delay) || 1));
    const id = ++lastTimer;
    timers.set(id, { callback, args, due: host.now() + delay, every: every ? delay : 0 });
    return new Timeout(id);
  };
  const stop = (timer) => {
    if (timer != null) timers.delete(Number(timer));
  };
  define('setTimeout', (callback, delay, ...args) => start(callback, delay, false, args));
  define('setInterval', (callback, delay, ...args) => start(callback, delay, true, args));
  define('setImmediate', (callback, ...args) => {
    const timer = start(callback, 1, false, args);
    timers.get(timer.id).due = 0;
    return timer;
  });
  for (const name of ['clearTimeout', 'clearInterval', 'clearImmediate']) define(name, stop);
  define('queueMicrotask', (callback) => void Promise.resolve().then(() => callback()));
  define('performance', { now: () => host.now(), timeOrigin: Date.now() - host.now(), mark() {}, measure() {} });

  const unhandled = new Map();
  const listeners = {};
  const rejected = (promise, reason, isHandled) => {
    if (isHandled) unhandled.delete(promise);
    else unhandled.set(promise, reason);
  };

  const { inspect, format } = library('inspect');
  const print = (fd) => (...values) => host.write(fd, `${indent}${format(values).replaceAll('\n', `\n${indent}`)}\n`);
  let indent = '';
  const counts = new Map();
  const clocks = new Map();
  const [out, err] = [print(1), print(2)];
  define('console', {
    log: out, info: out, debug: out, error: err, warn: err,
    dir: (value, options) => out(inspect(value, options)),
    trace: (...values) => err(new Error(`Trace: ${format(values)}`).stack.replace('Error: ', '')),
    assert: (ok, ...values) => {
      if (!ok) err(...(values.length ? ['Assertion failed:', ...values] : ['Assertion failed']));
    },
    group: (...values) => {
      if (values.length) out(...values);
      indent += '  ';
    },
    groupEnd: () => void (indent = indent.slice(2)),
    count: (label = 'default') => {
      counts.set(label, (counts.get(label) ?? 0) + 1);
      out(`${label}: ${counts.get(label)}`);
    },
    time: (label = 'default') => void clocks.set(label, host.now()),
    timeEnd: (label = 'default') => out(`${label}: ${(host.now() - clocks.get(label)).toFixed(3)}ms`),
    table: (rows) => out(library('inspect').table(rows)),
  });

  lazily('encoding', 'TextEncoder', 'TextDecoder', 'atob', 'btoa', 'Buffer');
  lazily('url', 'URL', 'URLSearchParams');
  lazily('clone', 'structuredClone');
  lazily('fetch', 'fetch', 'Headers', 'Request', 'Response');
  lazily('node', 'process', 'crypto', 'AbortController', 'AbortSignal', 'Event', 'EventTarget');
  define('global', globalThis);

  return {
    library,
    listeners,
    rejected,
    // What `process.nextTick` put off: it comes before what promises do next.
    tick() {
      const ticks = host.ticks.splice(0);
      for (const tick of ticks) tick();
      return ticks.length > 0;
    },
    // Runs one timer that is due. How long until the next, in milliseconds; -1 for never.
    turn(isBusy) {
      let [next, isWaitedFor] = [null, false];
      for (const [id, timer] of timers) {
        isWaitedFor ||= !timer.weak;
        if (!next || timer.due < next.timer.due) next = { id, timer };
      }
      if (!next || !(isWaitedFor || isBusy)) return -1;
      const wait = next.timer.due - host.now();
      if (wait > 0) return wait;
      if (next.timer.every) next.timer.due = host.now() + next.timer.every;
      else timers.delete(next.id);
      next.timer.callback(...next.timer.args);
      return 0;
    },
    // What nobody has caught, as text for stderr.
    takeUnhandled() {
      for (const [promise, reason] of unhandled) {
        unhandled.delete(promise);
        return this.report(reason, true);
      }
    },
    report(error, fromPromise) {
      if (error instanceof Error) return inspect(error);
      const text = inspect(error);
      return fromPromise
        ? `[UnhandledPromiseRejection: This error originated either by throwing inside of an async function without a catch block, or by rejecting a promise which was not handled with .catch(). The promise rejected with the reason "${text}".]`
        : `Uncaught ${text}`;
    },
    fetched(...answer) {
      library('fetch').arrived(...answer);
    },
    exitCode(code) {
      return loaded.has('node') ? library('node').leave(code) : code;
    },
    preload(file) {
      library('node').load(file);
    },
    main(file) {
      return library('node').runScript(file);
    },
    // The code of a call at a prompt: its names can be declared again, and it may import.
    prompt(code) {
      const names = (list) => list.replace(/\bas\b/g, ':').replace(/\s+/g, ' ');
      return code
        .replace(/^import\s+(?:([\w$]+)\s*,?\s*)?(?:\*\s*as\s+([\w$]+)|\{([^}]*)\})?\s*from\s*(['"][^'"]+['"]);?/gm, (all, whole, every, some, name) => {
          const parts = [whole && `default: ${whole}`, some && names(some)].filter(Boolean).join(', ');
          const lines = '\n'.repeat(all.split('\n').length - 1);
          return (every ? `var ${every} = await import(${name});` : '') + (parts ? `var { ${parts} } = await import(${name});` : '') + lines;
        })
        .replace(/^import\s*(['"][^'"]+['"]);?/gm, 'await import($1);')
        .replace(/^(?:const|let)\b/gm, 'var')
        .replace(/^class\s+([\w$]+)/gm, 'var $1 = class $1');
    },
    // What a call that was stopped would still do.
    forget() {
      timers.clear();
      host.ticks.length = 0;
      unhandled.clear();
    },
    // JSON if it is that, but for people at a prompt; the script of that path has what tells.
    shown(value, script) {
      if (value === undefined) return '';
      let text;
      try {
        text = globalThis.$prompt ? undefined : library('node').load(script).json(value);
      } catch {
        // Then it is text.
      }
      return text ?? inspect(value);
    },
    builtin(name) {
      return library('node').builtin(name);
    },
  };
});
