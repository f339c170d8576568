// The tools of upstream servers for JavaScript: `await server.tool({name: value})`. Loaded before the program. A pre-started node has loaded it
// before, with a function `prepared` that is given what the prelude calls.
'use strict';
{
  // Where servers are called.
  let place = 0;

  class ToolError extends Error {
    constructor({ message, kind = 'tool', server = '', tool = '', details = null }) {
      super(message);
      Object.assign(this, { kind, server, tool, details });
    }
    get name() {
      return 'ToolError';
    }
  }

  // Connections that nobody uses. They keep no program alive.
  const idle = [];

  // Node's own handle of a connection: a socket of `net` takes node longer to set up than all the rest of a call. Nothing where there is none.
  const opener = (Handle) => {
    const { versions, env, execArgv } = process;
    if (versions.deno || versions.bun || [env.NODE_OPTIONS, env.NODE_PENDING_DEPRECATION, ...execArgv].some((it) => /^1$|--pending/.test(it))) return undefined;
    const { TCP, TCPConnectWrap, constants } = process.binding('tcp_wrap');
    const { WriteWrap, streamBaseState: state, kReadBytesOrError, kArrayBufferOffset } = process.binding('stream_wrap');
    if (![TCP, TCPConnectWrap, WriteWrap].every((it) => typeof it === 'function') || ![kReadBytesOrError, kArrayBufferOffset].every((it) => it in state)) return undefined;
    return () => {
      const handle = Handle ? new Handle(state, kReadBytesOrError, kArrayBufferOffset) : new TCP(constants.SOCKET);
      const line = {
        isOpen: true,
        ref: () => handle.ref(),
        unref: () => handle.unref(),
        close() {
          if (line.isOpen) handle.close();
          line.isOpen = false;
        },
        send(text) {
          const request = new WriteWrap();
          request.oncomplete = (status) => status && line.end();
          if (handle.writeUtf8String(request, text)) line.end();
        },
        begin(text) {
          const request = new TCPConnectWrap();
          request.oncomplete = (status) => {
            if (!line.isOpen) return;
            if (status || handle.readStart()) return line.end();
            handle.setNoDelay(true);
            line.send(text);
          };
          if (handle.connect(request, '127.0.0.1', place)) line.end();
        },
      };
      handle.onread = (buffer) => {
        const count = state[kReadBytesOrError];
        if (count > 0) line.take(Buffer.from(buffer, state[kArrayBufferOffset], count));
        else if (count < 0) line.end();
      };
      return line;
    };
  };

  // The same by node's module.
  const socket = (net) => () => {
    let socket;
    const line = {
      isOpen: true,
      ref: () => socket.ref(),
      unref: () => socket.unref(),
      close() {
        line.isOpen = false;
        socket.destroy();
      },
      send: (text) => socket.write(text),
      begin(text) {
        socket = net.connect(place, '127.0.0.1').setNoDelay(true);
        socket.on('error', () => line.end()).on('close', () => line.end()).on('data', (piece) => line.take(piece));
        socket.write(text);
      },
    };
    return line;
  };

  // One message and its answer.
  const exchange = (open, body) => new Promise((resolve, reject) => {
    let line;
    do line = idle.pop();
    while (line && !line.isOpen);
    const isNew = !line;
    line ??= open();
    const pieces = [];
    let size = 0, whole = Infinity, begin = 0;
    line.end = () => {
      line.close();
      reject(new Error('the connection was closed'));
    };
    line.take = (piece) => {
      pieces.push(piece);
      size += piece.length;
      if (whole === Infinity) {
        const head = pieces.length > 1 ? Buffer.concat(pieces) : piece;
        const end = head.indexOf('\r\n\r\n');
        if (end < 0) return;
        begin = end + 4;
        // No expression: node makes code of one when it is used for the second time.
        const [, length] = head.latin1Slice(0, begin).toLowerCase().split('\r\ncontent-length:');
        whole = begin + parseInt(length, 10);
      }
      if (size < whole) return;
      line.end = () => line.close();
      line.take = () => {};
      line.unref();
      if (idle.length < 8) idle.push(line);
      else line.close();
      resolve((pieces.length > 1 ? Buffer.concat(pieces) : pieces[0]).utf8Slice(begin, size));
    };
    const message = `POST / HTTP/1.1\r\nHost: mcp\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
    if (isNew) return line.begin(message);
    line.ref();
    line.send(message);
  });

  // How a message is sent here.
  const sender = () => {
    try {
      const open = opener();
      if (open) return (body) => exchange(open, body);
    } catch {
      // Another version of node may have none.
    }
    try {
      const open = socket(require('net'));
      return (body) => exchange(open, body);
    } catch {
      // The built-in engine has no sockets.
      return (body) => fetch(`http://127.0.0.1:${place}/`, { method: 'POST', body }).then((answer) => answer.text());
    }
  };
  let post = (body) => (post = sender())(body);

  const ask = async (asked) => {
    const body = JSON.stringify(asked);
    let said;
    try {
      said = JSON.parse(await post(body));
    } catch (error) {
      said = { error: { kind: 'unavailable', message: `nobody answers any more: ${error.message}`, ...asked } };
    }
    if (said.error) throw new ToolError(said.error);
    if ('text' in said) {
      // To see that a text is no JSON is quicker than to try.
      if (!' \t\r\n{["-0123456789tfn'.includes(said.text[0])) return said.text;
      try {
        return JSON.parse(said.text);
      } catch {
        return said.text;
      }
    }
    if (said.parts) return said.parts.map((part) => made(asked.server, part));
    return 'result' in said ? said.result : said.value;
  };

  // What a part of a result is to the program; one that makes no sense stays as it is.
  const made = (server, part) => {
    if (part?.type === 'text' && typeof part.text === 'string') return part.text;
    const inner = part?.resource ?? part;
    const known = [inner?.data, inner?.blob, inner?.text, inner?.uri];
    return known.some((it) => typeof it === 'string') ? new ToolFile(server, part) : part;
  };

  // A picture, a sound or a file that a tool gave.
  class ToolFile {
    #server;
    #bytes;
    constructor(server, part) {
      const inner = part.resource ?? part;
      const data = inner.data ?? inner.blob;
      this.#server = server;
      if (typeof data === 'string') this.#bytes = Buffer.from(data, 'base64');
      if (typeof inner.text === 'string') this.#bytes = Buffer.from(inner.text);
      this.kind = part.type ?? 'resource';
      this.mime = inner.mimeType;
      this.name = inner.name;
      this.uri = inner.uri;
      this.size = this.#bytes ? this.#bytes.length : inner.size;
      // What `display` looks for.
      if (this.#bytes && typeof this.mime === 'string') Object.defineProperty(this, this.mime, { value: this.#bytes });
    }
    // What is only named is read when it is wanted.
    async bytes() {
      if (!this.#bytes) {
        const found = await ask({ ask: 'read', server: this.#server, about: this.uri });
        this.#bytes = Buffer.concat(await Promise.all(found.map((it) => (typeof it === 'string' ? Buffer.from(it) : it.bytes()))));
        this.size = this.#bytes.length;
      }
      return this.#bytes;
    }
    async text() {
      return (await this.bytes()).toString();
    }
    async save(path) {
      require('fs').writeFileSync(path, await this.bytes());
      return path;
    }
  }

  const call = async (server, tool, given) => {
    const [args = {}] = given;
    if (given.length > 1 || typeof args !== 'object' || args === null || Array.isArray(args)) {
      const written = await ask({ ask: 'help', about: `${server}.${tool}` }).catch((error) => error.message);
      throw new TypeError(`${server}.${tool} takes its arguments as one object: ${written.split('\n')[0]}`);
    }
    return ask({ server, tool, arguments: args });
  };

  // Without a `then`, a promise resolves with the object itself.
  const server = (name) => new Proxy({}, {
    get: (_, tool) => (typeof tool !== 'string' || tool === 'then' || tool === 'toJSON' ? undefined : (...given) => call(name, tool, given)),
  });

  const split = (name) => {
    const [own, ...tool] = name.split('.');
    return { server: own, tool: tool.join('.') };
  };
  const mcp = {
    servers: {},
    ToolError,
    call: (name, args = {}) => call(split(name).server, split(name).tool, [args]),
    callRaw: (name, args = {}) => ask({ ask: 'raw', ...split(name), arguments: args }),
    help: (about = '') => ask({ ask: 'help', about }),
    search: (about, limit = 8) => ask({ ask: 'search', about, limit }),
    types: (about = '') => ask({ ask: 'typescript_stubs', about }),
    resources: (server) => ask({ ask: 'resources', server }),
    read: (server, about) => ask({ ask: 'read', server, about }),
    prompts: (server) => ask({ ask: 'prompts', server }),
    prompt: (server, about, args = {}) => ask({ ask: 'prompt', server, about, arguments: args }),
  };
  // Keeps a function as a tool that later programs call as `saved.NAME({...})`. With an example it is tried first.
  const saveTool = async (f, example) => {
    const script = await ask({ server: 'saved', tool: 'save_script', arguments: { language: 'javascript' } });
    const read = (...names) => {
      try {
        const fs = require('node:fs');
        return fs.readFileSync(names.map((it) => `/workspace/${it}`).find((it) => fs.existsSync(it)), 'utf8');
      } catch {
        // Then it has no imports.
        return '';
      }
    };
    const typed = read('main.ts');
    const program = read('.main.mjs', '.main.cjs', 'main.js', 'main.mjs', 'main.cjs') || typed;
    return (0, eval)(script)(f, example, (server, tool, args) => ask({ server, tool, arguments: args }), program, typed);
  };

  const publish = (name, value, place) => {
    if (!(name in place)) Object.defineProperty(place, name, { value, writable: true, configurable: true });
  };
  // A function of the language's own that is called like a server has the server's tools beside what it has already: `fetch(url)`, `fetch.tool({})`.
  const join = (name) => {
    const own = Object.getOwnPropertyDescriptor(globalThis, name);
    if (!own?.configurable) return;
    const define = (value) => Object.defineProperty(globalThis, name, { value, writable: true, enumerable: own.enumerable, configurable: true });
    const both = (thing) => (typeof thing !== 'function' ? thing : new Proxy(thing, {
      get: (target, tool) => (tool in target ? target[tool] : mcp.servers[name][tool]),
    }));
    if (!own.get) return define(both(own.value));
    // Loaded when it is first used, and not before.
    const get = () => {
      const thing = both(own.get.call(globalThis));
      define(thing);
      return thing;
    };
    Object.defineProperty(globalThis, name, { get, set: define, enumerable: own.enumerable, configurable: true });
  };
  const folder = '/workspace/.home/.hotcell';
  const facts = () => JSON.parse(require('fs').readFileSync(`${folder}/servers.json`, 'utf8'));
  const bind = ({ servers, port }, names = globalThis) => {
    place = port;
    for (const [alias] of servers) mcp.servers[alias] = server(alias);
    for (const name in mcp.servers) if (name in names) join(name);
    const saving = 'saved' in mcp.servers ? { saveTool } : {};
    for (const [name, value] of Object.entries({ ...mcp.servers, ...saving, mcp, ToolError })) publish(name, value, names);
  };
  // In a node that has started. Those that it starts find the script by their options.
  const bindLate = (known, env = process.env) => {
    env.NODE_OPTIONS = [env.NODE_OPTIONS, `--require=${folder}/servers.cjs`].filter(Boolean).join(' ');
    bind(known ?? facts());
  };

  // Does what can be done of a call before there is a program, and nothing that could be seen later.
  const rehearse = () => {
    bind({ servers: [['x', 'x']], port: 0 }, {});
    mcp.servers = {};
    const open = opener();
    if (open) open().close();
    // Answers by itself, and reaches nobody.
    class Handle {
      constructor(...given) {
        [this.state, this.count, this.offset] = given;
      }
      ref() {}
      unref() {}
      close() {}
      setNoDelay() {}
      readStart() {}
      connect(request) {
        request.oncomplete(0);
      }
      writeUtf8String(request) {
        request.oncomplete(0);
        const said = new Uint8Array(Buffer.from('HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n{"text":"x"}'));
        this.state[this.count] = said.length;
        this.state[this.offset] = 0;
        this.onread(said.buffer);
      }
    }
    const answered = opener(Handle);
    if (answered) for (const body of ['{}', '{}']) exchange(answered, body);
    idle.length = 0;
    post = () => new Promise(() => {});
    server('x').x({});
    publish('x', 1, {});
    post = sender();
  };

  if (typeof prepared === 'function') prepared({ bind: bindLate, rehearse });
  else bind(facts());
}
