// URL and URLSearchParams; the parsing itself is Rust's.
(function (host) {
  'use strict';

  const plain = (text) => encodeURIComponent(text).replace(/%20/g, '+').replace(/[!'()~]/g, (c) =>
    `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
  const unplain = (text) => {
    const spaced = text.replaceAll('+', ' ');
    try {
      return decodeURIComponent(spaced);
    } catch {
      return spaced;
    }
  };

  class URLSearchParams {
    #list = [];
    #changed = () => {};
    constructor(init = '', changed) {
      if (changed) this.#changed = changed;
      if (typeof init === 'string') {
        for (const pair of init.replace(/^\?/, '').split('&').filter(Boolean)) {
          const [name, ...value] = pair.split('=');
          this.#list.push([unplain(name), unplain(value.join('='))]);
        }
      } else {
        const pairs = typeof init[Symbol.iterator] === 'function' ? init : Object.entries(init);
        for (const [name, value] of pairs) this.#list.push([String(name), String(value)]);
      }
    }
    get size() {
      return this.#list.length;
    }
    append(name, value) {
      this.#list.push([String(name), String(value)]);
      this.#changed();
    }
    delete(name) {
      this.#list = this.#list.filter(([known]) => known !== name);
      this.#changed();
    }
    get(name) {
      return this.#list.find(([known]) => known === name)?.[1] ?? null;
    }
    getAll(name) {
      return this.#list.filter(([known]) => known === name).map(([, value]) => value);
    }
    has(name) {
      return this.#list.some(([known]) => known === name);
    }
    set(name, value) {
      const at = this.#list.findIndex(([known]) => known === name);
      if (at < 0) return this.append(name, value);
      this.#list = this.#list.filter(([known], other) => known !== name || other === at);
      this.#list[at][1] = String(value);
      this.#changed();
    }
    sort() {
      this.#list.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
      this.#changed();
    }
    forEach(callback) {
      for (const [name, value] of this.#list) callback(value, name, this);
    }
    *keys() {
      for (const [name] of this.#list) yield name;
    }
    *values() {
      for (const [, value] of this.#list) yield value;
    }
    *entries() {
      for (const pair of this.#list) yield [...pair];
    }
    [Symbol.iterator]() {
      return this.entries();
    }
    toString() {
      return this.#list.map(([name, value]) => `${plain(name)}=${plain(value)}`).join('&');
    }
    [Symbol.for('nodejs.util.inspect.custom')](depth, options, inspect) {
      const pairs = this.#list.map(([name, value]) => `${inspect(name)} => ${inspect(value)}`);
      return pairs.length ? `URLSearchParams { ${pairs.join(', ')} }` : 'URLSearchParams {}';
    }
  }

  const PARTS = ['href', 'origin', 'protocol', 'username', 'password', 'host', 'hostname', 'port', 'pathname', 'search', 'hash'];

  class URL {
    #parts;
    #params;
    constructor(url, base) {
      this.#take(host.url(String(url), base === undefined ? null : String(base), null, null), url);
    }
    static canParse(url, base) {
      return host.url(String(url), base === undefined ? null : String(base), null, null) != null;
    }
    #take(parts, url) {
      if (parts == null) {
        throw Object.assign(new TypeError('Invalid URL'), { code: 'ERR_INVALID_URL', input: String(url) });
      }
      this.#parts = parts;
    }
    get searchParams() {
      this.#params ??= new URLSearchParams(this.search, () => {
        this.#take(host.url(this.href, null, 'search', this.#params.toString()));
      });
      return this.#params;
    }
    toString() {
      return this.href;
    }
    toJSON() {
      return this.href;
    }
    [Symbol.for('nodejs.util.inspect.custom')](depth, options, inspect) {
      const shown = PARTS.map((name) => `  ${name}: ${inspect(this[name])}`);
      shown.splice(10, 0, `  searchParams: ${inspect(this.searchParams)}`);
      return `URL {\n${shown.join(',\n')}\n}`;
    }
    static {
      PARTS.forEach((name, at) => {
        Object.defineProperty(URL.prototype, name, {
          enumerable: true,
          configurable: true,
          get() {
            return this.#parts[at];
          },
          set(value) {
            if (name === 'origin') return;
            const parts = name === 'href'
              ? host.url(String(value), null, null, null)
              : host.url(this.href, null, name, String(value));
            this.#take(parts, value);
            this.#params = undefined;
          },
        });
      });
    }
  }

  return { URL, URLSearchParams };
});
