// structuredClone: deep copies with cycles, of what the HTML standard lets be copied.
(function () {
  'use strict';

  const refuse = (value) => {
    const text = typeof value === 'symbol' ? String(value) : `${value}`;
    throw Object.assign(new Error(`${text} could not be cloned.`), { name: 'DataCloneError', code: 25 });
  };

  const copy = (value, seen) => {
    if (typeof value === 'function' || typeof value === 'symbol') refuse(value);
    if (value === null || typeof value !== 'object') return value;
    if (seen.has(value)) return seen.get(value);
    const keep = (made) => {
      seen.set(value, made);
      return made;
    };
    if (value instanceof Date) return keep(new Date(value.getTime()));
    if (value instanceof RegExp) return keep(new RegExp(value.source, value.flags));
    if (value instanceof Number || value instanceof String || value instanceof Boolean) {
      return keep(Object(value.valueOf()));
    }
    if (value instanceof ArrayBuffer) return keep(value.slice(0));
    if (ArrayBuffer.isView(value)) {
      const buffer = copy(value.buffer, seen);
      const length = value instanceof DataView ? value.byteLength : value.length;
      return keep(new value.constructor(buffer, value.byteOffset, length));
    }
    if (value instanceof Promise || value instanceof WeakMap || value instanceof WeakSet) refuse('#<Object>');
    if (value instanceof Map) {
      const made = keep(new Map());
      for (const [name, item] of value) made.set(copy(name, seen), copy(item, seen));
      return made;
    }
    if (value instanceof Set) {
      const made = keep(new Set());
      for (const item of value) made.add(copy(item, seen));
      return made;
    }
    if (value instanceof Error) {
      const known = { EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };
      const made = keep(Object.create((known[value.name] ?? Error).prototype));
      for (const name of ['message', 'stack', 'cause']) {
        if (Object.hasOwn(value, name)) {
          Object.defineProperty(made, name, { value: copy(value[name], seen), writable: true, configurable: true });
        }
      }
      return made;
    }
    const made = keep(Array.isArray(value) ? new Array(value.length) : {});
    for (const name of Object.keys(value)) made[name] = copy(value[name], seen);
    return made;
  };

  return {
    structuredClone(value) {
      if (arguments.length === 0) throw new TypeError('The "value" argument must be specified');
      return copy(value, new Map());
    },
  };
});
