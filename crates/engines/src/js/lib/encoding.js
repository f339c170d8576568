// Bytes and text: TextEncoder, TextDecoder, base64 and the part of Buffer that programs use.
(function (host) {
  'use strict';

  class TextEncoder {
    get encoding() {
      return 'utf-8';
    }
    encode(text = '') {
      return host.encode(String(text).toWellFormed());
    }
    encodeInto(text, into) {
      const bytes = this.encode(text);
      const written = Math.min(bytes.length, into.length);
      into.set(bytes.subarray(0, written));
      return { read: text.length, written };
    }
  }

  const bytesOf = (value) => {
    if (value === undefined) return new Uint8Array();
    if (value instanceof ArrayBuffer) return new Uint8Array(value);
    return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  };

  class TextDecoder {
    #fatal;
    #kept = new Uint8Array();
    constructor(label = 'utf-8', options = {}) {
      if (!/^(utf-?8|unicode-1-1-utf-8)$/i.test(label)) {
        throw new RangeError(`The "${label}" encoding is not supported`);
      }
      this.#fatal = Boolean(options.fatal);
    }
    get encoding() {
      return 'utf-8';
    }
    get fatal() {
      return this.#fatal;
    }
    decode(value, options = {}) {
      let bytes = bytesOf(value);
      if (this.#kept.length) bytes = Buffer.concat([this.#kept, bytes]);
      let end = bytes.length;
      if (options.stream) {
        // A character may be cut: at most three bytes of it are here.
        let start = end;
        while (start > 0 && end - start < 3 && (bytes[start - 1] & 0xc0) === 0x80) start--;
        const lead = bytes[start - 1] ?? 0;
        const length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
        if (start > 0 && end - start + 1 < length) end = start - 1;
      }
      this.#kept = bytes.slice(end);
      const text = host.decode(bytes.subarray(0, end), this.#fatal);
      if (text == null) throw new TypeError('The encoded data was not valid for encoding utf-8');
      return text;
    }
  }

  const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
  const toBase64 = (bytes) => {
    let text = '';
    for (let at = 0; at < bytes.length; at += 3) {
      const word = (bytes[at] << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
      const digits = [18, 12, 6, 0].map((shift) => ALPHABET[(word >> shift) & 63]);
      text += digits.slice(0, Math.min(bytes.length - at, 3) + 1).join('').padEnd(4, '=');
    }
    return text;
  };
  const fromBase64 = (text) => {
    const digits = [...text.replace(/[\s=]/g, '')].map((digit) =>
      ALPHABET.indexOf(digit === '-' ? '+' : digit === '_' ? '/' : digit));
    const bytes = new Uint8Array(Math.floor((digits.length * 3) / 4));
    for (let at = 0, to = 0; at < digits.length; at += 4) {
      const word = [0, 1, 2, 3].reduce((sum, next) => (sum << 6) | (digits[at + next] ?? 0), 0);
      for (const shift of [16, 8, 0]) if (to < bytes.length) bytes[to++] = (word >> shift) & 255;
    }
    return bytes;
  };
  const btoa = (text) => toBase64([...String(text)].map((character) => {
    const code = character.codePointAt(0);
    if (code > 255) throw new Error('Invalid character');
    return code;
  }));
  const atob = (text) => {
    if (/[^A-Za-z0-9+/=\s]/.test(text)) throw new Error('The string to be decoded is not correctly encoded.');
    return String.fromCharCode(...fromBase64(String(text)));
  };

  class Buffer extends Uint8Array {
    static from(value, encoding = 'utf8', length) {
      if (typeof value === 'string') return Buffer.wrap(fromText(value, encoding));
      if (value instanceof ArrayBuffer) return new Buffer(value, encoding === 'utf8' ? 0 : encoding, length);
      return Buffer.wrap(Uint8Array.from(value.data ?? value));
    }
    static wrap(bytes) {
      return new Buffer(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    }
    static alloc(size, fill) {
      const buffer = new Buffer(size);
      return fill === undefined ? buffer : buffer.fill(typeof fill === 'string' ? fill.charCodeAt(0) : fill);
    }
    static allocUnsafe(size) {
      return new Buffer(size);
    }
    static isBuffer(value) {
      return value instanceof Buffer;
    }
    static byteLength(value, encoding) {
      return typeof value === 'string' ? fromText(value, encoding).length : value.byteLength;
    }
    static compare(a, b) {
      const at = a.findIndex((byte, at) => byte !== b[at]);
      return at < 0 ? Math.sign(a.length - b.length) : a[at] < b[at] ? -1 : 1;
    }
    static concat(parts) {
      const whole = new Buffer(parts.reduce((sum, part) => sum + part.length, 0));
      let at = 0;
      for (const part of parts) {
        whole.set(part, at);
        at += part.length;
      }
      return whole;
    }
    toString(encoding = 'utf8', start = 0, end = this.length) {
      const bytes = this.subarray(start, end);
      switch (encoding) {
        case 'hex': return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
        case 'base64': return toBase64(bytes);
        case 'base64url': return toBase64(bytes).replace(/=+$/, '').replaceAll('+', '-').replaceAll('/', '_');
        case 'latin1': case 'binary': case 'ascii': return Array.from(bytes, (byte) => String.fromCharCode(byte)).join('');
        default: return host.decode(bytes, false);
      }
    }
    equals(other) {
      return this.length === other.length && this.every((byte, at) => byte === other[at]);
    }
    toJSON() {
      return { type: 'Buffer', data: [...this] };
    }
    [Symbol.for('nodejs.util.inspect.custom')]() {
      const shown = Array.from(this.subarray(0, 50), (byte) => byte.toString(16).padStart(2, '0'));
      const more = this.length > 50 ? ` ... ${this.length - 50} more bytes` : '';
      return `<Buffer${shown.map((byte) => ` ${byte}`).join('')}${more}>`;
    }
  }
  const fromText = (text, encoding = 'utf8') => {
    switch (encoding) {
      case 'hex': return Uint8Array.from(text.match(/[0-9a-f]{2}/gi) ?? [], (pair) => Number.parseInt(pair, 16));
      case 'base64': case 'base64url': return fromBase64(text);
      case 'latin1': case 'binary': case 'ascii': return Uint8Array.from(text, (character) => character.charCodeAt(0));
      default: return host.encode(text.toWellFormed());
    }
  };

  return { TextEncoder, TextDecoder, atob, btoa, Buffer };
});
