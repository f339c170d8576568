// What a JavaScript program shows: `display(x)`, and the value of its last expression. Each is a file in one folder; their numbers
// are their order, their extensions their types. Loaded before the program.
'use strict';
{
  const fs = require('fs');
  const shown = '{folder}/display/';
  const wants = '{wants}';
  const types = { 'image/png': 'png', 'image/jpeg': 'jpg', 'image/gif': 'gif', 'image/webp': 'webp', 'image/svg+xml': 'svg', 'text/html': 'html', 'application/json': 'json', 'text/plain': 'txt' };

  const inspect = (thing) => {
    try {
      return require('util').inspect(thing, { depth: 4, maxArrayLength: 200, maxStringLength: 16384 });
    } catch {
      return String(thing);
    }
  };

  // As JSON, if it is nothing else and not too much.
  const json = (thing, left = { items: 2000 }) => {
    if (--left.items < 0) return undefined;
    if (thing === null || typeof thing === 'boolean' || typeof thing === 'string') return JSON.stringify(thing);
    if (typeof thing === 'number') return Number.isFinite(thing) ? JSON.stringify(thing) : undefined;
    if (typeof thing !== 'object' || typeof thing.toJSON === 'function') return undefined;
    const plain = Array.isArray(thing) || [Object.prototype, null].includes(Object.getPrototypeOf(thing));
    if (!plain) return undefined;
    const parts = Object.entries(thing).map(([key, item]) => [key, json(item, left)]);
    if (parts.some(([, text]) => text === undefined)) return undefined;
    if (!Array.isArray(thing)) return `{${parts.map(([key, text]) => `${JSON.stringify(key)}: ${text}`).join(', ')}}`;
    return parts.length === thing.length ? `[${parts.map(([, text]) => text).join(', ')}]` : undefined;
  };

  const picture = (bytes) => {
    const start = String.fromCharCode(...bytes.slice(0, 12));
    if (start.startsWith('\x89PNG')) return 'png';
    if (start.startsWith('\xff\xd8\xff')) return 'jpg';
    if (start.startsWith('GIF8')) return 'gif';
    return start.startsWith('RIFF') && start.endsWith('WEBP') ? 'webp' : undefined;
  };

  const rendered = (thing) => {
    if (thing instanceof Uint8Array && picture(thing)) return [picture(thing), thing];
    if (typeof thing === 'string') {
      const start = thing.trimStart().slice(0, 1000).toLowerCase();
      if (start.startsWith('<svg') || (start.startsWith('<?xml') && start.includes('<svg'))) return ['svg', thing];
      return [/^<(!doctype|html|head|body|div|table|h[1-6]|p|ul|ol|span|img|style|section)\b/.test(start) ? 'html' : 'txt', thing];
    }
    if (thing !== null && typeof thing === 'object') {
      const found = Object.keys(types).find((type) => Object.hasOwn(thing, type));
      if (found) {
        const data = thing[found];
        const isBase64 = typeof data === 'string' && found.startsWith('image/') && found !== 'image/svg+xml';
        return [types[found], isBase64 ? Buffer.from(data, 'base64') : typeof data === 'object' && !(data instanceof Uint8Array) ? JSON.stringify(data) : data];
      }
    }
    const text = typeof thing === 'object' ? json(thing) : undefined;
    return text === undefined ? ['txt', inspect(thing)] : ['json', text];
  };

  const save = (kind, data) => {
    fs.mkdirSync(shown, { recursive: true });
    const taken = fs.readdirSync(shown).map((name) => parseInt(name.slice(0, 3), 10)).filter(Number.isInteger);
    const number = Math.max(0, ...taken) + 1;
    if (number <= 50) fs.writeFileSync(`${shown}${String(number).padStart(3, '0')}.${kind}`, data, { flag: 'wx' });
  };

  const display = (...things) => things.forEach((thing) => save(...rendered(thing)));

  const keep = (value) => {
    if (value === undefined || value instanceof Promise) return;
    try {
      const [kind, data] = rendered(value);
      if (['png', 'jpg', 'gif', 'webp', 'svg'].includes(kind)) return save(kind, data);
      const text = json(value);
      const most = 16384;
      if (text !== undefined && text.length <= most) return fs.writeFileSync(`${shown}value.json`, text, { flag: 'wx' });
      fs.writeFileSync(`${shown}value.txt`, (typeof value === 'string' ? value : inspect(value)).slice(0, most), { flag: 'wx' });
    } catch {}
  };

  // Whether nothing in an expression binds less than `instanceof`, as far as that is plain to see.
  const isTight = (text) => {
    let [depth, quote] = [0, ''];
    for (let at = 0; at < text.length; at++) {
      const char = text[at];
      if (quote) {
        if (char === '\\') at++;
        else if (char === quote) quote = '';
      } else if ('"\'`'.includes(char)) quote = char;
      else if ('([{'.includes(char)) depth++;
      else if (')]}'.includes(char)) depth--;
      else if (char === '?' && text[at + 1] === '.') at++;
      else if (!depth && '=&|?:,^/'.includes(char)) return false;
    }
    return !depth && !quote;
  };

  // The program with its last expression given to `$$v`. What is before it must be a program by itself, and it an expression by itself. It
  // begins where a line does or behind a semicolon. Mostly ours stands behind it, and the places of errors are the program's own; else one in
  // that very line is reported five columns late, and in no other.
  const withValue = (program, isModule) => {
    const { Script } = require('vm');
    // A function has no imports and exports of its own; the rest of a module is as in an async one.
    const statements = /^(import\b[^;'"(]*(['"])[^'"\n]*\2|export\s+(default\b)?)/gm;
    const inFunction = (text) => (isModule ? `(async function(){'use strict';${text.replace(statements, ';')}\n})` : `(function(exports,require,module,__filename,__dirname){${text}\n})`);
    const parses = (text) => {
      try {
        new Script(inFunction(text.replace(/^#!/, '//')));
        return true;
      } catch {
        return false;
      }
    };
    const split = (before, last, after) => {
      const expression = last.trimEnd().replace(/;$/, '');
      const continues = /^\s*[([`+\-/.,*]/.test(expression) && !/(^|[;}])\s*$/.test(before);
      const fits = expression.trim() && !continues && parses(before) && parses(`(${expression}\n)`);
      if (!fits) return undefined;
      return before + (isTight(expression) ? `${expression}\ninstanceof $$v` : `$$v=(${expression}\n)`) + after;
    };
    const lines = program.split('\n');
    const counts = (line) => line.trim() && !line.trimStart().startsWith('//');
    const end = lines.findLastIndex(counts) + 1;
    let at = end - 1;
    while (at > 0 && !(counts(lines[at]) && /^[^\s)\]}]/.test(lines[at]))) at--;
    if (at < 0 || program.includes('$$v')) return program;
    const before = lines.slice(0, at).map((line) => line + '\n').join('');
    const last = lines.slice(at, end).join('\n');
    const after = ['', ...lines.slice(end)].join('\n');
    let found = split(before, last, after);
    // Where the last line has several statements; the longest expression is looked for first.
    for (let from = last.indexOf(';'), tries = 0; !found && from >= 0 && tries < 20; from = last.indexOf(';', from + 1), tries++) {
      found = split(before + last.slice(0, from + 1), last.slice(from + 1), after);
    }
    return found || program;
  };

  const offer = () => {
    const { readFileSync } = fs;
    const { readFile } = fs.promises;
    const main = require('path').resolve(process.argv[1] ?? '');
    // Who read the program before us may have had it give its value already.
    const take = (value) => {
      delete globalThis.$$v;
      keep(value);
      return false;
    };
    Object.defineProperty(globalThis, '$$v', { configurable: true, set: take, get: () => ({ [Symbol.hasInstance]: take }) });
    // A module is read by these.
    const url = require('url').pathToFileURL(main).href;
    fs.promises.readFile = async function (file, ...rest) {
      const bytes = await readFile.call(this, file, ...rest);
      if (file?.href !== url && file !== main) return bytes;
      fs.promises.readFile = readFile;
      const text = bytes.toString();
      const program = withValue(text, true);
      if (program === text) return bytes;
      return typeof bytes === 'string' ? program : Buffer.from(program);
    };
    fs.readFileSync = function (file, ...rest) {
      const text = readFileSync.call(this, file, ...rest);
      if (file !== main || typeof text !== 'string') return text;
      fs.readFileSync = readFileSync;
      const program = withValue(text);
      if (program !== text) fs.promises.readFile = readFile;
      return program;
    };
  };

  // What we were loaded by is not the program's, nor that of what it starts.
  delete process.env.HOTCELL_SHOWS;
  for (const name of ['NODE_OPTIONS', 'BUN_OPTIONS', 'HOTCELL_PRELOAD']) {
    const rest = process.env[name]?.replace(/ ?--(require|preload)=\S*\/display\.cjs|:?[^:]*\/display\.cjs/, '');
    if (rest === '') delete process.env[name];
    else if (rest !== undefined) process.env[name] = rest;
  }
  if (!('display' in globalThis)) Object.defineProperty(globalThis, 'display', { value: display, writable: true, configurable: true });
  if (wants.includes('value')) offer();
  if (typeof module === 'object') module.exports = { json };
}
