// The part of node's world that small programs use: process, require, and a few of its
// modules. Everything else is answered like a package that is not there.
(function (host, library) {
  'use strict';

  const { EventEmitter, Event, EventTarget, AbortController, AbortSignal } = library('events');
  const { Buffer } = library('encoding');
  const { inspect, format } = library('inspect');
  const text = (bytes, encoding) => Buffer.wrap(bytes).toString(encoding === 'utf-8' ? 'utf8' : encoding);
  const define = (object, name, get) => Object.defineProperty(object, name, { get, enumerable: true, configurable: true });

  // All of stdin at once, when somebody first listens: a cell has it before it starts.
  class Stdin extends EventEmitter {
    fd = 0;
    #encoding;
    #started = false;
    setEncoding(encoding = 'utf8') {
      this.#encoding = encoding;
      return this;
    }
    on(name, listener) {
      super.on(name, listener);
      if (['data', 'readable', 'end'].includes(name)) this.resume();
      return this;
    }
    #read() {
      const bytes = Buffer.wrap(host.readFile(0));
      return this.#encoding ? bytes.toString(this.#encoding) : bytes;
    }
    resume() {
      if (this.#started) return this;
      this.#started = true;
      setImmediate(() => {
        const all = this.#read();
        this.#pending = all;
        if (all.length) this.emit('data', all);
        if (all.length) this.emit('readable');
        this.emit('end');
        this.emit('close');
      });
      return this;
    }
    #pending = null;
    read() {
      const all = this.#pending;
      this.#pending = null;
      return all?.length ? all : null;
    }
    pause() {
      return this;
    }
    unref() {
      return this;
    }
    async *[Symbol.asyncIterator]() {
      this.#started = true;
      const all = this.#read();
      if (all.length) yield all;
    }
  }

  class Output extends EventEmitter {
    writable = true;
    constructor(fd) {
      super();
      this.fd = fd;
    }
    write(data, encoding, done) {
      host.write(this.fd, typeof data === 'string' ? data.toWellFormed() : data);
      const then = typeof encoding === 'function' ? encoding : done;
      if (then) queueMicrotask(then);
      return true;
    }
    end(data) {
      if (data !== undefined) this.write(data);
    }
  }

  const process = new EventEmitter();
  const exit = (code = process.exitCode ?? 0) => host.exit(leave(Number(code)));
  Object.assign(process, {
    argv: ['/usr/bin/node', host.file, ...host.args],
    argv0: 'node',
    execArgv: [],
    execPath: '/usr/bin/node',
    env: { ...host.env },
    exitCode: undefined,
    platform: 'linux',
    arch: host.arch,
    pid: host.pid,
    // The level of the language and not of node, which this is not.
    version: 'v0.0.0-quickjs',
    versions: { quickjs: host.version },
    exit,
    cwd: () => host.cwd,
    uptime: () => host.now() / 1000,
    nextTick: (callback, ...args) => void host.ticks.push(() => callback(...args)),
    hrtime: Object.assign(() => {
      const now = host.now();
      return [Math.floor(now / 1000), Math.floor((now % 1000) * 1e6)];
    }, { bigint: () => BigInt(Math.floor(host.now() * 1e6)) }),
    memoryUsage: () => ({ rss: 0, heapTotal: 0, heapUsed: 0, external: 0, arrayBuffers: 0 }),
    abort: () => host.exit(134),
  });
  let streams = {};
  define(process, 'stdin', () => (streams.stdin ??= new Stdin()));
  define(process, 'stdout', () => (streams.stdout ??= new Output(1)));
  define(process, 'stderr', () => (streams.stderr ??= new Output(2)));

  let leaving = false;
  const leave = (code) => {
    if (leaving) return code;
    leaving = true;
    process.exitCode ??= code;
    process.emit('exit', process.exitCode);
    return code || Number(process.exitCode) || 0;
  };

  const fileName = (path) => {
    if (typeof path === 'number') return path;
    const name = path instanceof library('url').URL ? decodeURIComponent(path.pathname) : String(path);
    return name === '/dev/stdin' ? 0 : name;
  };
  // Rust's message starts with the code, as node's does.
  const attempt = (work) => {
    try {
      return work();
    } catch (error) {
      const code = /^(E[A-Z]+): /.exec(error.message)?.[1];
      throw code ? Object.assign(new Error(error.message), { code }) : error;
    }
  };
  const encodingOf = (options) => (typeof options === 'string' ? options : options?.encoding);
  const bytesOf = (data) => (typeof data === 'string' ? host.encode(data.toWellFormed()) : data);
  const fs = {
    readFileSync(path, options) {
      const bytes = attempt(() => host.readFile(fileName(path)));
      const encoding = encodingOf(options);
      return encoding && encoding !== 'buffer' ? text(bytes, encoding) : Buffer.wrap(bytes);
    },
    writeFileSync(path, data) {
      const name = fileName(path);
      if (typeof name === 'number') host.write(name, bytesOf(data));
      else attempt(() => host.writeFile(name, bytesOf(data), false));
    },
    appendFileSync: (path, data) => attempt(() => host.writeFile(fileName(path), bytesOf(data), true)),
    writeSync(fd, data) {
      host.write(fd, bytesOf(data));
      return bytesOf(data).length;
    },
    existsSync: (path) => host.exists(String(fileName(path))),
    readdirSync: (path) => attempt(() => host.readFolder(fileName(path))),
    mkdirSync: (path) => attempt(() => host.makeFolder(fileName(path))),
    unlinkSync: (path) => attempt(() => host.remove(fileName(path))),
    renameSync: (from, to) => attempt(() => host.rename(fileName(from), fileName(to))),
    rmSync: (path) => attempt(() => host.remove(fileName(path))),
  };
  const later = (name) => async (...args) => fs[`${name}Sync`](...args);
  fs.promises = Object.fromEntries(['readFile', 'writeFile', 'appendFile', 'readdir', 'mkdir', 'unlink', 'rm'].map((name) => [name, later(name)]));
  for (const [name, work] of Object.entries(fs.promises)) {
    fs[name] = (...args) => {
      const done = args.pop();
      work(...args).then((value) => setImmediate(done, null, value), (error) => setImmediate(done, error));
    };
  }

  const crypto = {
    randomUUID() {
      const bytes = host.random(16);
      bytes[6] = (bytes[6] & 0x0f) | 0x40;
      bytes[8] = (bytes[8] & 0x3f) | 0x80;
      return Buffer.wrap(bytes).toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
    },
    getRandomValues(array) {
      new Uint8Array(array.buffer, array.byteOffset, array.byteLength).set(host.random(array.byteLength));
      return array;
    },
    randomBytes: (size) => Buffer.wrap(host.random(size)),
    randomInt: (from, to) => {
      if (to === undefined) [from, to] = [0, from];
      return from + Math.floor(Math.random() * (to - from));
    },
  };

  const modules = {
    process: () => process,
    fs: () => fs,
    'fs/promises': () => fs.promises,
    path: () => library('path'),
    events: () => Object.assign(EventEmitter, { EventEmitter, default: EventEmitter }),
    util: () => ({
      inspect, format: (...values) => format(values),
      promisify: (work) => (...args) => new Promise((resolve, reject) =>
        work(...args, (error, value) => (error ? reject(error) : resolve(value)))),
      isDeepStrictEqual: library('assert').same,
      TextEncoder: library('encoding').TextEncoder, TextDecoder: library('encoding').TextDecoder,
      inherits: (to, from) => void Object.setPrototypeOf(to.prototype, from.prototype),
      deprecate: (work) => work,
      types: {},
    }),
    tty: () => ({ isatty: () => false }),
    module: () => ({
      createRequire: (from) => requireFrom(String(fileName(String(from).startsWith('file:') ? new (library('url').URL)(from) : from))),
    }),
    url: () => ({
      ...library('url'),
      fileURLToPath: (url) => decodeURIComponent(new (library('url').URL)(url).pathname),
      pathToFileURL: (path) => new (library('url').URL)(`file://${library('path').resolve(path)}`),
    }),
    buffer: () => library('encoding'),
    assert: () => library('assert').assert,
    'assert/strict': () => library('assert').assert,
    os: () => ({ EOL: '\n', platform: () => 'linux', cpus: () => [{}], tmpdir: () => '/tmp', homedir: () => host.env.HOME ?? '/', hostname: () => 'sandbox', arch: () => host.arch }),
    readline: () => library('readline'),
    'readline/promises': () => library('readline').promises,
    timers: () => ({ setTimeout, setInterval, setImmediate, clearTimeout, clearInterval, clearImmediate }),
    'timers/promises': () => ({
      setTimeout: (delay, value) => new Promise((resolve) => setTimeout(resolve, delay, value)),
      setImmediate: (value) => new Promise((resolve) => setImmediate(resolve, value)),
    }),
    perf_hooks: () => ({ performance }),
    crypto: () => crypto,
    hotcell: () => {
      const own = {};
      host.library('hotcell')(own);
      return Object.assign(own, { vars: host.library('vars')(fs, library('inspect').inspect, '/workspace/.home/.hotcell/vars') });
    },
    string_decoder: () => ({ StringDecoder: class { write(bytes) { return Buffer.wrap(bytes).toString(); } end() { return ''; } } }),
  };
  const made = new Map();
  const builtin = (name) => {
    name = name.replace(/^node:/, '');
    if (!Object.hasOwn(modules, name)) return undefined;
    if (!made.has(name)) made.set(name, modules[name]());
    return made.get(name);
  };

  const cache = {};
  const missing = (name, from) => {
    if (!host.isOfNode(name)) {
      return Object.assign(new Error(`Cannot find module '${name}'\nRequire stack:\n- ${from}`), { code: 'MODULE_NOT_FOUND' });
    }
    const [error, code] = [new Error(`No such built-in module: node:${name.replace(/^node:/, '')}`), 'ERR_UNKNOWN_BUILTIN_MODULE'];
    // node names the code in the first line; the stack was made before there was one.
    return Object.assign(error, { code, stack: error.stack.replace('Error', `Error [${code}]`) });
  };
  const requireFrom = (from) => {
    const require = (name) => {
      const found = builtin(String(name));
      if (found !== undefined) return found;
      const path = host.resolve(from, String(name));
      if (path == null) throw missing(name, from);
      return load(path).exports;
    };
    require.cache = cache;
    require.resolve = (name) => (builtin(name) ? name : host.resolve(from, name) ?? (() => { throw missing(name, from); })());
    require.main = main;
    return require;
  };
  const load = (path, isMain) => {
    if (cache[path]) return cache[path];
    const module = (cache[path] = { id: path, filename: path, exports: {}, loaded: false, children: [], paths: [] });
    if (path.endsWith('.json')) {
      module.exports = JSON.parse(text(host.readFile(path)));
    } else {
      if (isMain) main = module;
      try {
        const body = host.compile(path);
        if (typeof body === 'function') {
          const require = (module.require = requireFrom(path));
          body.call(module.exports, module.exports, require, module, path, path.replace(/\/[^/]*$/, '') || '/');
        } else {
          module.exports = body['module.exports'] ?? body;
        }
      } catch (error) {
        delete cache[path];
        throw error;
      }
    }
    module.loaded = true;
    return module;
  };
  let main;

  return {
    process, crypto, leave, builtin, Event, EventTarget, AbortController, AbortSignal,
    runScript: (file) => void load(file, true),
    load: (path) => load(path).exports,
  };
});
