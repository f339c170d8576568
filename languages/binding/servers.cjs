// The tools of upstream servers for JavaScript: `await server.tool({name: value})`. Loaded before the program.
'use strict';
{
  const names = {servers};

  class ToolError extends Error {
    constructor({ message, kind = 'tool', server = '', tool = '' }) {
      super(message);
      Object.assign(this, { kind, server, tool });
    }
    get name() {
      return 'ToolError';
    }
  }

  // With `http` if the runtime has it: fetch prints a warning in some versions of node.
  const post = (body) => {
    let http;
    try {
      http = require('node:http');
    } catch {
      return fetch('http://127.0.0.1:{port}/', { method: 'POST', body }).then((answer) => answer.text());
    }
    return new Promise((resolve, reject) => {
      const options = { host: '127.0.0.1', port: {port}, method: 'POST', agent: false, headers: { 'Content-Length': Buffer.byteLength(body) } };
      const request = http.request(options, (answer) => {
        let text = '';
        answer.setEncoding('utf8').on('data', (piece) => (text += piece)).on('error', reject).on('end', () => resolve(text));
      });
      request.on('error', reject).end(body);
    });
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
    return said.value;
  };

  const call = (server, tool, given) => {
    const [args = {}] = given;
    if (given.length > 1 || typeof args !== 'object' || args === null || Array.isArray(args)) {
      throw new TypeError(`${server}.${tool} takes its arguments as one object`);
    }
    return ask({ server, tool, arguments: args });
  };

  // Without a `then`, a promise resolves with the object itself.
  const server = (name) => new Proxy({}, {
    get: (_, tool) => (typeof tool !== 'string' || tool === 'then' || tool === 'toJSON' ? undefined : (...given) => call(name, tool, given)),
  });

  const servers = Object.fromEntries(names.map((name) => [name, server(name)]));
  const mcp = {
    servers,
    call(name, args = {}) {
      const [own, ...tool] = name.split('.');
      return call(own, tool.join('.'), [args]);
    },
    help: (name = '') => ask({ help: name }),
  };
  for (const [name, value] of Object.entries({ ...servers, mcp, ToolError })) {
    if (!(name in globalThis)) Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
  }
}
