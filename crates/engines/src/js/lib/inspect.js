// Values as text, the way people know it from node: `util.inspect` and `console.log`.
(function () {
  'use strict';

  const WIDTH = 80;
  const MOST_ITEMS = 100;

  const quote = (text) => {
    const mark = !text.includes("'") ? "'" : !text.includes('"') ? '"' : !text.includes('`') ? '`' : "'";
    const escapes = { '\n': '\\n', '\t': '\\t', '\r': '\\r', '\b': '\\b', '\f': '\\f', '\v': '\\v', '\\': '\\\\' };
    const escaped = text.replace(/[\x00-\x1f\x7f\\]/g, (c) =>
      escapes[c] ?? `\\x${c.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`);
    return mark + (mark === "'" ? escaped.replaceAll("'", "\\'") : escaped) + mark;
  };

  const primitive = (value) => {
    switch (typeof value) {
      case 'string': return quote(value);
      case 'number': return Object.is(value, -0) ? '-0' : String(value);
      case 'bigint': return `${value}n`;
      default: return String(value);
    }
  };

  const constructorName = (value) => {
    for (let at = value; at; at = Object.getPrototypeOf(at)) {
      const own = Object.getOwnPropertyDescriptor(at, 'constructor');
      if (typeof own?.value === 'function' && own.value.name) return own.value.name;
    }
    return null;
  };

  const key = (name) => {
    if (typeof name === 'symbol') return `[${String(name)}]`;
    return /^[A-Za-z_$][\w$]*$/.test(name) ? name : quote(name);
  };

  const functionText = (value) => {
    if (/^class\b/.test(Function.prototype.toString.call(value))) {
      const parent = Object.getPrototypeOf(value)?.name;
      return `[class ${value.name || '(anonymous)'}${parent ? ` extends ${parent}` : ''}]`;
    }
    const kind = constructorName(value) ?? 'Function';
    return value.name ? `[${kind}: ${value.name}]` : `[${kind} (anonymous)]`;
  };

  // Many short items are set in columns.
  const inColumns = (items, value, state) => {
    const count = items.length - (value.length > MOST_ITEMS ? 1 : 0);
    const lengths = items.slice(0, count).map((item) => item.length);
    const longest = Math.max(...lengths) + 2;
    const total = lengths.reduce((sum, length) => sum + length + 2, 0);
    if (longest * 3 + state.indent >= WIDTH || (total / longest <= 5 && longest > 8)) return items;
    const biased = Math.max(longest - 2 - Math.sqrt(longest - total / items.length), 1);
    const columns = Math.min(
      Math.round(Math.sqrt(2.5 * biased * count) / biased),
      Math.floor((WIDTH - state.indent) / longest), 12, 15);
    if (columns <= 1) return items;
    const widths = Array.from({ length: columns }, (_, column) =>
      Math.max(...lengths.filter((_, at) => at % columns === column)));
    const toTheRight = value.every?.((item) => typeof item === 'number' || typeof item === 'bigint');
    const lines = [];
    for (let from = 0; from < count; from += columns) {
      const row = items.slice(from, Math.min(from + columns, count));
      lines.push(row.map((item, column) => {
        const last = column === row.length - 1;
        if (toTheRight) return item.padStart(widths[column]) + (last ? '' : ', ');
        return last ? item : `${item}, `.padEnd(widths[column] + 2);
      }).join(''));
    }
    return lines.concat(items.slice(count));
  };

  const join = (items, open, close, value, state, level, isList) => {
    if (items.length === 0) return `${open}${close}`;
    const count = items.length;
    if (isList && count > 6) items = inColumns(items, value, state);
    if (state.deepest - level < 3 && items.length === count) {
      const length = items.reduce((sum, item) => sum + item.length, 0) + items.length
        + items.length + state.indent + open.length + 10;
      if (length <= WIDTH && !items.some((item) => item.includes('\n'))) {
        return `${open} ${items.join(', ')} ${close}`;
      }
    }
    const space = `\n${' '.repeat(state.indent)}`;
    return `${open}${space}  ${items.join(`,${space}  `)}${space}${close}`;
  };

  const show = (value, state, level) => {
    if (value === null || (typeof value !== 'object' && typeof value !== 'function')) return primitive(value);
    const custom = value[Symbol.for('nodejs.util.inspect.custom')];
    if (typeof custom === 'function') {
      const said = custom.call(value, state.depth - level, {}, inspect);
      return typeof said === 'string' ? said : show(said, state, level);
    }
    if (state.path.includes(value)) {
      if (!state.circular.has(value)) state.circular.set(value, state.circular.size + 1);
      return `[Circular *${state.circular.get(value)}]`;
    }
    state.path.push(value);
    const text = structure(value, state, level);
    state.path.pop();
    return state.circular.has(value) ? `<ref *${state.circular.get(value)}> ${text}` : text;
  };

  const structure = (value, state, level) => {
    const name = constructorName(value);
    const tag = name === null ? '[Object: null prototype]' : name;
    let names = Object.keys(value);
    let [open, close, items, base, isList] = ['{', '}', [], '', false];
    const inner = (item) => {
      state.indent += 2;
      const text = show(item, state, level + 1);
      state.indent -= 2;
      return text;
    };
    const sized = (size) => `${tag}(${size}) `;
    // What is empty is shown at any depth.
    const isEmpty = !((value.size ?? value.length) > 0) && names.length === 0;
    const tooDeep = level > state.depth && !isEmpty;
    if (Array.isArray(value) || ArrayBuffer.isView(value) && !(value instanceof DataView)) {
      isList = true;
      [open, close] = [`${name === 'Array' ? '' : sized(value.length)}[`, ']'];
      if (tooDeep) return name === 'Array' ? '[Array]' : `[${tag}]`;
      if (!isEmpty) state.deepest = level;
      const most = Math.min(value.length, MOST_ITEMS);
      for (let at = 0; at < most; at++) {
        if (at in value) {
          items.push(inner(value[at]));
          continue;
        }
        let holes = at;
        while (holes < value.length && !(holes in value)) holes++;
        items.push(`<${holes - at} empty item${holes - at > 1 ? 's' : ''}>`);
        at = holes - 1;
      }
      const more = value.length - most;
      if (more > 0) items.push(`... ${more} more item${more > 1 ? 's' : ''}`);
      names = names.filter((name) => !/^\d+$/.test(name));
    } else if (value instanceof Map || value instanceof Set) {
      if (tooDeep) return `[${tag}]`;
      if (!isEmpty) state.deepest = level;
      open = `${sized(value.size)}{`;
      for (const item of value) {
        items.push(value instanceof Map ? `${inner(item[0])} => ${inner(item[1])}` : inner(item));
      }
    } else if (typeof value === 'function') {
      base = functionText(value);
    } else if (value instanceof Error) {
      const head = Error.prototype.toString.call(value);
      const stack = typeof value.stack === 'string' ? value.stack : '';
      base = stack.includes(value.message) && stack ? stack : stack ? `${head}\n${stack}` : `[${head}]`;
      names = names.filter((name) => name !== 'stack' && name !== 'message');
      if (value.cause !== undefined && !names.includes('cause')) {
        items.push(`[cause]: ${inner(value.cause)}`);
      }
    } else if (value instanceof RegExp) {
      base = String(value);
    } else if (value instanceof Date) {
      base = Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString();
    } else if (value instanceof Promise) {
      open = 'Promise {';
      items.push('<pending>');
    } else if (value instanceof Number || value instanceof String || value instanceof Boolean) {
      base = `[${tag}: ${primitive(value.valueOf())}]`;
      names = names.filter((name) => !/^\d+$/.test(name));
    } else if (value instanceof WeakMap || value instanceof WeakSet) {
      return `${tag} { <items unknown> }`;
    } else {
      const label = value[Symbol.toStringTag];
      const shown = typeof label === 'string' && label && label !== name ? `${tag} [${label}] ` : name === 'Object' ? '' : `${tag} `;
      if (tooDeep) return `[${name === null ? 'Object: null prototype' : (shown.trim() || 'Object')}]`;
      if (!isEmpty) state.deepest = level;
      open = `${shown}{`;
    }
    const symbols = Object.getOwnPropertySymbols(value).filter((symbol) =>
      Object.prototype.propertyIsEnumerable.call(value, symbol));
    for (const name of [...names, ...symbols]) {
      const own = Object.getOwnPropertyDescriptor(value, name);
      if (!own) continue;
      const text = own.get ? (own.set ? '[Getter/Setter]' : '[Getter]') : own.set ? '[Setter]' : inner(own.value);
      items.push(`${key(name)}: ${text}`);
    }
    if (base) {
      if (items.length === 0) return base;
      open = `${base} {`;
    }
    return join(items, open, close, value, state, level, isList);
  };

  const inspect = (value, options) => {
    const depth = options?.depth === null ? Infinity : options?.depth ?? 2;
    return show(value, { depth, indent: 0, deepest: 0, path: [], circular: new Map() }, 0);
  };

  const format = (values) => {
    let rest = values;
    let text = '';
    if (typeof values[0] === 'string') {
      rest = values.slice(1);
      text = values[0].replace(/%[sdifjoOc%]/g, (mark) => {
        if (mark === '%%') return '%';
        if (rest.length === 0) return mark;
        const [value] = rest;
        rest = rest.slice(1);
        switch (mark) {
          case '%s': return typeof value === 'object' && value !== null ? inspect(value, { depth: 0 }) : typeof value === 'bigint' ? `${value}n` : String(value);
          case '%d': return typeof value === 'bigint' ? `${value}n` : String(typeof value === 'object' ? NaN : Number(value));
          case '%i': return String(Number.parseInt(value));
          case '%f': return String(Number.parseFloat(value));
          case '%j': return JSON.stringify(value);
          case '%c': return '';
          default: return inspect(value, { depth: 4 });
        }
      });
      if (rest.length) text += ' ';
    }
    return text + rest.map((value) => (typeof value === 'string' ? value : inspect(value))).join(' ');
  };

  const table = (rows) => {
    if (rows === null || typeof rows !== 'object') return inspect(rows);
    const entries = rows instanceof Map ? [...rows] : Object.entries(rows);
    const columns = [...new Set(entries.flatMap(([, row]) => (row && typeof row === 'object' ? Object.keys(row) : [])))];
    const plain = entries.some(([, row]) => row === null || typeof row !== 'object');
    const head = ['(index)', ...columns, ...(plain ? ['Values'] : [])];
    const lines = entries.map(([index, row]) => {
      const isObject = row && typeof row === 'object';
      const cells = columns.map((column) => (isObject && column in row ? inspect(row[column], { depth: 0 }) : ''));
      return [String(index), ...cells, ...(plain ? [isObject ? '' : inspect(row)] : [])];
    });
    const widths = head.map((_, at) => Math.max(...[head, ...lines].map((line) => line[at].length)) + 2);
    const rule = (left, middle, right) => left + widths.map((width) => '─'.repeat(width)).join(middle) + right;
    const line = (cells) => `│${cells.map((cell, at) => ` ${cell}`.padEnd(widths[at])).join('│')}│`;
    return [rule('┌', '┬', '┐'), line(head), rule('├', '┼', '┤'), ...lines.map(line), rule('└', '┴', '┘')].join('\n');
  };

  return { inspect, format, table };
});
