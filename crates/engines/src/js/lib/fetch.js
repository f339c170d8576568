// fetch, Headers, Request and Response: HTTP by whole messages. Sending is Rust's.
(function (host, library) {
  'use strict';

  const { Buffer, TextEncoder } = library('encoding');
  const { URL, URLSearchParams } = library('url');
  const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
  // What belongs to the connection is not the program's to say.
  const OURS = ['connection', 'content-length', 'host', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade'];
  const MOVED = [301, 302, 303, 307, 308];

  class Headers {
    #list = new Map();
    constructor(init = []) {
      const pairs = typeof init[Symbol.iterator] === 'function' ? init : Object.entries(init);
      for (const [name, value] of pairs) this.append(name, value);
    }
    append(name, value) {
      const [key, text] = [String(name).toLowerCase(), String(value).trim()];
      if (!NAME.test(key)) throw new TypeError(`Headers.append: "${name}" is an invalid header name.`);
      if (/[\r\n\0]|[^\x00-\xff]/.test(text)) throw new TypeError(`Headers.append: "${text}" is an invalid header value.`);
      const known = this.#list.get(key);
      this.#list.set(key, known === undefined ? text : `${known}, ${text}`);
    }
    set(name, value) {
      this.delete(name);
      this.append(name, value);
    }
    get(name) {
      return this.#list.get(String(name).toLowerCase()) ?? null;
    }
    has(name) {
      return this.#list.has(String(name).toLowerCase());
    }
    delete(name) {
      this.#list.delete(String(name).toLowerCase());
    }
    forEach(callback, self) {
      for (const [name, value] of this) callback.call(self, value, name, this);
    }
    *entries() {
      yield* [...this.#list].sort(([a], [b]) => (a < b ? -1 : 1));
    }
    *keys() {
      for (const [name] of this) yield name;
    }
    *values() {
      for (const [, value] of this) yield value;
    }
    [Symbol.iterator]() {
      return this.entries();
    }
  }

  // A body as bytes, and the type that goes without saying.
  const bodyOf = (value) => {
    if (value == null) return [null, null];
    if (value instanceof URLSearchParams) return [new TextEncoder().encode(String(value)), 'application/x-www-form-urlencoded;charset=UTF-8'];
    if (value instanceof ArrayBuffer) return [new Uint8Array(value.slice(0)), null];
    if (ArrayBuffer.isView(value)) return [new Uint8Array(value.buffer, value.byteOffset, value.byteLength).slice(), null];
    return [new TextEncoder().encode(String(value)), 'text/plain;charset=UTF-8'];
  };

  class Message {
    #bytes;
    bodyUsed = false;
    constructor(body, headers) {
      const [bytes, type] = bodyOf(body);
      this.#bytes = bytes;
      this.headers = new Headers(headers);
      if (type && !this.headers.has('content-type')) this.headers.set('content-type', type);
    }
    async bytes() {
      if (this.bodyUsed) throw new TypeError('Body is unusable: Body has already been read');
      this.bodyUsed = this.#bytes !== null;
      return this.#bytes ?? new Uint8Array();
    }
    async arrayBuffer() {
      return (await this.bytes()).slice().buffer;
    }
    async text() {
      return host.decode(await this.bytes(), false);
    }
    async json() {
      return JSON.parse(await this.text());
    }
    static peek(message) {
      return message.#bytes;
    }
  }

  class Request extends Message {
    constructor(input, init = {}) {
      const from = input instanceof Request ? input : null;
      const method = String(init.method ?? from?.method ?? 'GET');
      const body = init.body ?? (from && Message.peek(from));
      if (body != null && /^(get|head)$/i.test(method)) throw new TypeError('Request with GET/HEAD method cannot have body.');
      if (!NAME.test(method)) throw new TypeError(`'${method}' is not a valid HTTP method.`);
      super(body, init.headers ?? from?.headers);
      const url = new URL(from ? from.url : String(input));
      if (url.username || url.password) {
        const user = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
        if (!this.headers.has('authorization')) this.headers.set('authorization', `Basic ${Buffer.from(user).toString('base64')}`);
        url.username = url.password = '';
      }
      this.url = url.href;
      this.method = /^(get|head|post|put|delete|options|patch)$/i.test(method) ? method.toUpperCase() : method;
      this.redirect = init.redirect ?? from?.redirect ?? 'follow';
      this.signal = init.signal ?? from?.signal ?? null;
    }
    clone() {
      return new Request(this);
    }
  }

  class Response extends Message {
    constructor(body, init = {}) {
      super(body, init.headers);
      this.status = init.status ?? 200;
      this.statusText = init.statusText ?? '';
      this.ok = this.status >= 200 && this.status < 300;
      this.type = 'default';
      this.url = '';
      this.redirected = false;
    }
    clone() {
      return Object.assign(new Response(Message.peek(this), this), { url: this.url, redirected: this.redirected });
    }
    static json(value, init = {}) {
      const headers = new Headers(init.headers);
      if (!headers.has('content-type')) headers.set('content-type', 'application/json');
      return new Response(JSON.stringify(value), { ...init, headers });
    }
  }

  let last = 0;
  const waiting = new Map();
  const arrived = (id, why, status, reason, headers, body) => {
    const { resolve, reject } = waiting.get(id);
    waiting.delete(id);
    if (why != null) reject(new TypeError('fetch failed', { cause: new Error(why) }));
    else resolve({ status, reason, headers, body });
  };
  const send = (method, url, headers, body, signal) =>
    new Promise((resolve, reject) => {
      const id = ++last;
      const stop = () => reject(signal.reason);
      if (signal?.aborted) return stop();
      signal?.addEventListener('abort', stop);
      waiting.set(id, { resolve, reject });
      host.fetch(id, method, url, headers, body);
    });

  const fetch = async (input, init = {}) => {
    const request = new Request(input, init);
    let [{ url, method }, body] = [request, Message.peek(request)];
    const headers = new Headers(request.headers);
    for (const name of OURS) headers.delete(name);
    for (const [name, value] of [['accept', '*/*'], ['user-agent', 'hotcell']]) {
      if (!headers.has(name)) headers.set(name, value);
    }
    // What is compressed could not be read.
    headers.set('accept-encoding', 'identity');
    for (let hops = 0; ; hops++) {
      if (!/^https?:/.test(url)) throw new TypeError('fetch failed', { cause: new Error(`unknown scheme: ${url}`) });
      const empty = body === null && /^(POST|PUT|PATCH)$/.test(method) ? new Uint8Array() : body;
      const answer = await send(method, url, [...headers], empty, request.signal);
      const to = MOVED.includes(answer.status) && answer.headers.find(([name]) => name.toLowerCase() === 'location')?.[1];
      if (to && request.redirect === 'error') throw new TypeError('fetch failed', { cause: new Error('unexpected redirect') });
      if (!to || request.redirect === 'manual') {
        const response = new Response(answer.body, { status: answer.status, statusText: answer.reason, headers: answer.headers });
        return Object.assign(response, { url, redirected: hops > 0, type: 'basic' });
      }
      if (hops === 20) throw new TypeError('fetch failed', { cause: new Error('redirect count exceeded') });
      const next = new URL(to, url);
      // Who it was meant for gets what names the sender.
      if (next.origin !== new URL(url).origin) for (const name of ['authorization', 'cookie']) headers.delete(name);
      if (answer.status === 303 ? method !== 'HEAD' : answer.status < 303 && method === 'POST') {
        [method, body] = ['GET', null];
        headers.delete('content-type');
      }
      url = next.href;
    }
  };

  return { fetch, Headers, Request, Response, arrived };
});
