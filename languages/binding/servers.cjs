// The tools of upstream servers for JavaScript: `await server.tool({name: value})`. Loaded before the program.
'use strict';
{
  const { servers: names, port: place } = JSON.parse(require('fs').readFileSync('/workspace/.home/.hotcell/servers.json', 'utf8'));

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

  const connect = (net) => {
    while (idle.length) {
      const line = idle.pop();
      if (!line.destroyed && line.writable) return line.ref();
    }
    const line = net.connect(place, '127.0.0.1');
    line.setNoDelay(true);
    return line;
  };

  // One message and its answer, over a plain socket: to load `http` takes longer than a call.
  const exchange = (net, body) => new Promise((resolve, reject) => {
    const line = connect(net);
    const pieces = [];
    let size = 0, whole = Infinity, begin = 0;
    const leave = () => line.removeAllListeners('data').removeAllListeners('error').removeAllListeners('close');
    const fail = (error) => {
      leave();
      line.on('error', () => {}).destroy();
      reject(error);
    };
    line.on('error', fail).on('close', () => fail(new Error('closed')));
    line.on('data', (piece) => {
      pieces.push(piece);
      size += piece.length;
      if (whole === Infinity) {
        const head = pieces.length > 1 ? Buffer.concat(pieces) : piece;
        const end = head.indexOf('\r\n\r\n');
        if (end < 0) return;
        begin = end + 4;
        whole = begin + Number(/\r\ncontent-length: *(\d+)/i.exec(head.toString('latin1', 0, begin))[1]);
      }
      if (size < whole) return;
      leave();
      line.on('error', () => {});
      if (idle.length < 8) idle.push(line.unref());
      else line.destroy();
      resolve(Buffer.concat(pieces).toString('utf8', begin));
    });
    line.write(`POST / HTTP/1.1\r\nHost: mcp\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  });

  const post = (body) => {
    let net;
    try {
      net = require('net');
    } catch {
      // The built-in engine has no sockets.
    }
    if (net) return exchange(net, body);
    return fetch(`http://127.0.0.1:${place}/`, { method: 'POST', body }).then((answer) => answer.text());
  };

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
  const servers = Object.fromEntries(names.map(([alias]) => [alias, server(alias)]));
  const mcp = {
    servers,
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
    let program = '';
    try {
      const file = ['main.js', 'main.mjs', 'main.cjs', 'main.ts'].find((it) => require('node:fs').existsSync(`/workspace/${it}`));
      program = require('node:fs').readFileSync(`/workspace/${file}`, 'utf8');
    } catch {
      // Then it has no imports.
    }
    return (0, eval)(script)(f, example, (server, tool, args) => ask({ server, tool, arguments: args }), program);
  };
  const saving = 'saved' in servers ? { saveTool } : {};
  for (const [name, value] of Object.entries({ ...servers, ...saving, mcp, ToolError })) {
    if (!(name in globalThis)) Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
  }
}
