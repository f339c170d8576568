// node's `assert`, and the comparison it shares with `util`.
(function (host, library) {
  'use strict';

  const same = (a, b) => {
    if (Object.is(a, b)) return true;
    if (a === null || b === null || typeof a !== 'object' || typeof b !== 'object') return false;
    if (Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false;
    if (a instanceof Date) return a.getTime() === b.getTime();
    if (a instanceof RegExp) return String(a) === String(b);
    if (a instanceof Map || a instanceof Set) return a.size === b.size && same([...a], [...b]);
    const names = Object.keys(a);
    return names.length === Object.keys(b).length && names.every((name) => Object.hasOwn(b, name) && same(a[name], b[name]));
  };

  class AssertionError extends Error {
    code = 'ERR_ASSERTION';
    constructor(options) {
      super(options.message);
      Object.assign(this, { actual: options.actual, expected: options.expected, operator: options.operator });
    }
    get name() {
      return 'AssertionError';
    }
  }
  const { inspect } = library('inspect');
  const check = (ok, message, usual, actual, expected, operator) => {
    if (ok) return;
    if (message instanceof Error) throw message;
    throw new AssertionError({ message: message ?? usual(), actual, expected, operator });
  };
  const differ = (actual, expected, words) => () => `${words}:\n\n${inspect(actual)} !== ${inspect(expected)}\n`;
  const assert = (value, message) => check(value, message, () => 'The expression evaluated to a falsy value', value, true, '==');
  const pair = (compare, operator, words) => (a, b, message) => check(compare(a, b), message, differ(a, b, words), a, b, operator);
  const equal = 'Expected values to be strictly equal';
  const deep = 'Expected values to be strictly deep-equal';
  Object.assign(assert, {
    AssertionError, ok: assert, strict: assert,
    fail: (message = 'Failed') => check(false, message),
    equal: pair((a, b) => a == b, '==', equal),
    notEqual: pair((a, b) => a != b, '!=', 'Expected values to differ'),
    strictEqual: pair(Object.is, 'strictEqual', equal),
    notStrictEqual: pair((a, b) => !Object.is(a, b), 'notStrictEqual', 'Expected values to differ'),
    deepEqual: pair(same, 'deepEqual', deep),
    deepStrictEqual: pair(same, 'deepStrictEqual', deep),
    notDeepStrictEqual: pair((a, b) => !same(a, b), 'notDeepStrictEqual', 'Expected values to differ'),
    match: pair((text, pattern) => pattern.test(text), 'match', 'The input did not match the regular expression'),
    throws(work, expected, message) {
      try {
        work();
      } catch (error) {
        if (expected instanceof RegExp) assert.match(String(error), expected, message);
        else if (typeof expected === 'function' && expected.prototype) assert(error instanceof expected, message);
        return;
      }
      check(false, typeof expected === 'string' ? expected : message, () => 'Missing expected exception.');
    },
  });
  return { assert, same };
});
