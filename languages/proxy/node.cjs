// Makes Node use HTTP_PROXY and HTTPS_PROXY if it does not by itself (before 22.21): each connection
// of fetch, http and https to another host becomes a tunnel through the proxy.
'use strict';
const proxy = process.env.HTTPS_PROXY || process.env.HTTP_PROXY;
if (proxy && !process.allowedNodeEnvironmentFlags.has('--use-env-proxy')) {
  const net = require('node:net');
  const { hostname, port } = new URL(proxy);
  const own = new Set((process.env.NO_PROXY || '').split(','));
  const bare = (host) => host.replace(/^\[(.*)\]$/, '$1');

  const tunnel = (host, to, done) => {
    const socket = net.connect({ host: hostname, port });
    const name = host.includes(':') ? `[${host}]` : host;
    let head = Buffer.alloc(0);
    const fail = (error) => { socket.destroy(); done(error); };
    const read = (piece) => {
      head = Buffer.concat([head, piece]);
      const end = head.indexOf('\r\n\r\n');
      if (end < 0) return;
      socket.off('data', read);
      socket.off('error', fail);
      const status = head.toString('latin1', 0, head.indexOf('\r\n'));
      if (!/^HTTP\/1\.[01] 200/.test(status)) return fail(new Error(`the proxy refused ${name}:${to}: ${status.slice(9)}`));
      // A server of HTTP or TLS sends nothing before the client does.
      done(null, socket);
    };
    socket.once('connect', () => socket.write(`CONNECT ${name}:${to} HTTP/1.1\r\nHost: ${name}:${to}\r\n\r\n`));
    socket.on('data', read);
    socket.on('error', fail);
  };

  const connect = (options, secure, done) => {
    const host = bare(options.hostname || options.host);
    const to = options.port || (secure ? 443 : 80);
    if (own.has(host)) {
      const start = secure ? require('node:tls').connect : net.connect;
      const socket = start({ ...options, host, port: to }, () => done(null, socket));
      socket.once('error', done);
      return;
    }
    tunnel(host, to, (error, socket) => {
      if (error) return done(error);
      if (!secure) return done(null, socket);
      const servername = options.servername || (net.isIP(host) ? '' : host);
      const safe = require('node:tls').connect({ ...options, socket, servername, host: undefined, port: undefined });
      safe.once('error', done);
      safe.once('secureConnect', () => { safe.off('error', done); done(null, safe); });
    });
  };

  // Loading these takes a moment, so it is done when they are first used.
  const patched = new Set();
  const patch = (name, loaded) => {
    if (patched.has(name)) return loaded;
    patched.add(name);
    const secure = name === 'https';
    loaded.globalAgent.createConnection = (options, done) => { connect(options, secure, done); };
    return loaded;
  };
  const { Module } = require('node:module');
  const load = Module._load;
  Module._load = function (request, ...rest) {
    const name = request.replace(/^node:/, '');
    const loaded = load.call(this, request, ...rest);
    return name === 'http' || name === 'https' ? patch(name, loaded) : loaded;
  };

  const original = globalThis.fetch;
  const key = Symbol.for('undici.globalDispatcher.1');
  const fetch = function fetch(input, init) {
    if (!patched.has('fetch')) {
      patched.add('fetch');
      void globalThis.Response;
      const Agent = globalThis[key] && globalThis[key].constructor;
      if (Agent) globalThis[key] = new Agent({ connect: (options, done) => connect(options, options.protocol === 'https:', done) });
    }
    return original.call(this, input, init);
  };
  if (original) Object.defineProperty(globalThis, 'fetch', { value: fetch, writable: true, configurable: true, enumerable: true });
}
